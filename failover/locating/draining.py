"""Decision to take a located link out of use: only if what is then too much for the others is less than its loss. Pure.

Changes when it is decided otherwise what a drain costs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.locating.parts import Part, PartKind
from hpn.failover.locating.seen import Accused
from hpn.failover.locating.siblings import siblings
from hpn.testbed.fabric.model import Fabric, Link, LinkKind
from hpn.traffic.flows.path_search import Direction


@dataclass(frozen=True, slots=True)
class Decision:
    """A link to drain or leave, and why. Shares (0 .. 1) of the traffic over the link and its siblings.

    ``leaving``: lost while the link stays. ``draining``: too much for its siblings without it.
    """

    link: str
    drains: bool
    leaving: float
    draining: float
    why: str


def decide(
    fabric: Fabric,
    accused: Accused,
    loads: Mapping[Direction, float],
    out: Collection[str] = (),
    *,
    senders_follow: bool = True,
    moves_arrivals: bool = True,
) -> Decision:
    """Return the decision about the first suspect; ``loads``: bit/s by link and direction, ``out``: drained links.

    ``senders_follow``: False if path control moves nothing that is sent to a NIC. What is sent by a plane that the NIC
    leaves is lost then: one in which it has no other port. ``moves_arrivals``: False if only what a NIC sends moves.
    """
    parts = accused.suspect.parts
    links = list(dict.fromkeys(part.name for part in parts if part.kind is not PartKind.NODE))
    if len(links) != 1:
        why = f"{len(links)} links are on the same paths" if links else "it is a node, and only links are drained"
        return Decision(parts[0].name, False, accused.loss, 0.0, why)
    link = fabric.link(links[0])
    if not moves_arrivals and link.kind is not LinkKind.ACCESS:
        return Decision(link.name, False, accused.loss, 0.0, "no queue pair is bound to it")
    if not moves_arrivals and not _holds(parts, True):
        return Decision(link.name, False, accused.loss, 0.0, "it loses what arrives, and only what is sent moves")
    group = [each for each in siblings(fabric, link) if each.name not in out]
    rest = [each for each in group if each.name != link.name]
    if not rest:
        return Decision(link.name, False, accused.loss, 1.0, "it is the last way of its node")
    leaving = draining = 0.0
    for upward in (True, False) if moves_arrivals else (True,):
        total = sum(loads.get((each.name, upward == _same_way(link, each)), 0.0) for each in group)
        if total:
            crossing = loads.get((link.name, upward), 0.0) / total
            leaving = max(leaving, accused.loss * crossing if _holds(parts, upward) else 0.0)
            draining = max(draining, max(0.0, total - sum(each.rate_bps for each in rest)) / total)
            leaves_plane = all(each.plane != link.plane for each in rest)
            if link.kind is LinkKind.ACCESS and not upward and leaves_plane and not senders_follow:
                draining = max(draining, crossing)
    if leaving > draining:
        return Decision(link.name, True, leaving, draining, "")
    return Decision(link.name, False, leaving, draining, "more would be lost without it")


def _same_way(link: Link, other: Link) -> bool:
    """Return True if both lead up from one switch; a mesh link may come up to it."""
    return link.kind is not LinkKind.MESH or other.lower.node == link.lower.node


def _holds(parts: Sequence[Part], upward: bool) -> bool:
    """Return True if a suspect loses packets in a direction."""
    return any(part.upward in (None, upward) for part in parts)
