"""BGP neighbours and subnets of a switch, derived from the fabric: input of every daemon's configuration.

A stack's peer link carries no session. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric, LinkKind, Node, Port
from hpn.testbed.fabric.wired.config_words import SwitchConfig
from hpn.testbed.fabric.wired.configs import own_configs


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Switch at the other end of a link: ``node``, its ``address`` there and its ``asn``.

    ``port`` is our interface; ``above``: it is one tier nearer to the Cores. BGP unnumbered needs no address.
    """

    port: str
    node: str
    address: str | None
    asn: int | None
    above: bool

    @property
    def name(self) -> str:
        """Name in our daemon's configuration and log: its address, or our port where it has none."""
        return self.address or self.port


def neighbours(fabric: Fabric, node: Node) -> tuple[Neighbour, ...]:
    """Return the BGP neighbours of ``node``, those above first, each in port order."""
    links = [link for link in fabric.links_of(node.name) if link.is_routed]
    above = [_neighbour(fabric, link.lower, link.upper, True) for link in links if link.lower.node == node.name]
    below = [_neighbour(fabric, link.upper, link.lower, False) for link in links if link.upper.node == node.name]
    return (*above, *below)


def _neighbour(fabric: Fabric, near: Port, far: Port, above: bool) -> Neighbour:
    address = None if far.address is None else far.ip
    return Neighbour(near.name, far.node, address, fabric.node(far.node).asn, above)


def access_subnets(fabric: Fabric, node: Node) -> tuple[str, ...]:
    """Return the NIC subnets on the access ports of ``node``, 'a.b.c.0/len', in port order, each once."""
    links = (link for link in fabric.links_of(node.name) if link.kind is LinkKind.ACCESS)
    return tuple(dict.fromkeys(fabric.nic_of_link(link.name).subnet for link in links if link.upper.node == node.name))


def bfd_ends(fabric: Fabric) -> frozenset[str]:
    """Return the labels of all ports whose BGP session has BFD beside it at both ends."""
    configs = own_configs(fabric)
    found: list[str] = []
    for low, high in ((link.lower, link.upper) for link in fabric.links if link.is_routed):
        if asks_bfd(fabric, configs.get(low.node), low, high) and asks_bfd(fabric, configs.get(high.node), high, low):
            found += (low.label, high.label)
    return frozenset(found)


def asks_bfd(fabric: Fabric, config: SwitchConfig | None, here: Port, there: Port) -> bool:
    """Return True if a switch with this configuration, None: hpn's, has BFD beside its session over the link."""
    return fabric.spec.bgp.bfd is not None if config is None else config.peer(here, there) in config.bfd
