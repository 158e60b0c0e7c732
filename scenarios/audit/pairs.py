"""Pairs of failures at one instant, those first that can hurt one flow most. Pure.

Changes when pairs are chosen by another rule. Candidates are cut links and crashed switches. First come pairs that
leave some flow without any path, then pairs on the paths of the most flows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from hpn.failover.faults import PlannedFault
from hpn.failover.faults.compose import clash
from hpn.scenarios.audit.failures import PAIR, Failure, single_failures
from hpn.scenarios.campaign.survivors import joined
from hpn.scenarios.drill.blast_radius import relations
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec

OF = ("link", "switch")
"""Kinds of failures that are paired: those that take carrier."""
_MOST_TRIED = 20_000
"""Pairs whose remaining paths are computed; the others rank by the flows that they share."""


def pairs_of(fabric: Fabric, flows: Sequence[FlowSpec], budget: int) -> tuple[Failure, ...]:
    """Return at most ``budget`` pairs, the likeliest to hurt first; equal ones in the order of the fabric."""
    if not budget:
        return ()
    singles = single_failures(fabric, OF)
    shared = _shared(fabric, singles, _one_way(flows))
    ranked = sorted(shared, key=lambda pair: (-len(shared[pair]), pair))
    tried = ranked[:_MOST_TRIED]
    cuts = {pair: _cut_off(fabric, [singles[at] for at in pair], shared[pair]) for pair in tried}
    ranked.sort(key=lambda pair: (-cuts.get(pair, 0), -len(shared[pair]), pair))
    found: list[Failure] = []
    for one, other in ranked:
        if len(found) == budget:
            break
        pair = Failure(PAIR, (*singles[one].breakages, *singles[other].breakages))
        if not _clashes(fabric, pair):
            found.append(pair)
    return tuple(found)


def _one_way(flows: Iterable[FlowSpec]) -> list[FlowSpec]:
    """Return one flow for each pair of NICs: all queue pairs of it have the same possible paths."""
    return list({(flow.src_nic, flow.dst_nic): flow for flow in flows}.values())


def _shared(
    fabric: Fabric, singles: Sequence[Failure], flows: Sequence[FlowSpec]
) -> Mapping[tuple[int, int], Sequence[FlowSpec]]:
    """Return each pair of failures that can both meet a flow, with these flows."""
    touching: dict[int, list[int]] = defaultdict(list)
    for at, failure in enumerate(singles):
        related = relations(fabric, [each.made for each in failure.breakages], flows)
        for number in (number for number, relation in related.items() if relation.is_touched):
            touching[number].append(at)
    found: dict[tuple[int, int], list[FlowSpec]] = defaultdict(list)
    for flow in flows:
        for one, other in combinations(touching[flow.id], 2):
            found[one, other].append(flow)
    return found


def _cut_off(fabric: Fabric, failures: Sequence[Failure], flows: Iterable[FlowSpec]) -> int:
    """Return how many of the flows have no path left."""
    faults = [each.made for failure in failures for each in failure.breakages]
    gone = frozenset(link.name for fault in faults for link in fault.links_hit(fabric))
    return sum(not joined(fabric, fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic), gone) for flow in flows)


def _clashes(fabric: Fabric, pair: Failure) -> bool:
    one, other = (PlannedFault(str(at), each.made, 0) for at, each in enumerate(pair.breakages))
    return bool(clash(one, other, fabric))
