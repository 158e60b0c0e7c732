"""Contradictions between configurations of switches and the links between them, found without starting anything. Pure.

They are told, not refused: to see what such a mistake costs is what a drill is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface

from hpn.testbed.fabric.model import Fabric, Node, Port
from hpn.testbed.fabric.wired.config_words import SwitchConfig
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.routing.neighbours import Neighbour, neighbours


def config_notes(fabric: Fabric) -> Iterator[str]:
    """Yield a line for each, with the configuration's file and line."""
    configs = own_configs(fabric)
    for name, config in configs.items():
        node = fabric.node(name)
        found = neighbours(fabric, node)
        for neighbour in found:
            yield from _session(config, node, neighbour)
        known = {neighbour.address for neighbour in found}
        for address in config.neighbours:
            if address not in known:
                yield f"{config.where(f'neighbour {address}')}: {name} has no link to neighbour {address}"
        yield from (f"{config.file}:{line}: not done: {why}" for line, why in config.left)
    for link in fabric.links:
        if link.is_routed:
            yield from _addresses(configs.get(link.lower.node), link.lower, link.upper)
            yield from _addresses(configs.get(link.upper.node), link.upper, link.lower)


def _session(config: SwitchConfig, node: Node, neighbour: Neighbour) -> Iterator[str]:
    """Yield what keeps the session over one link from being established."""
    there = f"{neighbour.node}, {neighbour.address} at {neighbour.port}"
    if config.asn is None:
        return
    if neighbour.address not in config.neighbours:
        yield f"{config.where('asn')}: {node.name} has no neighbour {there}: that link carries no routes"
        return
    asn = config.neighbours[neighbour.address]
    if asn is not None and asn != neighbour.asn:
        where = config.where(f"neighbour {neighbour.address}")
        yield f"{where}: {node.name} awaits ASN {asn} of {there}, which has {neighbour.asn}"


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
