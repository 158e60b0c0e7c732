"""How many segments a job of some 2,300 GPUs spans: counted by the placement of jobs on fabrics of full size. Pure.

The paper's job has 'over 2,300 GPUs (288+ hosts)': 19 segments on DCN+, 3 on HPN, and 37 % less traffic between
segments (section 9.1). How its scheduler placed it is not told, so both ends are counted: as few segments as hold it,
neighbours of a ring in one segment wherever they can, and neighbours drawn by lot in the same segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from hpn.scenarios.paper.judges import Evidence, Finding
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.job.placement import place

HOSTS = (288, 299)
"""2,304 to 2,392 GPUs."""

PAPER = (19, 3)
_BASELINE = "dcn-plus-pod"
_LOTS = range(10)


@dataclass(frozen=True, slots=True)
class Span:
    """Where a job is: segments, and the share of a ring's hops between hosts that leave one, in order and by lot."""

    segments: int
    in_order: float
    by_lot: float


def span_of(spec: FabricSpec, hosts: int) -> Span:
    """The span of a job of so many hosts on as many pods of ``spec`` as it needs."""
    pods = -(-hosts // (spec.segments * spec.hosts))
    fabric = build(
        spec.model_copy(
            update={"pods": pods, "rails": 1, "aggs": 1, "uplinks": 1, "cores": 1, "core_groups": 1, "spare_hosts": 0}
        )
    )  # switches above ToRs and further rails do not matter to where hosts are
    packed = [each.segment for each in place(fabric, hosts=hosts)]
    fewest = len(set(packed))
    lots = [place(fabric, hosts=hosts, segments=fewest, order="random", seed=seed) for seed in _LOTS]
    return Span(fewest, _leaving(packed), fmean(_leaving([each.segment for each in lot]) for lot in lots))


def _leaving(ring: list[int]) -> float:
    return sum(a != b for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)) / len(ring)


def segments(found: Evidence) -> Finding:
    """The job on DCN+ and on the network that is counted."""
    theirs, ours = ([span_of(PRESETS[name].spec, hosts) for hosts in HOSTS] for name in (_BASELINE, found.preset))
    many, few = ([span.segments for span in spans] for spans in (theirs, ours))
    in_order = fmean(own.in_order / other.in_order - 1 for own, other in zip(ours, theirs, strict=True))
    by_lot = fmean(own.by_lot / other.by_lot - 1 for own, other in zip(ours, theirs, strict=True))
    text = (
        f"{_range(many)} to {_range(few)} for {HOSTS[0]} to {HOSTS[1]} hosts of 8; hops of a ring that leave a "
        f"segment {in_order:+.0%} in order, {by_lot:+.0%} by lot"
    )
    return Finding(text, min(many) <= PAPER[0] <= max(many) and set(few) == {PAPER[1]})


def _range(counts: list[int]) -> str:
    return "-".join(str(count) for count in sorted(set(counts)))
