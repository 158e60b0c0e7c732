"""Contradictions between configurations of switches and the links between them, found without starting anything. Pure.

They are told, not refused: to see what such a mistake costs is what a drill is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface

from hpn.testbed.fabric.model import Fabric, Port
from hpn.testbed.fabric.wired.config_words import RemoteAs, SwitchConfig
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.routing.neighbours import asks_bfd


def config_notes(fabric: Fabric) -> Iterator[str]:
    """Yield a line for each, with the configuration's file and line."""
    configs = own_configs(fabric)
    for name, config in configs.items():
        links = [link for link in fabric.links_of(name) if link.is_routed]
        ends = [(link.end_at(name), link.far_end(name)) for link in links]
        for here, there in ends if config.asn is not None else ():
            yield from _session(fabric, config, configs.get(there.node), here, there)
        known = {config.peer(here, there) for here, there in ends}
        for peer in config.neighbours:
            if peer not in known:
                yield f"{config.where(f'neighbour {peer}')}: {name} has no link to neighbour {peer}"
        yield from (f"{config.file}:{line}: not done: {why}" for line, why in config.left)
    for link in fabric.links:
        if link.is_routed:
            yield from _addresses(configs.get(link.lower.node), link.lower, link.upper)
            yield from _addresses(configs.get(link.upper.node), link.upper, link.lower)


def _session(
    fabric: Fabric, config: SwitchConfig, other: SwitchConfig | None, here: Port, there: Port
) -> Iterator[str]:
    """Yield what keeps the session over one link from being established, or BFD from running beside it."""
    name = f"{there.node}, {there.ip} at {here.name}" if there.address is not None else f"{there.node} at {here.name}"
    peer, asn = config.peer(here, there), fabric.node(there.node).asn
    if peer is None:
        yield f"{config.where('asn')}: {here.node} has no neighbour {name}: that link carries no routes"
        return
    where, awaited = config.where(f"neighbour {peer}"), config.neighbours[peer]
    if (wanted := _refused(awaited, config.asn, asn)) is not None:
        yield f"{where}: {here.node} awaits {wanted} of {name}, which has {asn}"
    if not _meets(config, other, here, there):
        yield f"{where}: {here.node} speaks BGP unnumbered with {name}, which does not"
    if asks_bfd(fabric, config, here, there) and not asks_bfd(fabric, other, there, here):
        yield f"{where}: {here.node} has BFD with {name}, which has none: it finds no failure"


def _refused(awaited: RemoteAs, own: int | None, theirs: int | None) -> str | None:
    """Return the awaited ASN in words if theirs is another."""
    if awaited == "external":
        return "an ASN other than its own" if theirs == own else None
    wanted = own if awaited == "internal" else awaited
    return None if wanted in (None, theirs) else f"ASN {wanted}"


def _meets(config: SwitchConfig, other: SwitchConfig | None, here: Port, there: Port) -> bool:
    """Return False for a session over link-local addresses that the other end does not speak.

    Where the link has addresses, FRR finds the neighbour's by itself, unless told 'v6only'.
    """
    if here.name not in config.interfaces:
        return True
    if other is not None and there.name in other.interfaces:
        return True
    known = here.address is not None and (other is None or here.ip in other.neighbours)
    return known and not config.interfaces[here.name]


def _addresses(config: SwitchConfig | None, here: Port, there: Port) -> Iterator[str]:
    """Yield an interface's address that is not the one of its link, or not in the neighbour's subnet."""
    given = None if config is None else config.addresses.get(here.name)
    if config is None or given is None or here.address is None or there.address is None:
        return
    where = config.where(f"address {here.name}")
    if given != here.address:
        yield f"{where}: {here.label} has {given} here and {here.address} in the topology file"
    elif IPv4Interface(given).network != IPv4Interface(there.address).network:
        yield f"{where}: {here.label} has {given}, and {there.label} at the other end {there.address}"
