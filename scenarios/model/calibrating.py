"""Extract failover times from run folders. PURE.

A flow's path before and after an edge is the one that the switches' kernels reported in the run (``paths.jsonl``). So
only runs count in which the switches were queried: runs in virtual time, whose times no machine load has affected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult, FlowResult
from hpn.failover.analysis.paths import PathAt
from hpn.results.run.reading import Run, read
from hpn.scenarios.model.failover_times import Case, Conditions, FailoverStep, FailoverTimes, Pause, Side, Source, Times
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.model import Fabric

_NEWS = frozenset({(EventKind.BGP, "established"), (EventKind.ROUTE, "host-route-added")})


@dataclass(frozen=True)
class _Whole:
    """Run with all required parts."""

    run: Run
    fabric: Fabric
    metrics: DrillMetrics
    paths: tuple[PathAt, ...]
    faults: dict[str, str]  # kind by id
    news: tuple[Event, ...]  # established BGP sessions, added host routes


@dataclass(frozen=True, slots=True)
class _Seen:
    """Observation of one flow at one edge."""

    step: FailoverStep
    ms: float
    most_ms: float  # upper bound
    pause: Pause | None = None


def measured_in(folders: Sequence[Path]) -> FailoverTimes:
    """Return the times of these run folders, but for those in which no flow had to move.

    InputError for a run that is incomplete, has no streams or was not in virtual time.
    """
    sources: list[Source] = []
    times: list[Times] = []
    for folder in folders:
        whole = _whole(folder)
        found = list(_times(whole, len(sources)))
        if found:
            times += found
            sources.append(_source(whole))
    return FailoverTimes(tuple(sources), tuple(times))


def _whole(folder: Path) -> _Whole:
    run = read(folder)
    if run.fabric is None or run.metrics is None or run.paths is None or run.drill is None:
        why = "; ".join(f"{gap.part}: {gap.why}" for gap in run.gaps) or "it has no paths"
        raise InputError(f"{folder} cannot be calibrated with: {why}")
    if "virtual-time" not in run.manifest.engine:
        raise InputError(f"{folder} was run on {run.manifest.engine}; calibrate with runs in virtual time")
    if not run.metrics.flows or run.metrics.job is not None:
        raise InputError(f"{folder} ran no streams, whose packets tell how long an outage was; calibrate with streams")
    news = tuple(event for event in run.events or () if (event.kind, event.what) in _NEWS)
    return _Whole(run, run.fabric, run.metrics, run.paths, {each.id: each.kind for each in run.drill.faults}, news)


def _source(whole: _Whole) -> Source:
    manifest, spec = whole.run.manifest, whole.fabric.spec
    policy = spec.path_control.chosen.name
    conditions = Conditions(manifest.architecture, policy, manifest.datapath, spec.bgp.daemon, spec.bgp.valleys)
    return Source(manifest.drill, manifest.engine, manifest.kernel, manifest.phase, manifest.commit, conditions)


def _times(whole: _Whole, source: int) -> Iterator[Times]:
    """Yield the effect of each edge on each flow, by case."""
    down: set[str] = set()
    for at, edge in enumerate(whole.metrics.edges):
        hit = {link.name for link in edge.edge.links}
        down = down | hit if edge.edge.kind is EdgeKind.FAILURE else down - hit
        found: dict[Case, list[_Seen]] = {}
        kind = whole.faults.get(edge.edge.fault, "")
        for flow in whole.metrics.flows:
            seen = _seen(whole, flow, at, edge, down)
            if seen is not None:
                case = Case(kind, edge.edge.kind, side_of(flow.src_nic, flow.dst_nic, edge.edge.nics), seen.step)
                found.setdefault(case, []).append(seen)
        for case, of_case in found.items():
            pauses = tuple(each.pause for each in of_case)
            most_ms = max(each.most_ms for each in of_case)
            yield Times(source, case, tuple(each.ms for each in of_case), most_ms, pauses if any(pauses) else ())


def side_of(src_nic: str, dst_nic: str, nics: Collection[str]) -> Side:
    """Return the position on a flow's path of an edge that hits these NICs."""
    if src_nic in nics:
        return Side.UP
    return Side.DOWN if dst_nic in nics else Side.TRANSIT


def _seen(whole: _Whole, flow: FlowResult, at: int, edge: EdgeResult, down: set[str]) -> _Seen | None:
    """Return the effect of an edge on a flow; None if there is none or it is unknown."""
    begin_ns, end_ns = edge.edge.inject_before_ns, edge.edge.window_end_ns
    paths = [path for path in whole.paths if path.flow == flow.flow]
    before, after = _last(paths, begin_ns), _last(paths, end_ns)
    if before is None or after is None or not _arrives(after):
        return None
    if not _arrives(before):
        back = [each.resumed_at_ns for each in flow.longest_outages if each.resumed_at_ns is not None]
        inside = [back_ns for back_ns in back if begin_ns <= back_ns <= end_ns]
        return _resumed(flow, begin_ns, end_ns, min(inside)) if inside else None
    if set(before.links) & down:
        result = flow.edges[at]
        outage = _Seen(FailoverStep.OUTAGE, result.outage_plbm_ms, max(result.outage_plbm_ms, result.budget.high_ms))
        return outage if result.recovered_in_window else None
    if before.links != after.links:
        changed = [path.at_ns for path in paths if begin_ns <= path.at_ns <= end_ns and path.why != "looked"]
        if changed:
            return _exactly(FailoverStep.MOVED, (changed[-1] - begin_ns) / 1e6)
        return _joined(whole, flow, set(after.links) - set(before.links), edge)
    return None


def _joined(whole: _Whole, flow: FlowResult, links: set[str], edge: EdgeResult) -> _Seen | None:
    """Return the time at which a flow came onto other links without action of its host.

    That is when the last BGP session over these links was established and the last switch on them had the host route.
    If no such event was seen, it is the time at which all had converged.
    """
    begin_ns, end_ns = edge.edge.inject_before_ns, edge.edge.window_end_ns
    ends = [end for name in links for end in (whole.fabric.link(name).lower, whole.fabric.link(name).upper)]
    ports, nodes = {(end.node, end.name) for end in ends}, {end.node for end in ends}
    route = f"{whole.fabric.nic(flow.dst_nic).ip}/32"
    seen = [
        event.at_ns
        for event in whole.news
        if begin_ns <= event.at_ns <= end_ns
        and ((event.node, event.subject) in ports if event.kind is EventKind.BGP else event.node in nodes)
        and (event.kind is EventKind.BGP or event.subject == route)
    ]
    if seen:
        return _exactly(FailoverStep.MOVED, (max(seen) - begin_ns) / 1e6)
    converged = edge.phases.converge.ms
    return None if converged is None else _exactly(FailoverStep.MOVED, converged)


def _resumed(flow: FlowResult, begin_ns: int, end_ns: int, at_ns: int) -> _Seen:
    """Return when packets arrived again, and the time of another loss later in the window, if any."""
    ms = (at_ns - begin_ns) / 1e6
    for outage in flow.longest_outages:
        if outage.resumed_at_ns is not None and at_ns < outage.first_loss_at_ns and outage.resumed_at_ns <= end_ns:
            pause = (outage.first_loss_at_ns - begin_ns) / 1e6, (outage.resumed_at_ns - begin_ns) / 1e6
            return _Seen(FailoverStep.RESUMED, ms, ms, pause)
    return _exactly(FailoverStep.RESUMED, ms)


def _exactly(step: FailoverStep, ms: float) -> _Seen:
    """Return an observation with an exact time, as an event has a time stamp."""
    return _Seen(step, ms, ms)


def _last(paths: Sequence[PathAt], at_ns: int) -> PathAt | None:
    """Return the last path known at a time, with its links; a flow whose NIC has no port has no links."""
    told = [path for path in paths if path.at_ns <= at_ns and (path.links or path.port is None)]
    return told[-1] if told else None


def _arrives(path: PathAt) -> bool:
    return path.port is not None and path.dropped is None
