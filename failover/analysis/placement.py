"""Links that each queue pair crosses, and their balance: imbalance, Jain's index, polarisation, tier by tier. Pure.

Changes when a figure of paths is added. Paths come from the lab's own LAGs and kernels, without sampling. Every queue
pair counts alike: that is what path choice decides. The resulting load of the links is in ``ports``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Role

_Direction = tuple[str, bool]
"""A link, and True if it is taken upwards."""


@dataclass(frozen=True, slots=True)
class DataPath:
    """The path of a queue pair's data. ``dropped``: why it does not arrive, after the last of ``links``."""

    flow: int
    name: str
    links: tuple[str, ...]
    dropped: str | None


@dataclass(frozen=True, slots=True)
class TierSpread:
    """Spread of queue pairs over the links of a tier, in one direction; 'tor up': from ToRs to Aggs.

    A link counts when it is up and it, or another one from the same NIC or lower switch to the tier above, is crossed:
    links that no path could have taken are none's fault.

    ``imbalance``: most over mean. ``fairness``: Jain's index, (sum x)^2 / (n sum x^2), 1 for all alike, 1/n for all on
    one link (Jain, Chiu, Hawe, DEC-TR-301, 1984). ``polarisation``: how far each NIC or switch that has several links
    to choose from chooses alike. Upwards it has all its links; downwards those that lead to the queue pair's
    destination, as from an Agg to both ToRs of a dual-ToR Clos. 1 - H / H', where H is the Shannon entropy of its
    choices and H' what it is when they are as even as whole numbers can be (one less Pielou's evenness, 1966); the
    mean over queue pairs. 0: spread as can be; 1: a switch sends all by one link, as where hashes of two tiers agree.
    None where nothing is chosen, as from a ToR to the one port of a NIC, and in a mesh, where minimal paths decide.
    """

    tier: str
    links: int
    crossings: int
    most: int
    busiest: str
    imbalance: float
    fairness: float
    polarisation: float | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Paths of queue pairs at one moment: after ``edges`` edges of faults, shortly before the next or the end."""

    when: str
    edges: int
    at_ns: int
    ways: tuple[DataPath, ...]
    tiers: tuple[TierSpread, ...]

    @property
    def dropped(self) -> int:
        """Queue pairs whose packets do not arrive."""
        return sum(way.dropped is not None for way in self.ways)


def spreads(fabric: Fabric, ways: Sequence[DataPath], is_up: Callable[[str], bool]) -> tuple[TierSpread, ...]:
    """Return the figures of each tier that is crossed, from the NICs up and down again."""
    crossed: Counter[_Direction] = Counter(way for each in ways for way in _directions(fabric, each.links))
    tiers: dict[str, dict[str, dict[_Direction, int]]] = {}
    used = dict.fromkeys((*_chooser(fabric, link, upwards), upwards) for link, upwards in crossed)
    for chooser, kind, upwards in used:
        choice = [way for way in _choice(fabric, chooser, kind, upwards) if is_up(way[0])]
        of = {way: crossed[way] for way in choice}
        if of:
            tiers.setdefault(_tier(fabric, fabric.link(choice[0][0]), upwards), {})[chooser] = of
    down = _choices_down(fabric, ways, is_up)
    chosen = {tier: [list(of.values()) for of in by.values()] for tier, by in tiers.items() if tier.endswith("up")}
    return tuple(_spread(tier, tiers[tier], (chosen | down).get(tier, ())) for tier in sorted(tiers, key=_order))


def _choices_down(fabric: Fabric, ways: Sequence[DataPath], is_up: Callable[[str], bool]) -> dict[str, list[list[int]]]:
    """Return, by tier, how often each switch that chose among the same links downwards took each of them."""
    towards: dict[str, Mapping[str, tuple[str, ...]]] = {}
    found: dict[str, dict[tuple[str, ...], Counter[str]]] = {}
    for way in ways:
        if way.dropped is not None or not way.links:  # its destination is unknown
            continue
        nic = fabric.nic_of_link(way.links[-1])
        if nic.name not in towards:
            towards[nic.name] = _links_towards(fabric, nic, is_up)
        for name, upwards in _directions(fabric, way.links):
            link = fabric.link(name)
            choice = () if upwards else towards[nic.name].get(link.upper.node, ())
            if name in choice:
                found.setdefault(_tier(fabric, link, upwards), {}).setdefault(choice, Counter())[name] += 1
    return {tier: [[of[link] for link in choice] for choice, of in by.items()] for tier, by in found.items()}


def _links_towards(fabric: Fabric, nic: Nic, is_up: Callable[[str], bool]) -> Mapping[str, tuple[str, ...]]:
    """Return, by switch, its links on paths straight down to a NIC over links that are up."""
    found: dict[str, tuple[str, ...]] = {}
    below = [nic.name]
    while below:
        links = [link for chooser in below for link in _links_above(fabric, chooser) if is_up(link.name)]
        for link in links:
            found[link.upper.node] = (*found.get(link.upper.node, ()), link.name)
        below = list(dict.fromkeys(link.upper.node for link in links))
    return found


def _directions(fabric: Fabric, links: Sequence[str]) -> Iterator[_Direction]:
    """Yield the links of a path with their directions, except those between the ToRs of a stack."""
    at = None
    for name in links:
        link = fabric.link(name)
        upwards = at is None or link.lower.node == at
        at = link.far_end(link.lower.node if upwards else link.upper.node).node
        if link.kind is not LinkKind.PEER:
            yield name, upwards


def _chooser(fabric: Fabric, link: str, upwards: bool) -> tuple[str, LinkKind]:
    """Return the NIC or switch that a link connects to the tier above, or that sends by it; and its kind."""
    found = fabric.link(link)
    if found.kind is LinkKind.ACCESS:
        return fabric.nic_of_link(link).name, found.kind
    by_upper = found.kind is LinkKind.MESH and not upwards
    return (found.upper if by_upper else found.lower).node, found.kind


def _choice(fabric: Fabric, chooser: str, kind: LinkKind, upwards: bool) -> list[_Direction]:
    """Return the links among which a chooser has some, each in its direction: from a switch of a mesh, all onward."""
    if kind is not LinkKind.MESH:
        return [(link.name, upwards) for link in _links_above(fabric, chooser)]
    links = (link for link in fabric.links_of(chooser) if link.kind is kind)
    return [(link.name, link.lower.node == chooser) for link in links]


def _links_above(fabric: Fabric, chooser: str) -> Sequence[Link]:
    nic = fabric.nic_by_name.get(chooser)
    if nic is not None:
        return nic.links
    beside = (LinkKind.PEER, LinkKind.MESH)
    return [each for each in fabric.links_of(chooser) if each.lower.node == chooser and each.kind not in beside]


_TIERS = {LinkKind.ACCESS: (Role.HOST, Role.TOR), LinkKind.FABRIC: (Role.TOR, Role.AGG)}


def _tier(fabric: Fabric, link: Link, upwards: bool) -> str:
    """Return the tier's name: 'tor up', 'agg down', by sender and direction, as in ``failover.analysis.ports``."""
    if link.kind is LinkKind.MESH:
        return _MESH
    lower, upper = _TIERS.get(link.kind, (Role.AGG, Role.CORE))
    return f"{lower} up" if upwards else f"{upper} down"


_MESH = "tor mesh"
_ORDER = ("host up", "tor up", "agg up", "core down", "agg down", _MESH, "tor down")


def _order(tier: str) -> int:
    return _ORDER.index(tier)


def _spread(tier: str, choosers: dict[str, dict[_Direction, int]], choices: Sequence[Sequence[int]]) -> TierSpread:
    counts = {way: count for of in choosers.values() for way, count in of.items()}
    loads = list(counts.values())
    busiest = max(counts, key=counts.__getitem__)
    total, squares = sum(loads), sum(load * load for load in loads)
    return TierSpread(
        tier=tier,
        links=len(loads),
        crossings=total,
        most=counts[busiest],
        busiest=busiest[0],
        imbalance=counts[busiest] / fmean(loads) if total else 1.0,
        fairness=total * total / (len(loads) * squares) if total else 1.0,
        polarisation=_polarisation(choices),
    )


def _polarisation(choices: Sequence[Sequence[int]]) -> float | None:
    """Return the polarisation of choosers with at least two links and two queue pairs, weighted by queue pairs."""
    found = [(sum(counts), _alike(counts)) for counts in choices if len(counts) > 1 and sum(counts) > 1]
    weight = sum(queue_pairs for queue_pairs, _ in found)
    return sum(queue_pairs * alike for queue_pairs, alike in found) / weight if weight else None


def _alike(counts: Sequence[int]) -> float:
    """Return 1 less the entropy of a choice over its maximum for that number of links and queue pairs."""
    total = sum(counts)
    entropy = -sum(count / total * math.log(count / total) for count in counts if count)
    return max(0.0, 1 - entropy / _most_entropy(total, len(counts)))


def _most_entropy(queue_pairs: int, links: int) -> float:
    """Return the entropy of this number of queue pairs, spread as evenly as whole numbers allow."""
    each, more = divmod(queue_pairs, links)
    parts = [each + 1] * more + [each] * (links - more)
    return -sum(part / queue_pairs * math.log(part / queue_pairs) for part in parts if part)
