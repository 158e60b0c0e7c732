"""Claims of Meta's paper on RoCE for training about hashes, pinned paths and admission, with their judges. Pure.

Gangidi et al., RDMA over Ethernet for Distributed AI Training at Meta Scale (SIGCOMM 2024), sections 4 and 5. Figures
are those that Meta's own article of 2024-08-05 repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from hpn.failover.analysis.job import SpanResult
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.gains import Faster, Pair
from hpn.scenarios.paper.interval import Band
from hpn.scenarios.paper.job_judges import job_of
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.variants import Variant

_SCALING = Pair("job-qps-many", "job-qps-one")
_HALF = Pair("job-pinned-whole", "job-pinned-half")
_CUT, _CUT_ELSEWHERE = "job-pinned-link-down", "job-pinned-link-down-elsewhere"
_GRANTS = "incast-victim"
_DCQCN, _FREE = (f"{_GRANTS}-{name}" for name in ("simai-200g", "line-rate"))
_UPLINKS = 4

_LONGER = Band(1 / 0.7 - 1, math.inf, "a pace that is lower by 30 % takes 43 % longer; the paper says more than that")


def pinned_and_cut(found: ClaimEvidence) -> Finding:
    """Judge what a failed uplink costs pinned paths: more than its share of a ToR's uplinks."""
    edge = job_of(found.drills[_CUT]).edges[0]
    lost = 1 - edge.rate_after / edge.rate_before
    return Finding(f"{-lost:+.1%} of iterations by one of {_UPLINKS} uplinks of a ToR", lost > 1 / _UPLINKS)


def victim_spared(found: ClaimEvidence) -> Finding:
    """Judge how long a flow past an incast takes if receivers admit: no longer than with DCQCN."""
    runs = [found.drills[name] for name in (_GRANTS, _DCQCN)]
    (grants, to_one), (dcqcn, to_one_dcqcn) = (victim_and_incast_ms(job_of(run).spans) for run in runs)
    text = f"the victim's messages take {grants:.0f} ms, with DCQCN {dcqcn:.0f} ms"
    details = f"those of the incast {to_one:.0f} ms, with DCQCN {to_one_dcqcn:.0f} ms"
    return Finding(text, grants <= dcqcn + job_of(runs[0]).tick_ms, details=details)


def victim_and_incast_ms(spans: Sequence[SpanResult]) -> tuple[float, float]:
    """Return the mean times of the messages that go to one target, and to the other: 'SOURCE to TARGET'."""
    incast, victim = ([span.mean_ms for span in spans if span.label.endswith(f" to {at}")] for at in (0, 1))
    return fmean(victim), fmean(incast)


CLAIMS = (
    Claim(
        "e-ecmp",
        "not of this paper: more queue pairs, all hashed, speed AllReduce up (E-ECMP, Meta, SIGCOMM 2024)",
        "up to +40 %",
        "8 GPUs in two racks, 8 queue pairs or 1; source ports drawn for each stand for a hash of its number",
        _SCALING.drills,
        Faster(_SCALING, 0.4, "AllReduce"),
        drawn=(*_SCALING.drills, "job-qps-same-port"),
        without=(Without("a hash of queue pairs (one source port)", {_SCALING.better: "job-qps-same-port"}),),
        shortfall="here all hops of the ring leave the rack and nothing else takes time; the paper tells neither its"
        " AllReduce's size nor how much of it is NVLink",
    ),
    Claim(
        "path-pinning",
        "not of this paper: paths pinned by destination slow a job in racks that are half full (Meta, SIGCOMM 2024)",
        "pace -30 % and more",
        "12 GPUs fill three racks of four or have half of six, drawn; the gain of whole racks is told",
        _HALF.drills,
        Faster(_HALF, _LONGER.low, "AllReduce", _LONGER),
        drawn=(_HALF.other, "job-pinned-half-ecmp"),
        without=(
            Without("half-full racks", {_HALF.other: _HALF.better}),
            Without("pinned paths (E-ECMP)", {_HALF.other: "job-pinned-half-ecmp"}),
        ),
    ),
    Claim(
        "path-pinning-failure",
        "not of this paper: after a failure ECMP puts pinned flows on one link (Meta, SIGCOMM 2024)",
        "they collide",
        "the paper gives no figure; a quarter of the uplinks fails, so that a quarter is the least to lose",
        (_CUT,),
        pinned_and_cut,
        without=(Without("a failed link of its racks", {_CUT: _CUT_ELSEWHERE}),),
        variants=(Variant(_CUT_ELSEWHERE, _CUT, {"timeline.faults.0.target": "p0.s5.t0.0-p0.a0.0"}),),
    ),
    Claim(
        "receiver-driven",
        "not of this paper: receivers that admit data spare an incast's victims without DCQCN (Meta, SIGCOMM 2024)",
        "as with DCQCN",
        "figure not verified; 3:1 over lossless switches, NCCL's 4 MB a NIC, times 1:200",
        (_GRANTS, _DCQCN),
        victim_spared,
        without=(Without("admission and DCQCN", {_GRANTS: _FREE}),),
        variants=tuple(
            Variant(name, _GRANTS, {"job.congestion": name.removeprefix(f"{_GRANTS}-")}) for name in (_DCQCN, _FREE)
        ),
    ),
)
