"""Claim about a flapping link below a job: a region of flap patterns instead of one. Pure.

The paper does not tell how its link flapped. A port is used again 2.5 s after carrier is back (LACP, Linux bonding), so
flaps that follow each other faster are one outage. What it loses waits for NCCL's retry timer, 4.29 s a try: a halt
beyond 9 s takes an outage that the second retry, after 8.59 s, still meets, or several outages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import JsonValue

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.job import JobMetrics
from hpn.results.judge.verdict import Check, Outcome, at_least
from hpn.scenarios.paper.claim import Claim, Without
from hpn.scenarios.paper.job_judges import job_of
from hpn.scenarios.paper.judges import HALT_MS
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.variants import Variant

SINGLE, HPN = "job-flap-single-tor", "job-flap-hpn"
DOWN_MS, PERIODS_MS, COUNTS = (200, 600), (800, 2000, 4000), (1, 3, 5)

_EXPECT: JsonValue = [{"wrong_results": {"at_most": 0}}, {"state_restored": True}]
"""A pattern may kill the job or leave it alone; both are results."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Flap pattern: ``count`` times down for ``down_ms`` of each ``period_ms``."""

    count: int
    down_ms: int
    period_ms: int

    def name(self, drill: str) -> str:
        """Return the name of the drill with this pattern."""
        return f"{drill}-{self.count}x{self.down_ms}ms-every-{self.period_ms}ms"

    def variant(self, drill: str) -> Variant:
        """Return the drill with this pattern."""
        flap = "timeline.faults.0"
        changes: dict[str, JsonValue] = {
            f"{flap}.count": self.count,
            f"{flap}.period": f"{self.period_ms} ms",
            f"{flap}.duty": f"{100 * self.down_ms / self.period_ms:g} %",
            "job.training.data_size": "100 KB",
            "expect": _EXPECT,
        }
        return Variant(self.name(drill), drill, changes)


PATTERNS = tuple(
    Pattern(count, down_ms, period_ms)
    for down_ms in DOWN_MS
    for period_ms in PERIODS_MS
    for count in COUNTS
    if count > 1 or period_ms == PERIODS_MS[0]  # once has no period
)
_RUNS = {drill: tuple(pattern.name(drill) for pattern in PATTERNS) for drill in (SINGLE, HPN)}


def halt(job: JobMetrics) -> Check:
    """Compare what a flap adds to an iteration with the paper's halt; a dead job halts for good."""
    if job.deaths or job.edges[-1].rate_after == 0:
        return at_least("", math.inf, HALT_MS, strict=True)
    halt_ms = max(each.ms for each in job.iterations) - job.mean_ms
    low, high = around(halt_ms, job.tick_ms)
    return at_least("", halt_ms, HALT_MS, low=low, high=high, strict=True)


def flap_job(found: ClaimEvidence) -> Finding:
    """Judge flap patterns: some halt a job on single-ToR for longer than the paper tells, and none a job on HPN."""
    single, hpn = ([halt(job_of(found.drills[name])) for name in _RUNS[drill]] for drill in (SINGLE, HPN))
    longer = [pattern for pattern, each in zip(PATTERNS, single, strict=True) if each.outcome is Outcome.PASS]
    text = (
        f"halted longer by {len(longer)} of {len(PATTERNS)} patterns, up to {_seconds(single)}; HPN by "
        f"{sum(each.outcome is Outcome.PASS for each in hpn)}, up to {_seconds(hpn)}"
    )
    points = tuple(_point(*each) for each in zip(PATTERNS, single, hpn, strict=True))
    return Finding(text, bool(longer) and all(each.outcome is Outcome.FAIL for each in hpn), points)


def _point(pattern: Pattern, single: Check, hpn: Check) -> dict[str, float]:
    """Return a pattern with both halts; the halt of a job that did not go on is left out."""
    halts = {"single_ms": single.measured, "hpn_ms": hpn.measured}
    told = {name: ms for name, ms in halts.items() if ms is not None and math.isfinite(ms)}
    return {"count": pattern.count, "down_ms": pattern.down_ms, "period_ms": pattern.period_ms, **told}


def _seconds(halts: list[Check]) -> str:
    longest = max(each.measured or 0.0 for each in halts)
    return "death" if longest == math.inf else f"{longest / 1000:.1f} s"


CLAIMS = (
    Claim(
        "single-tor-flap-job",
        "single-ToR: a flapping link halts a job with NCCL's timers",
        "> 9 s",
        "the paper does not tell its pattern, so that patterns are tried, each once; a halt is what they add to an"
        " iteration; sums are 2 % of one, so that most flaps meet a job that computes",
        (*_RUNS[SINGLE], *_RUNS[HPN]),
        flap_job,
        without=(Without("only one ToR (HPN)", dict(zip(_RUNS[SINGLE], _RUNS[HPN], strict=True))),),
        variants=tuple(pattern.variant(drill) for drill in (SINGLE, HPN) for pattern in PATTERNS),
    ),
)
