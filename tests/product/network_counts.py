"""Sizes and cost of published networks, counted from the plan of the whole network. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.scenarios.paper.count_claims import PRICES
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic
from hpn.testbed.routing.distances import Adjacency

PUBLISHED: Mapping[str, str] = {
    "pod": "HPN, one pod",
    "pods": "HPN, two pods",
    "dcn-plus": "DCN+",
    "meta-24k": "Meta",
    "superpod": "SuperPOD, 4 units",
    "superpod-16": "SuperPOD, 16 units",
    "spectrum-x": "Spectrum-X (SimAI)",
    "megascale": "MegaScale",
    "fire-flyer": "Fire-Flyer 2",
    "deepseek-planes": "DeepSeek's planes",
}
"""Presets of whole networks, and what they are."""
_SWITCH_BPS, _OPTIC_BPS = 51.2e12, 400e9
"""What the prices are for. All cost by rate: switches by that of their ports in use, NIC-ToR cables as 400G."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Figures of a network. ``switches``, ``links``, ``optics`` (as of 400G), ``dollars``: for each GPU.

    ``hops``: switches on the longest of the shortest paths from the first NIC's ToR. ``paths``: shortest ones between
    NICs of one rail in the first and the last segment, all ports together. ``below_tor``: NICs that lose a port with a
    ToR.
    """

    title: str
    gpus: int
    tiers: int
    hops: int
    switches: float
    links: float
    optics: float
    dollars: float
    paths: int
    below_tor: int


def counts(title: str, fabric: Fabric, times: int = 1) -> Counts:
    """Count a fabric that stands for ``times`` equal planes, a NIC having a port in each."""
    found = inventory(fabric)
    spares = {node.name for node in fabric.nodes if node.spare}
    nics = [nic for nic in fabric.nics if nic.host not in spares]
    switches = found.tors + found.aggs + found.cores
    links = [each for each in found.links if not each.spare]
    access = [each for each in links if each.kind is LinkKind.ACCESS]
    above = [each for each in links if each.kind in (LinkKind.FABRIC, LinkKind.CORE, LinkKind.MESH)]
    access_bps, above_bps = (sum(each.count * each.rate_bps for each in some) for some in (access, above))
    dollars = (
        (access_bps + 2 * above_bps) / _SWITCH_BPS * PRICES["switch"]
        + 2 * above_bps / _OPTIC_BPS * PRICES["optic"]
        + access_bps / _OPTIC_BPS * PRICES["access"]
    )
    below = Counter(tor for nic in nics for tor in {link.upper.node for link in nic.links})
    return Counts(
        title,
        found.gpus,
        1 + (found.aggs > 0) + (found.cores > 0),
        _hops(fabric, nics),
        times * switches / found.gpus,
        times * sum(each.count for each in (*access, *above)) / found.gpus,
        times * 2 * above_bps / _OPTIC_BPS / found.gpus,
        times * dollars / found.gpus,
        times * shortest_paths(fabric, nics[0], _far(nics)),
        max(below.values()),
    )


def _hops(fabric: Fabric, nics: Sequence[Nic]) -> int:
    distance = Adjacency(fabric).joined(nics[0].links[0].upper.node)
    return 1 + max(distance.get(link.upper.node, 0) for nic in nics for link in nic.links)


def _far(nics: Sequence[Nic]) -> Nic:
    """Return the last NIC of the first one's rail: in another segment, if there are two."""
    return next(nic for nic in reversed(nics) if nic.rail == nics[0].rail)


def shortest_paths(fabric: Fabric, src: Nic, dst: Nic) -> int:
    """Count the paths of fewest links between two NICs, through switches only; parallel links are paths apart."""
    ends = Counter(link.upper.node for link in dst.links)
    ways = Counter(link.upper.node for link in src.links)
    seen = set(ways)
    while ways:
        if met := sum(count * ends[node] for node, count in ways.items()):
            return met
        further: Counter[str] = Counter()
        for node, count in ways.items():
            for link in fabric.links_of(node):
                if link.is_routed:
                    further[link.far_end(node).node] += count
        ways = Counter({node: count for node, count in further.items() if node not in seen})
        seen.update(ways)
    return 0


def published() -> Iterator[Counts]:
    """Yield the figures of every published network, the smallest first."""
    found = (counts(title, load_fabric(preset)) for preset, title in PUBLISHED.items())
    yield from sorted(found, key=lambda each: each.gpus)
