"""Number of segments that a job of some 2,300 GPUs spans, by the placement of jobs on full-size fabrics. Pure.

The paper's job has 'over 2,300 GPUs (288+ hosts)': 19 segments on DCN+, 3 on HPN, and 37 % less traffic between
segments (section 9.1). The paper does not say how its scheduler placed it, so both extremes are counted. Both use as
few segments as possible. In one, ring neighbours share a segment if they can; in the other they are random.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.job.placement import place

HOSTS = (288, 299)
"""Number of hosts: 2,304 to 2,392 GPUs."""

PAPER = (19, 3)
_BASELINE = "dcn-plus-pod"
_LOTS = range(10)


@dataclass(frozen=True, slots=True)
class Span:
    """Span of a job: segments, and the share of a ring's hops that leave a segment, in order and at random."""

    segments: int
    in_order: float
    by_lot: float


def span_of(spec: FabricSpec, hosts: int) -> Span:
    """Return the span of a job of ``hosts`` hosts on as many pods of ``spec`` as it needs."""
    pods = -(-hosts // (spec.segments * spec.hosts))
    fabric = build(
        spec.model_copy(
            update={"pods": pods, "rails": 1, "aggs": 1, "uplinks": 1, "cores": 1, "core_groups": 1, "spare_hosts": 0}
        )
    )  # switches above ToRs and further rails do not affect the placement
    packed = [each.segment for each in place(fabric, hosts=hosts)]
    fewest = len(set(packed))
    lots = [place(fabric, hosts=hosts, segments=fewest, order="random", seed=seed) for seed in _LOTS]
    return Span(fewest, _leaving(packed), fmean(_leaving([each.segment for each in lot]) for lot in lots))


def _leaving(ring: list[int]) -> float:
    return sum(a != b for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)) / len(ring)


def segments(found: ClaimEvidence) -> Finding:
    """Judge the job on DCN+ and on the evidence's network."""
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
