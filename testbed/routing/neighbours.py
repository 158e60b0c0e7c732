"""BGP neighbours and subnets of a switch, derived from the fabric: input of every daemon's configuration.

A stack's peer link carries no session. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric, LinkKind, Node, Port


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Switch at the other end of a link: ``node``, its ``address`` there and its ``asn``.

    ``port`` is our interface; ``above``: it is one tier nearer to the Cores.
    """

    port: str
    node: str
    address: str
    asn: int | None
    above: bool


def neighbours(fabric: Fabric, node: Node) -> tuple[Neighbour, ...]:
    """Return the BGP neighbours of ``node``, those above first, each in port order."""
    links = [link for link in fabric.links_of(node.name) if link.is_routed]
    above = [_neighbour(fabric, link.lower, link.upper, True) for link in links if link.lower.node == node.name]
    below = [_neighbour(fabric, link.upper, link.lower, False) for link in links if link.upper.node == node.name]
    return (*above, *below)


def _neighbour(fabric: Fabric, near: Port, far: Port, above: bool) -> Neighbour:
    if far.address is None:
        raise ValueError(f"{far.node} has no address on {far.name}, where BGP would speak with it")
    return Neighbour(near.name, far.node, far.address.partition("/")[0], fabric.node(far.node).asn, above)


def access_subnets(fabric: Fabric, node: Node) -> tuple[str, ...]:
    """Return the NIC subnets on the access ports of ``node``, 'a.b.c.0/len', in port order, each once."""
    links = (link for link in fabric.links_of(node.name) if link.kind is LinkKind.ACCESS)
    return tuple(dict.fromkeys(fabric.nic_of_link(link.name).subnet for link in links if link.upper.node == node.name))
