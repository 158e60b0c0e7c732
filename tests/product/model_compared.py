"""A run of the lab and the model's answer for the same drill, figure against figure. PURE.

The model is given the drill and the run's seed, and nothing of what the run measured but by ``measured.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from failover.analysis.model import DrillMetrics, EdgeKind
from failover.analysis.readings import Reading
from results.run.reading import Run, read
from scenarios.drill.model import Drill
from scenarios.model.answer import Modelled, modelled
from scenarios.model.figures import loads
from scenarios.model.measured import Measured
from scenarios.model.rates import Floats
from scenarios.run.phase import in_phase
from testbed.errors import InputError

_LEAST_LOAD = 0.02
"""Of a port's rate: what carries less carries acknowledgements, which are not modelled."""
_DRAWS = 20


@dataclass(frozen=True, slots=True)
class Compared:
    """One run against the model. Differences are shares of the measured figure; None: nothing to compare."""

    drill: str
    load: float | None  # the largest of any switch port's load, before the fault and while it lasts
    load_repaired: float | None  # the same after the repair, while flows return when timers let them
    goodput: float | None  # the largest of any NIC's and direction's, before, during and after each edge
    measured_ms: tuple[float, ...]  # outages at failures, of flows that are hit
    drawn_ms: tuple[float, ...]  # the same, modelled
    alike: float | None  # probability that both are of one distribution; None: no flow is hit
    iterations: Sequence[tuple[str, float, float]]  # when, measured ms, modelled ms
    doubts: tuple[str, ...]  # the model's own


def compare(folder: Path, drill: Drill, measured: Measured) -> Compared:
    """Hold a run against the model. InputError when the folder is not whole, or of another drill."""
    run = read(folder)
    if run.metrics is None or run.drill is None or run.manifest.drill != drill.name:
        raise InputError(f"{folder} is no whole run of {drill.name}")
    seeded = in_phase(drill, run.manifest.phase)
    first = modelled(seeded, measured, 0)
    if run.metrics.job is not None and first.metrics.job is not None:
        times = tuple(_iterations(run.metrics, first.metrics))
        return Compared(drill.name, None, None, None, (), (), None, times, first.doubts)
    answers = [first, *(modelled(seeded, measured, seed) for seed in range(1, _DRAWS))]
    loaded = list(_loads(run, first))
    outages = _outages(run.metrics)
    drawn = tuple(ms for answer in answers for ms in _outages(answer.metrics))
    step_ms = run.metrics.resolution_ms
    return Compared(
        drill=drill.name,
        load=max((share for share, repaired in loaded if not repaired), default=None),
        load_repaired=max((share for share, repaired in loaded if repaired), default=None),
        goodput=max(_goodputs(run.metrics, first.metrics), default=None),
        measured_ms=outages,
        drawn_ms=drawn,
        alike=same_distribution(outages, drawn, step_ms) if outages else None,
        iterations=(),
        doubts=(),
    )


def _iterations(measured: DrillMetrics, expected: DrillMetrics) -> Iterator[tuple[str, float, float]]:
    """The mean before the fault, and what the last part of each edge's window came to; a job that is dead has none."""
    if measured.job is None or expected.job is None:
        return
    yield "before", measured.job.mean_ms, expected.job.mean_ms
    for result, one, other in zip(measured.edges, measured.job.edges, expected.job.edges, strict=True):
        if one.rate_after and other.rate_after:
            yield f"after {result.edge.kind}", 1e3 / one.rate_after, 1e3 / other.rate_after


def _loads(run: Run, answer: Modelled) -> Iterator[tuple[float, bool]]:
    """How far each sampled port's load is from the model's, between the first and the last reading of each window."""
    if run.metrics is None or run.series is None or run.series.ports is None or answer.streams is None:
        return
    links = answer.links
    injected = [edge.edge.inject_before_ns for edge in run.metrics.edges]
    planned = [edge.inject_before_ns for edge in answer.streams.ways.edges]
    start_ns = injected[0] - planned[0] if injected else 0
    windows = [(False, start_ns, injected[0], start_ns)]
    ends = [edge.edge.window_end_ns for edge in run.metrics.edges]
    for edge, end_ns, at_ns in zip(run.metrics.edges, ends, planned, strict=True):
        begin_ns = edge.edge.inject_before_ns
        windows.append((edge.edge.kind is EdgeKind.REPAIR, begin_ns, end_ns, begin_ns - at_ns))
    for series in run.series.ports.series:
        node, _, port = series.port.port.partition(":")
        at = links.out_of(node, port)
        readings = list(series.until(ends[-1]))
        for repaired, begin_ns, end_ns, offset_ns in windows:
            inside = [reading for reading in readings if begin_ns <= reading.at_ns <= end_ns]
            if len(inside) < 2:
                continue
            found = _bps(inside[0], inside[-1]) / links.capacity[at]
            span = inside[0].at_ns - offset_ns, inside[-1].at_ns - offset_ns
            expected = float(loads(answer.streams, *span)[at] / links.capacity[at])
            if max(found, expected) >= _LEAST_LOAD:
                yield abs(expected - found) / max(found, _LEAST_LOAD), repaired


def _bps(first: Reading, last: Reading) -> float:
    return (last.sent_bytes - first.sent_bytes) * 8e9 / (last.at_ns - first.at_ns)


def _goodputs(measured: DrillMetrics, expected: DrillMetrics) -> Iterator[float]:
    """How far the goodput of each NIC and direction is from the model's, as a share of the most that it was."""
    for found, mine in zip(measured.edges, expected.edges, strict=True):
        here = {(nic.nic, nic.direction): nic.goodput for nic in mine.nics}
        for nic in found.nics:
            one, other = nic.goodput, here[nic.nic, nic.direction]
            pairs = (
                (one.before_bps, other.before_bps),
                (one.during_bps, other.during_bps),
                (one.after_bps, other.after_bps),
            )
            most = max(there for there, _ in pairs)
            if most:
                yield max(abs(there - modelled_bps) / most for there, modelled_bps in pairs)


def _outages(metrics: DrillMetrics) -> tuple[float, ...]:
    """Of every flow that a failure hits, ms."""
    failures = [at for at, edge in enumerate(metrics.edges) if edge.edge.kind is EdgeKind.FAILURE]
    results = [flow.edges[at] for at in failures for flow in metrics.flows]
    return tuple(result.outage_plbm_ms for result in results if result.relation.is_touched)


def same_distribution(
    one: Sequence[float], other: Sequence[float], step: float, *, rounds: int = 999, seed: int = 1
) -> float:
    """The probability of a Kolmogorov-Smirnov distance as large as theirs if both were of one distribution.

    A permutation test: the two are thrown together and parted at random, by ``seed``, so many times. What differs by
    less than three ``step``s, the method's resolution, counts as equal.
    """
    both = np.array([*one, *other], dtype=np.float64)
    both = _merged(both, 3 * step)
    rng = np.random.default_rng(seed)
    seen = _distance(both[: len(one)], both[len(one) :])
    mixed = (rng.permutation(both) for _ in range(rounds))
    as_far = sum(_distance(each[: len(one)], each[len(one) :]) >= seen - 1e-12 for each in mixed)
    return (as_far + 1) / (rounds + 1)


def _merged(values: Floats, within: float) -> Floats:
    """Values, those in a row of which none is further than ``within`` from the first of them given its value."""
    found, first = values.copy(), -np.inf
    for at in np.argsort(values):
        first = first if values[at] - first <= within else float(values[at])
        found[at] = first
    return found


def _distance(one: Floats, other: Floats) -> float:
    """The largest distance between two empirical distribution functions."""
    at = np.concatenate((one, other))
    shares = [np.searchsorted(np.sort(each), at, side="right") / len(each) for each in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())
