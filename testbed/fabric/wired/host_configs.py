"""Hosts with network configurations of their own: formats by registry, NICs and options of LAGs from them. Pure.

Changes when hpn reads another format of hosts: an entry of ``HOST_FORMATS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from hpn.testbed.entries import Registry
from hpn.testbed.fabric.spec import FabricSpec, LacpRate
from hpn.testbed.fabric.values import MOST_PORTS
from hpn.testbed.fabric.wired.cables import end_of
from hpn.testbed.fabric.wired.host_bonding import BondOptions, interface_of, options_of
from hpn.testbed.fabric.wired.host_ifupdown import read_ifupdown
from hpn.testbed.fabric.wired.host_netplan import read_netplan
from hpn.testbed.fabric.wired.host_networkd import read_networkd
from hpn.testbed.fabric.wired.host_words import BondWords, HostFiles, HostWords
from hpn.testbed.fabric.wired.wiring_spec import ConfigFile, WiredNic, WiredNode, WiringSpec

Read = Callable[[HostFiles, Sequence[str]], HostWords]
"""Reader of a host's files; its ports that have links."""


@dataclass(frozen=True, slots=True)
class HostFormat:
    """One format; ``files``: names of the files that hold it, in a folder or alone."""

    name: str
    files: re.Pattern[str]
    read: Read


HOST_FORMATS: Registry[HostFormat] = Registry(
    "format of host configurations",
    lambda each: each.name,
    (
        HostFormat("ifupdown", re.compile(r"interfaces(\.d/[A-Za-z0-9_.-]+)?"), read_ifupdown),
        HostFormat("networkd", re.compile(r"[^/]+\.(netdev|network|link)(\.d/[^/]+\.conf)?"), read_networkd),
        HostFormat("netplan", re.compile(r"[^/]+\.ya?ml"), read_netplan),
    ),
    of=HostFormat,
)


@dataclass(frozen=True, slots=True)
class OwnHost:
    """A host with a configuration of its own, from ``start`` on: its words, and the options of each bond."""

    start: str
    ports: tuple[str, ...]
    words: HostWords
    options: Mapping[str, BondOptions]

    def bond(self, name: str) -> BondWords | None:
        """Return a bond's words."""
        return next((each for each in self.words.bonds if each.name == name), None)


def is_part(name: str) -> bool:
    """Return True for the name of a file that a host's configuration may have, below its folder."""
    return any(each.files.fullmatch(name) for each in HOST_FORMATS.values())


def files_of(config: ConfigFile) -> Mapping[str, str]:
    """Return a configuration's texts by name; a file that is named alone is the only one."""
    return config.parts or {PurePath(config.file).name: config.text}


def format_of(config: ConfigFile) -> HostFormat | None:
    """Return the format of a host's configuration; None for one that hpn does not read."""
    names = list(files_of(config))
    if "interfaces" in names:
        return HOST_FORMATS["ifupdown"]
    found = (HOST_FORMATS[name] for name in ("networkd", "netplan"))
    alone = not config.parts
    return next(
        (each for each in found if any(map(each.files.fullmatch, names)) and not (alone and each.name == "networkd")),
        None,
    )


def own_hosts(spec: FabricSpec) -> Mapping[str, OwnHost]:
    """Return the hosts of a topology that bring a configuration which hpn reads."""
    if spec.wiring is None:
        return {}
    ports: dict[str, list[str]] = {}
    for link in spec.wiring.links:
        for end, port in map(end_of, link.ends):
            ports.setdefault(end, []).append(port)
    found: dict[str, OwnHost] = {}
    for name, node in spec.wiring.nodes.items():
        config = node.config
        chosen = format_of(config) if node.role == "host" and isinstance(config, ConfigFile) else None
        if chosen is not None and isinstance(config, ConfigFile):
            parts = tuple((part, text) for part, text in files_of(config).items() if chosen.files.fullmatch(part))
            folder = config.file if config.parts else PurePath(config.file).parent.as_posix()
            files = HostFiles(folder, parts, alone=not config.parts)
            found[name] = _host(chosen.name, files, tuple(ports.get(name, ())), spec.lacp.aggregate_wait_ms)
    return found


@lru_cache(maxsize=4096)  # a topology asks for each host's several times
def _host(chosen: str, files: HostFiles, ports: tuple[str, ...], aggregate_wait_ms: int) -> OwnHost:
    words = HOST_FORMATS[chosen].read(files, ports)
    start = files.place(files.parts[0][0])
    return OwnHost(start, ports, words, {each.name: options_of(each, aggregate_wait_ms) for each in words.bonds})


def with_nics(spec: FabricSpec) -> WiringSpec | None:
    """Return the wiring with the NICs of hosts from their own configurations, where it leaves them out."""
    if spec.wiring is None or not (hosts := own_hosts(spec)):
        return spec.wiring
    nodes = {name: _with_nics(node, hosts[name]) if name in hosts else node for name, node in spec.wiring.nodes.items()}
    return spec.wiring.model_copy(update={"nodes": nodes})


def _with_nics(node: WiredNode, host: OwnHost) -> WiredNode:
    if node.nics:
        nics = {name: _completed(nic, host.bond(name)) for name, nic in node.nics.items()}
    else:
        bonds = [each for each in host.words.bonds if len(each.ports) <= MOST_PORTS]
        nics = {each.name: _completed(WiredNic(ports=list(each.ports)), each) for each in bonds}
    return node.model_copy(update={"nics": nics})


def _completed(nic: WiredNic, words: BondWords | None) -> WiredNic:
    """Return a NIC with the address of its configuration, unless the wiring has one."""
    address = None if words is None or words.address is None else interface_of(words.address)
    if nic.ip is not None or words is None or address is None:
        return nic
    gateway = nic.gateway or (None if words.gateway is None else words.gateway.text)
    return nic.model_copy(update={"ip": address.with_prefixlen, "gateway": gateway})


def asked_rates(spec: FabricSpec) -> frozenset[LacpRate]:
    """Return the LACP rates that any end of an access link asks of the other."""
    own = (options.bonding.lacp_rate for host in own_hosts(spec).values() for options in host.options.values())
    return frozenset((spec.lacp.rate, spec.lacp.hosts_ask, *own))
