"""Contradictions between hosts' own configurations and the wiring, and what hpn leaves of them. Pure.

A problem has the line of the configuration too. What is left is told before a start (``hpn plan``).
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.values import MOST_PORTS
from hpn.testbed.fabric.wired.host_bonding import interface_of
from hpn.testbed.fabric.wired.host_configs import OwnHost, own_hosts
from hpn.testbed.fabric.wired.wiring_spec import WiredNic, WiringSpec
from hpn.testbed.files.document import shorten


def host_problems(spec: FabricSpec, wiring: WiringSpec) -> Iterator[Problem]:
    """Yield every mistake of hosts' own configurations, and where they and the wiring differ."""
    hosts = own_hosts(spec)
    taken = {
        nic.ip.partition("/")[0]: f"an address of {name}"
        for name, node in wiring.nodes.items()
        for nic in node.nics.values()
        if nic.ip is not None and name not in hosts
    }
    for name, host in hosts.items():
        where = ("wiring", "nodes", name)
        found = [*_of_host(name, host, bool(wiring.nodes[name].nics)), *_addresses(host, taken)]
        yield from (((*where, "config"), text) for text in found)
        for lag, nic in wiring.nodes[name].nics.items():
            yield from (((*where, "nics", lag, key), text) for key, text in _differences(host, lag, nic))


def _addresses(host: OwnHost, taken: dict[str, str]) -> Iterator[str]:
    """Yield addresses that are ``taken``, and add those of the host."""
    for bond in host.words.bonds:
        address = None if bond.address is None else interface_of(bond.address)
        if address is not None and bond.address is not None:
            here = bond.address.where
            if (there := taken.setdefault(str(address.ip), f"at {here}")) != f"at {here}":
                yield f"{here}: {address.ip} is {there} too; write another"


def _of_host(name: str, host: OwnHost, has_nics: bool) -> Iterator[str]:
    yield from host.words.wrong
    for options in host.options.values():
        yield from options.wrong
    for bond in host.words.bonds:
        if len(bond.ports) > MOST_PORTS:
            told = f"{shorten(bond.name, quoted=False)} has {len(bond.ports)} ports"
            yield f"{bond.where}: {told}; a NIC has at most {MOST_PORTS}: write smaller bonds"
    if not host.words.bonds:
        yield f"{host.start}: {name} has no bond over its links here, and hpn's hosts speak LACP; add one"
    taken = {port for bond in host.words.bonds for port in bond.ports}
    if host.words.bonds and not has_nics and not host.words.wrong:
        for port in (each for each in host.ports if each not in taken):
            where = host.words.bonds[0].where
            yield f"{where}: {port} of {name} has a link, but is in no bond; add it to one, or leave the link out"


def _differences(host: OwnHost, lag: str, nic: WiredNic) -> Iterator[tuple[str, str]]:
    """Yield what the wiring says of a NIC and the configuration says otherwise, by key of the wiring."""
    words = host.bond(lag)
    if words is None:
        bonds = ", ".join(shorten(each.name, quoted=False) for each in host.words.bonds) or "no bond"
        yield "ports", f"{host.start.removesuffix(':1')} has {bonds}, and no {shorten(lag)}; write one name in both"
        return
    if set(nic.ports) != set(words.ports):
        there = ", ".join(words.ports)
        where = next((said.where for said in words.ports.values()), words.where)
        yield "ports", f"{lag} has {', '.join(nic.ports)} here, and {there} at {where}; leave it out here"
    for key, here, said in (("ip", nic.ip, words.address), ("gateway", nic.gateway, words.gateway)):
        there = "" if said is None else said.text
        if key == "ip" and said is not None and (found := interface_of(said)) is not None:
            there = found.with_prefixlen
        if said is not None and here is not None and here != there:
            yield key, f"{lag} has {here} here, and {there} at {said.where}; leave it out here"


def host_notes(spec: FabricSpec) -> Iterator[str]:
    """Yield what hpn does not do of hosts' own configurations, each line with its place and reason."""
    for host in own_hosts(spec).values():
        yield from host.words.left
        for options in host.options.values():
            yield from options.left
        for bond in host.words.bonds:
            if bond.mtu is not None and bond.mtu.text != str(spec.mtu):
                told = f"{shorten(bond.mtu.word, quoted=False)} {shorten(bond.mtu.text, quoted=False)}"
                yield f"{bond.mtu.where}: not done: {told}: all links have the topology's mtu, {spec.mtu}"
