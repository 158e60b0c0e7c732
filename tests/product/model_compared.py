"""A run of the lab and the model's answer for the same drill, figure against figure. PURE.

The model is given the drill and the run's seed, and nothing of what the run measured but by ``measured.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

import numpy as np

from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult, Relation, settled_window_ns
from hpn.failover.analysis.port_sampling import Reading
from hpn.results.run.reading import Run, read
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.model.answer import Modelled, modelled
from hpn.scenarios.model.failover_times import FailoverTimes
from hpn.scenarios.model.figures import loads
from hpn.scenarios.model.rates import Floats
from hpn.scenarios.run.phase import in_phase
from hpn.testbed.errors import InputError
from hpn.testbed.events import EventKind

_LEAST_LOAD = 0.005
"""Of a port's rate: what carries less carries LACP, BGP and ARP, which are not modelled."""


_FULL = 0.999
"""Of a link's rate: such a link drops, and which flows lose is not modelled."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest difference in runs whose links could all carry what came, and in the others; None: no such run."""

    fits: float | None
    full: float | None


@dataclass(frozen=True, slots=True)
class Compared:
    """One cell's runs against the model. Differences are shares of the measured figure; None: nothing to compare."""

    ways: tuple[int, int]  # of queue pairs at the edges and the end: how many were compared, how many are others
    load: Largest  # of any switch port's load: before the fault, in it, and once all flows are home
    goodput: Largest  # of any NIC's and direction's: before the fault, in it, and at the end
    goodput_repair: float | None  # from the repair on, flows that return and all: means of runs and of answers
    home_s: tuple[Sequence[float], Sequence[float]]  # from the repair until all flows are home: lab, model
    alike: float | None  # probability that outages are of one distribution; None: no flow is hit
    iterations: Sequence[tuple[str, float, float]]  # when, measured ms, modelled ms
    doubts: tuple[str, ...]  # the model's own
    always: bool = False  # it has doubts without a fault, too

    def doubted(self, when: str) -> bool:
        """True if the model does not vouch for its iterations in that window."""
        return self.always or (when == "after failure" and bool(self.doubts))


def compare(folders: Sequence[Path], drill: Drill, measured: FailoverTimes, phases: Sequence[int]) -> Compared:
    """Hold runs of one drill against the model. InputError when a folder is not whole, or of another drill.

    The model answers once for each of ``phases`` that times were taken at, as if it had drawn those of that phase: a
    run has one phase of the protocols' timers, which all of its flows share, so its flows are no sample of their own.
    """
    runs = [_run(folder, drill) for folder in folders]
    seeded = [in_phase(drill, run.manifest.phase) for run in runs]
    if runs[0].metrics is not None and runs[0].metrics.job is not None:
        answer = modelled(PlannedRun(seeded[0]), measured, 0)
        times = tuple(_iterations(runs[0].metrics, answer.metrics))
        nothing = Largest(None, None)
        healthy = replace(seeded[0], timeline=replace(seeded[0].timeline, faults=()), expectations=())
        always = bool(answer.doubts and modelled(PlannedRun(healthy), measured, 0).doubts)
        return Compared((0, 0), nothing, nothing, None, ((), ()), None, times, answer.doubts, always)
    by_phase = [_of_phase(measured, phase) for phase in phases]
    answers = [[modelled(each, times, 0) for times in by_phase] for each in map(PlannedRun, seeded)]
    pairs = [(run, each[0]) for run, each in zip(runs, answers, strict=True)]
    same = [each for run, answer in pairs for each in _ways(run, answer)]
    return Compared(
        ways=(len(same), same.count(False)),
        load=_largest(pairs, _loads),
        goodput=_largest(pairs, _steady),
        goodput_repair=max(_while_returning([_metrics(run) for run in runs], answers), default=None),
        home_s=([_home_ns(run) / 1e9 for run in runs], [_model_home_ns(answer) / 1e9 for answer in answers[0]]),
        alike=_alike([_metrics(run) for run in runs], [answer.metrics for answer in answers[0]]),
        iterations=(),
        doubts=(),
    )


def _largest(pairs: Sequence[tuple[Run, Modelled]], of: Callable[[Run, Modelled], Iterator[float]]) -> Largest:
    fits, full = (
        max((share for run, answer in pairs if _is_full(answer) is full for share in of(run, answer)), default=None)
        for full in (False, True)
    )
    return Largest(fits, full)


def _is_full(answer: Modelled) -> bool:
    return answer.streams is not None and bool((answer.streams.course.carried >= _FULL * answer.links.capacity).any())


def _run(folder: Path, drill: Drill) -> Run:
    run = read(folder)
    if run.metrics is None or run.drill is None or run.manifest.drill != drill.name:
        raise InputError(f"{folder} is no whole run of {drill.name}")
    return run


def _metrics(run: Run) -> DrillMetrics:
    if run.metrics is None:
        raise InputError(f"{run.manifest.drill} has no metrics")
    return run.metrics


def _of_phase(measured: FailoverTimes, phase: int) -> FailoverTimes:
    """The times that were taken at one phase."""
    there = [at for at, source in enumerate(measured.sources) if source.phase == phase]
    times = (replace(each, source=there.index(each.source)) for each in measured.times if each.source in there)
    return FailoverTimes(tuple(measured.sources[at] for at in there), tuple(times))


def _iterations(measured: DrillMetrics, expected: DrillMetrics) -> Iterator[tuple[str, float, float]]:
    """The mean before the fault, and what the last part of each edge's window came to; a job that is dead has none."""
    if measured.job is None or expected.job is None:
        return
    yield "before", measured.job.mean_ms, expected.job.mean_ms
    for result, one, other in zip(measured.edges, measured.job.edges, expected.job.edges, strict=True):
        if one.rate_after and other.rate_after:
            yield f"after {result.edge.kind}", 1e3 / one.rate_after, 1e3 / other.rate_after


def _ways(run: Run, answer: Modelled) -> Iterator[bool]:
    """Whether each queue pair's links are the model's, just before each edge and at the end."""
    if answer.streams is None:
        return
    edges, planned = _metrics(run).edges, answer.streams.ways.edges
    ends = edges[-1].edge.window_end_ns, planned[-1].window_end_ns
    injected = zip(edges, planned, strict=True)
    moments = [*((one.edge.inject_before_ns, other.inject_before_ns) for one, other in injected), ends]
    for at, flow in enumerate(answer.streams.flows):
        told = [path for path in run.paths or () if path.flow == flow.id and (path.links or path.port is None)]
        for lab_ns, model_ns in moments:
            lab = [path for path in told if path.at_ns <= lab_ns][-1]
            model = [piece for piece in answer.streams.ways.pieces if piece.begin_ns < model_ns][-1]
            links = [answer.fabric.links[link // 2].name for link in model.links[at] if link >= 0]
            arrives = lab.port is not None and lab.dropped is None
            yield bool(model.arrives[at]) == arrives and (not arrives or list(lab.links) == links)


def _loads(run: Run, answer: Modelled) -> Iterator[float]:
    """How far each sampled port's load is from the model's, between the first and the last reading of each window.

    The windows: before the fault; in it, once routes have converged; after the repair from when all flows are home in
    the lab and in the model. While BGP hunts paths in a direct network packets go round; the model has no such time.
    """
    if run.metrics is None or run.series is None or run.series.ports is None or answer.streams is None:
        return
    links, edges = answer.links, run.metrics.edges
    planned = [edge.inject_before_ns for edge in answer.streams.ways.edges]
    start_ns = edges[0].edge.inject_before_ns - planned[0]
    windows = [(start_ns, edges[0].edge.inject_before_ns, start_ns)]
    for edge, at_ns in zip(edges, planned, strict=True):
        begin_ns = edge.edge.inject_before_ns
        repaired = edge.edge.kind is EdgeKind.REPAIR
        settled_ns = max(_home_ns(run), _model_home_ns(answer)) if repaired else _converged_ns(edge)
        windows.append((begin_ns + settled_ns, edge.edge.window_end_ns, begin_ns - at_ns))
    for series in run.series.ports.series:
        node, _, port = series.port.port.partition(":")
        at = links.out_of(node, port)
        readings = list(series.until(edges[-1].edge.window_end_ns))
        for begin_ns, end_ns, offset_ns in windows:
            inside = [reading for reading in readings if begin_ns <= reading.at_ns <= end_ns]
            if len(inside) < 2:
                continue
            found = _bps(inside[0], inside[-1]) / links.capacity[at]
            span = inside[0].at_ns - offset_ns, inside[-1].at_ns - offset_ns
            expected = float(loads(answer.streams, *span)[at] / links.capacity[at])
            if max(found, expected) >= _LEAST_LOAD:
                yield abs(expected - found) / max(found, _LEAST_LOAD)


def _converged_ns(edge: EdgeResult) -> int:
    """From a fault until the last route changed."""
    return round((edge.phases.converge.ms or 0) * 1e6)


def _home_ns(run: Run) -> int:
    """From the repair until nothing of the lab moved any more: LAGs, routes, queue pairs, and no flow was out."""
    metrics = _metrics(run)
    edge = metrics.edges[-1]
    phases = edge.phases
    ms = [each.ms for each in (phases.switch, phases.converge, phases.path_last, phases.recover) if each.ms is not None]
    begin_ns, end_ns = edge.edge.inject_before_ns, edge.edge.window_end_ns
    back = (outage.resumed_at_ns for flow in metrics.flows for outage in flow.longest_outages)
    sessions = (
        event.at_ns for event in run.events or () if event.kind is EventKind.BGP and event.what == "established"
    )
    last = (at_ns - begin_ns for at_ns in (*back, *sessions) if at_ns is not None and begin_ns < at_ns <= end_ns)
    return max([0, *(round(each * 1e6) for each in ms), *last])


def _model_home_ns(answer: Modelled) -> int:
    """From the repair until the last flow has its way."""
    if answer.streams is None:
        return 0
    repair_ns = answer.edges[-1].inject_before_ns
    return max(0, *(piece.begin_ns - repair_ns for piece in answer.streams.ways.pieces))


def _bps(first: Reading, last: Reading) -> float:
    return (last.sent_bytes - first.sent_bytes) * 8e9 / (last.at_ns - first.at_ns)


def _goodputs(metrics: DrillMetrics) -> Iterator[tuple[EdgeKind, str, float, float, float]]:
    """Of each edge, NIC and direction: before, during and after, bit/s."""
    for edge in metrics.edges:
        for nic in edge.nics:
            one = nic.goodput
            yield edge.edge.kind, f"{nic.nic} {nic.direction}", one.before_bps, one.during_bps, one.after_bps


def _steady(run: Run, answer: Modelled) -> Iterator[float]:
    """How far goodput is from the model's, as a share of the most that it was; not while flows return."""
    metrics = _metrics(run)
    edge = metrics.edges[-1].edge
    settled_ns = edge.window_end_ns - settled_window_ns(edge, metrics.settings) - edge.inject_before_ns
    home = max(_home_ns(run), _model_home_ns(answer)) <= settled_ns
    here = {(kind, nic): figures for kind, nic, *figures in _goodputs(answer.metrics)}
    for kind, nic, *found in _goodputs(metrics):
        compared = (0, 1, 2) if kind is EdgeKind.FAILURE else (0, 2) if home else (0,)
        if max(found):
            yield max(abs(found[at] - here[kind, nic][at]) for at in compared) / max(found)


def _while_returning(runs: Sequence[DrillMetrics], answers: Sequence[Sequence[Modelled]]) -> Iterator[float]:
    """The same over the window of the repair, flows that return and all: the runs' mean against the model's."""
    lab = [_repair_goodput(run) for run in runs]
    model = [_repair_goodput(answer.metrics) for of_run in answers for answer in of_run]
    for nic in lab[0]:
        shares = [mean([of[nic][0] for of in each]) for each in (lab, model)]
        most = max(of[nic][1] for of in lab)
        if most:
            yield abs(shares[0] - shares[1]) / most


def _repair_goodput(metrics: DrillMetrics) -> dict[str, tuple[float, float]]:
    """Goodput from the repair on, and the most that it was, by NIC and direction."""
    found = _goodputs(metrics)
    return {nic: (during, max(of, during, after)) for kind, nic, of, during, after in found if kind is EdgeKind.REPAIR}


def _alike(runs: Sequence[DrillMetrics], answers: Sequence[DrillMetrics]) -> float | None:
    """The probability that outages at failures are of one distribution: of what enters at the fault, leaves, passes.

    A run counts once, by its flows' median. Of several sides the least, times how many there are (Bonferroni).
    """
    found = []
    for side in Relation:
        lab, model = ([_median_outage(each, side) for each in group] for group in (runs, answers))
        some, others = ([ms for ms in group if ms is not None] for group in (lab, model))
        if some and others:
            found.append(same_distribution(some, others, max(run.resolution_ms for run in runs)))
    return min(1.0, min(found) * len(found)) if found else None


def _median_outage(metrics: DrillMetrics, side: Relation) -> float | None:
    """Of the flows that a failure hits there, ms."""
    failures = [at for at, edge in enumerate(metrics.edges) if edge.edge.kind is EdgeKind.FAILURE]
    results = [flow.edges[at] for at in failures for flow in metrics.flows]
    outages = [each.outage_plbm_ms for each in results if each.relation is side and each.relation.is_touched]
    return median(outages) if outages else None


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
