"""An optical core: links between switches that move by a schedule. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults.actions import NO_ACTION, Action, FaultActions
from hpn.failover.faults.area import switches_of
from hpn.failover.faults.base import MS, PlannedEdge, TargetKind
from hpn.failover.faults.fields import Unit, parameter
from hpn.failover.faults.link import LinkDown
from hpn.failover.faults.node import ManyLinksFault
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind

Matching = tuple[str, ...]
"""Links of which no two end at one switch."""


@dataclass(frozen=True, slots=True)
class OpticalCircuits(ManyLinksFault):
    """The links of a direct network are circuits of optical switches: few are there at a time, and they move.

    The links between switches are parted into matchings. An optical switch holds one matching, and there are
    ``circuits`` such switches. After each ``dwell`` one of them turns to the next matching, the oldest first: its links
    go, and ``dark`` later the new ones come. The others keep the network joined. Both ends of a link see what
    ``LinkDown`` shows them. After ``count`` moves and one more dwell all links are there again, as without optics.

    Rotor switches (Mellette et al., SIGCOMM 2017), one at a time (Opera, NSDI 2020). MEMS take some 10 ms to turn.
    Circuits are cut without notice; BGP finds other paths. Opera's tables know them beforehand.
    """

    KIND: ClassVar[str] = "optical-circuits"
    TARGET: ClassVar[TargetKind] = TargetKind.PLANE
    STEADY: ClassVar[bool] = False
    REPAIRS_ITSELF: ClassVar[bool] = True

    plane: str
    circuits: int = parameter("circuits", Unit.COUNT, 1, 64)
    dwell_ns: int = parameter("dwell", Unit.DURATION, 50 * MS, 60_000 * MS)
    count: int = parameter("count", Unit.COUNT, 1, 100)
    dark_ns: int = parameter("dark", Unit.DURATION, MS, 60_000 * MS, default=20 * MS)
    matchings: tuple[Matching, ...] = ()  # filled in by ``on``

    @property
    def target(self) -> str:
        """Name of the plane."""
        return self.plane

    @classmethod
    def misfit(cls, fabric: Fabric) -> str:
        """Return why a fabric without links between ToRs cannot have one."""
        if any(link.kind is LinkKind.MESH for link in fabric.links):
            return ""
        return f"{cls.KIND} moves links of a direct network, and here no two ToRs are joined; take a full mesh"

    def on(self, fabric: Fabric) -> OpticalCircuits:
        """Return the fault with its matchings. InputError: too few matchings, or a move longer than a dwell."""
        found = tuple(_matchings(self.links_hit(fabric)))
        if len(found) <= self.circuits:
            raise InputError(
                f"{self.circuits} circuits are all that the {len(found)} matchings of {self.plane} need; write fewer"
            )
        if self.dark_ns >= self.dwell_ns:
            raise InputError("a move is dark for a whole dwell or longer; write a longer 'dwell' or a shorter 'dark'")
        return replace(self, matchings=found)

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return the links between ToRs of the plane."""
        there = {node.name for node in switches_of(fabric, self.plane)}
        return tuple(link for link in fabric.links if link.kind is LinkKind.MESH and link.lower.node in there)

    def nodes_hit(self) -> tuple[str, ...]:
        """Return no node: only links move."""
        return ()

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return every move in order of time; ``for_ns`` is ignored. Before ``on``: the whole span."""
        end_ns = at_ns + (self.count + 1) * self.dwell_ns
        if not self.matchings:
            return PlannedEdge(at_ns, EdgeKind.FAILURE), PlannedEdge(end_ns, EdgeKind.REPAIR)
        many = len(self.matchings)
        dark = list(range(self.circuits, many))
        found = [*self._moved(at_ns, EdgeKind.FAILURE, 0, dark)]
        for move in range(1, self.count + 1):
            gone, come = (move - 1) % many, (move - 1 + self.circuits) % many
            moved_ns = at_ns + move * self.dwell_ns
            found += self._moved(moved_ns, EdgeKind.FAILURE, move, [gone])
            found += self._moved(moved_ns + self.dark_ns, EdgeKind.REPAIR, move - 1, [come])
            dark = [*(each for each in dark if each != come), gone]
        return (*found, *self._moved(end_ns, EdgeKind.REPAIR, self.count, sorted(dark)))

    def act(self, actions: FaultActions) -> Action:
        """Do nothing itself: its links are parts."""
        return NO_ACTION

    def _moved(self, at_ns: int, kind: EdgeKind, index: int, matchings: Sequence[int]) -> Iterator[PlannedEdge]:
        for matching in matchings:
            yield from (PlannedEdge(at_ns, kind, index, LinkDown(link)) for link in self.matchings[matching])


def _matchings(links: Sequence[Link]) -> Sequence[Matching]:
    """Part links into matchings: as a round robin of the switches if that takes no more of them than one by one.

    In a round robin of p + 1 switches, p a prime, any two matchings join all of them (Kotzig, 1964).
    """
    switches = list(dict.fromkeys(end.node for link in links for end in (link.lower, link.upper)))
    place = {name: at for at, name in enumerate(switches)}
    last = len(place) - 1 + len(place) % 2  # the place that sits out, if their number is odd
    rounds: dict[int, list[str]] = {}
    for link in links:
        one, other = sorted((place[link.lower.node], place[link.upper.node]))
        rounds.setdefault((2 * one if other == last else one + other) % last, []).append(link.name)
    robin = [tuple(rounds[number]) for number in sorted(rounds)]
    greedy = _one_by_one(links)
    parallel = len(links) > len({frozenset((link.lower.node, link.upper.node)) for link in links})
    return greedy if parallel or len(greedy) < len(robin) else robin


def _one_by_one(links: Sequence[Link]) -> Sequence[Matching]:
    """Put each link into the first matching that has none at either of its ends."""
    found: list[list[str]] = []
    ends: list[set[str]] = []
    for link in links:
        pair = {link.lower.node, link.upper.node}
        at = next((at for at, taken in enumerate(ends) if not taken & pair), len(found))
        if at == len(found):
            found.append([])
            ends.append(set())
        found[at].append(link.name)
        ends[at] |= pair
    return [*map(tuple, found)]
