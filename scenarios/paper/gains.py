"""Comparison of two networks with the same work, draw by draw: the speed-up of the better one. Pure.

The paper's figures are ratios of the paces of two networks. Here a ratio is computed for every draw. A draw is a seed
of the topology, which sets the hashes of switches and LAGs, and the order of hosts if random. The mean ratio with its
95 % interval is compared with the paper's figure. It agrees if the figure lies in the interval, or the whole interval
in a band whose reason the claim gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean

from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.paper.interval import Band, Estimate, estimate, one_run, says_the_same
from hpn.scenarios.paper.job_judges import compute_ms_of, job_of
from hpn.scenarios.paper.measures import ClaimEvidence, Finding, mean_queue_ms

WARM_UP_NS = 10**9
"""Warm-up: time in collectives before the first iteration that counts, as nccl-tests leaves out its first ones.

It is more than five increase timers of congestion control in the drills compared here. Compute does not count: a
training job's second sum, after 4 s of compute, still takes up to half as long again as its later ones.
"""

UNTOLD = Finding("too little was measured to tell", None)
_FEWEST = 3  # iterations counted; with fewer, one that ends a step late weighs too much


def period_ms(job: JobMetrics) -> float | None:
    """Return the mean time between ends of iterations of all ranks after warm-up, or None for too few.

    If groups of ranks do not wait for each other, it is that of the slowest group.
    """
    computed_ns = 1e6 * compute_ms_of(job)
    warm = [
        each.end_ns
        for number, each in enumerate(job.iterations, 1)
        if each.end_ns - job.iterations[0].begin_ns - number * computed_ns > WARM_UP_NS
    ]
    if len(warm) < _FEWEST:
        return None
    return (max(warm) - min(warm)) / (len(warm) - 1) / 1e6


@dataclass(frozen=True, slots=True)
class Pair:
    """Drills of the supposedly better network, and of the other; at least one is run with every draw."""

    better: str
    other: str

    @property
    def drills(self) -> tuple[str, str]:
        """Drills of both networks."""
        return self.better, self.other

    def of(
        self, found: ClaimEvidence, figure: Callable[[DrillMetrics], float | None]
    ) -> list[tuple[float, float]] | None:
        """Return a figure of both networks, draw by draw; None when a run has none.

        A single pair if no hash decides on either network, so that each was run once.
        """
        runs = [tuple(found.run(drill, draw) for drill in self.drills) for draw in range(1, found.draws + 1)]
        if len({tuple(map(id, pair)) for pair in runs}) == 1:
            runs = runs[:1]
        both = [(figure(one), figure(two)) for one, two in runs]
        told = [(one, two) for one, two in both if one is not None and two is not None]
        return told if len(told) == len(runs) else None


def estimate_of(
    pairs: list[tuple[float, float]], found: ClaimEvidence, of: Callable[[float, float], float]
) -> Estimate:
    """Return the estimate of what ``of`` makes of each pair; without an interval if each network was run once."""
    values = [of(better, other) for better, other in pairs]
    return one_run(values[0]) if len(values) == 1 < found.draws else estimate(values)


def gain(better: float, other: float) -> float:
    """Return how much faster the better network is, as a share."""
    return other / better - 1


def period(metrics: DrillMetrics) -> float | None:
    """Return ``period_ms`` of the run's job."""
    return period_ms(job_of(metrics))


@dataclass(frozen=True, slots=True)
class Faster:
    """Judge: the better network is faster by the paper's gain, or within ``band``."""

    pair: Pair
    paper: float  # gain as a share
    what: str = "iteration"
    band: Band | None = None

    def __call__(self, found: ClaimEvidence) -> Finding:
        """Return our gain."""
        periods = self.pair.of(found, period)
        if periods is None:
            return UNTOLD
        gains = estimate_of(periods, found, gain)
        better, other = fmean(pair[0] for pair in periods), fmean(pair[1] for pair in periods)
        times = f"an {self.what} takes {better:.0f} ms, else {other:.0f} ms"
        return Finding(gains.text(), says_the_same(gains, self.paper, self.band), details=times)


@dataclass(frozen=True, slots=True)
class ShorterQueues:
    """Judge: the queues of ports towards NICs are shorter by the paper's share, or within ``band``."""

    pair: Pair
    paper: float  # change as a share, below 0
    band: Band | None = None

    def __call__(self, found: ClaimEvidence) -> Finding:
        """Return our queues: the mean over ports and time, then over draws."""
        queues = self.pair.of(found, mean_queue_ms)
        if queues is None:
            return UNTOLD
        change = estimate_of(queues, found, lambda better, other: better / other - 1 if other else 0.0)
        better, other = fmean(pair[0] for pair in queues), fmean(pair[1] for pair in queues)
        queued = f"{better:.2f} ms on the mean of ports towards NICs, else {other:.2f} ms"
        return Finding(change.text(), says_the_same(change, self.paper, self.band), details=queued)


@dataclass(frozen=True, slots=True)
class FasterTraining:
    """Judge: as ``Faster``, with the share of sums in an iteration that the paper's gain requires."""

    pair: Pair
    paper: float
    band: Band | None = None

    def __call__(self, found: ClaimEvidence) -> Finding:
        """Return our gain; the share is that of the non-compute time of an iteration on the better network."""
        told = Faster(self.pair, self.paper, band=self.band)(found)
        periods, computes = self.pair.of(found, period), self.pair.of(found, compute_ms)
        if periods is None or computes is None:
            return told
        compute = fmean(one for one, _ in computes)
        better, other = (fmean(pair[at] for pair in periods) - compute for at in (0, 1))
        needed = (other - better) / self.paper - better  # (needed + other) / (needed + better) = 1 + paper
        share = f"; sums are {better / (better + compute):.1%} of an iteration"
        if needed > 0:
            share += f", for {self.paper:+.1%} they would be {better / (needed + better):.1%}"
        return replace(told, ours=told.ours + share)


def compute_ms(metrics: DrillMetrics) -> float | None:
    """Return the compute time of an iteration in ms, or None for a job without any."""
    return compute_ms_of(job_of(metrics)) or None
