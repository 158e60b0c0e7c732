"""Targets larger than one node: a plane of switches, a part of the access links. Pure.

Changes when drills may target a new kind of group.
"""

from __future__ import annotations

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Node, Role

ALL = "all"


def planes(fabric: Fabric) -> tuple[str, ...]:
    """Return the names of the fabric's planes: 'plane0', 'plane1'."""
    return tuple(f"plane{number}" for number in range(fabric.planes))


def switches_of(fabric: Fabric, plane: str) -> tuple[Node, ...]:
    """Return every switch of a plane. InputError when there is no such plane."""
    if plane not in planes(fabric):
        raise InputError(f"no plane {plane!r} in this fabric; write one of {', '.join(planes(fabric))}")
    return tuple(node for node in fabric.switches if plane == f"plane{node.plane}")


def links_of_any(fabric: Fabric, nodes: tuple[str, ...]) -> tuple[Link, ...]:
    """Return the links with an end on one of ``nodes``, in fabric order."""
    wanted = set(nodes)
    return tuple(link for link in fabric.links if link.lower.node in wanted or link.upper.node in wanted)


def access_links(fabric: Fabric, area: str) -> tuple[Link, ...]:
    """Return the access links of ``area``: 'all', a plane, a ToR or a host. InputError when it is none of these."""
    links = tuple(link for link in fabric.links if link.kind is LinkKind.ACCESS)
    if area == ALL:
        return links
    if area in planes(fabric):
        return tuple(link for link in links if fabric.node(link.upper.node).plane == int(area.removeprefix("plane")))
    node = fabric.node_by_name.get(area)
    if node is None or node.role not in (Role.HOST, Role.TOR):
        known = ", ".join((ALL, *planes(fabric)))
        raise InputError(f"{area!r} is no part of the access links; write one of {known}, a ToR or a host")
    return tuple(link for link in links if node.name in (link.lower.node, link.upper.node))
