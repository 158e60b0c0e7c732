"""Claim about the loss of a job with one NIC-ToR link down: a curve over its share of exposed communication. Pure.

The paper's job is LLaMa-7B on 256 GPUs; how much of an iteration it communicates is not told. With a NIC at half its
rate, communication takes twice as long: a job with a share s of it loses s / (1 + s). The curve is measured, and the
share at which the paper's -6.25 % lies is compared with that of LLaMa-7B by arithmetic.
"""

from __future__ import annotations

from itertools import pairwise

from hpn.failover.analysis.job import Iteration
from hpn.failover.analysis.model import DrillMetrics, EdgeKind
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.job_judges import compute_ms_of, job_of
from hpn.scenarios.paper.measures import ClaimEvidence, Finding, edges_of
from hpn.scenarios.paper.models import GRADIENT_BYTES, LLAMA_7B
from hpn.scenarios.paper.variants import Variant

_DRILL, _ONE_TOR = "job-link-down-full-load", "job-link-down-full-load-single-tor"
COMPUTE_MS = (700, 400, 250, 120, 50, 15)
"""Compute of an iteration; its sum of 128 KB takes some 30 ms."""

VARIANTS = tuple(
    Variant(
        f"job-link-down-compute-{ms}ms",
        _DRILL,
        {"job.training.compute": f"{ms} ms", "job.training.data_size": "128 KB"},
    )
    for ms in COMPUTE_MS
)
_RUNS = (_DRILL, *(variant.name for variant in VARIANTS))

PAPER = 0.0625
_SETTLED_NS = 10**9  # after the cut: what was lost then has been sent again
_FEWEST = 2

_GPUS = 256
SHARES = tuple(LLAMA_7B.share(_GPUS, size) for size in GRADIENT_BYTES)
"""With gradients of 16 and of 32 bits."""


def lost_and_share(metrics: DrillMetrics) -> tuple[float, float] | None:
    """Return the share of exposed communication before the cut, and the loss of iterations while it lasts.

    A job that stands still has lost all. None for too few iterations before.
    """
    job = job_of(metrics)
    cut, repair = (edges_of(metrics, kind)[0].edge.inject_before_ns for kind in (EdgeKind.FAILURE, EdgeKind.REPAIR))
    compute_ms = compute_ms_of(job)
    before = _period_ms([each for each in job.iterations if each.end_ns < cut])
    if before is None:
        return None
    during = _period_ms([each for each in job.iterations if cut + _SETTLED_NS < each.begin_ns and each.end_ns < repair])
    return 1 - compute_ms / before, 1.0 if during is None else 1 - before / during


def _period_ms(iterations: list[Iteration]) -> float | None:
    if len(iterations) <= _FEWEST:
        return None
    ends = [each.end_ns for each in iterations]
    return (ends[-1] - ends[0]) / (len(ends) - 1) / 1e6


def share_of(loss: float, curve: list[tuple[float, float]]) -> float | None:
    """Return the share at which a curve of shares and losses, in order of shares, has that loss; None: nowhere."""
    for (share, one), (next_share, other) in pairwise(curve):
        if one <= loss <= other and one < other:
            return share + (next_share - share) * (loss - one) / (other - one)
    return None


def link_down_job(found: ClaimEvidence) -> Finding:
    """Judge the share of exposed communication at which a job loses what the paper's did."""
    told = [lost_and_share(found.drills[name]) for name in _RUNS]
    curve = sorted(each for each in told if each is not None)
    if len(curve) < len(told):
        return Finding("too few iterations were measured to tell", None)
    at = share_of(PAPER, curve)
    least, most = curve[0], curve[-1]
    text = f"{-least[1]:.1%} of iterations at {least[0]:.1%} exposed communication, {-most[1]:.1%} at {most[0]:.1%}"
    where = "nowhere" if at is None else f"at {at:.1%}"
    low, high = SHARES
    text += f"; {-PAPER:.2%} lies {where} (LLaMa-7B on 256 GPUs, computed: {low:.1%} to {high:.1%})"
    points = tuple({"share": share, "loss": loss} for share, loss in curve)
    return Finding(text, at is not None and low <= at <= high, points)


CLAIMS = (
    Claim(
        "dual-tor-link-down-job",
        "dual-ToR: with one NIC-ToR link down a job loses few iterations",
        "-6.25 %",
        "a sum waits for its slowest NIC, which has half its rate: the loss goes by the share of exposed communication,"
        " which the paper does not tell; LLaMa-7B's is computed with its batch of 4 million tokens and 40 % of an H800",
        _RUNS,
        link_down_job,
        without=(Without("a second ToR", dict.fromkeys(_RUNS, _ONE_TOR)),),
        variants=VARIANTS,
    ),
)
