"""Timeline of a run as a trace: faults, protocol events, outages, path changes, iterations, load. Imports numpy.

Changes when a run has other data over time. The only input is a ``Run``; the trace omits the parts that a folder lacks,
and lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from hpn.failover.analysis.job import JobMetrics, SpanTime
from hpn.failover.analysis.model import DrillMetrics, EdgeResult, FlowResult, Phase
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.port_sampling import Series
from hpn.results.export.trace import Args, Count, Instant, Slice, SlicePosition, Trace
from hpn.results.page.time_charts import goodput_bps
from hpn.results.run.reading import Run
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, EventKind

_OF_RUN = (EventKind.PHASE, EventKind.FAULT)
_EDGES = {"inject", "restore"}


def trace_of(run: Run) -> bytes:
    """Return the run as a file of trace events. InputError if its folder has neither events nor metrics."""
    if run.events is None and run.metrics is None:
        whys = "; ".join(gap.why for gap in run.gaps if gap.part in ("events", "metrics"))
        raise InputError(f"{run.path} has no timeline: {whys}")
    trace = Trace()
    edges = _faults(trace, run)
    if run.metrics is not None:
        _phases(trace, run.metrics.edges)
        _outages(trace, run.metrics, edges)
    _paths(trace, run)
    _ranks(trace, run)
    _nodes(trace, [event for event in run.events or () if event.kind not in _OF_RUN])
    _counters(trace, run)
    about: Args = {
        "drill": run.manifest.drill,
        "fabric": run.manifest.fabric,
        "engine": run.manifest.engine,
        "started_at": run.manifest.date,
        "clock": "ts is CLOCK_MONOTONIC - origin_ns",
        "missing": [f"{gap.part}: {gap.why}" for gap in run.gaps],
    }
    return trace.document(about)


def _faults(trace: Trace, run: Run) -> list[SlicePosition]:
    """Add the faults; return the position of each edge's slice."""
    pid = trace.process("faults")
    results = run.metrics.edges if run.metrics is not None else ()
    placed = trace.slices(pid, "edges, each until the next", [_edge(result) for result in results])
    events = run.events or ()
    of_faults = [event for event in events if event.kind is EventKind.FAULT]
    trace.instants(pid, "injector", (_instant(event, event.what in _EDGES) for event in of_faults))
    phases = (_instant(event) for event in events if event.kind is EventKind.PHASE)
    trace.instants(pid, "drill", phases)
    return placed


def _edge(result: EdgeResult) -> Slice:
    edge = result.edge
    args: Args = {
        "links": [link.name for link in edge.links],
        "nodes": list(edge.nodes),
        "skew_ms": edge.skew_ms,
        "flows_hit": result.flows_hit,
        "flows_lossy": result.flows_lossy,
        "packets_lost": result.lost,
        "worst_outage_ms": result.worst_outage_plbm_ms,
    }
    return Slice(edge.inject_before_ns, edge.window_end_ns, edge.label, args)


def _phases(trace: Trace, results: Sequence[EdgeResult]) -> None:
    """Add the progress of the failover: a track for each phase."""
    pid = trace.process("phases of each failover")
    for name in ("detect", "switch", "converge", "path_first", "path_last", "recover"):
        trace.slices(pid, name, (each for result in results for each in _phase(result, name)))


def _phase(result: EdgeResult, name: str) -> Iterator[Slice]:
    found: Phase = getattr(result.phases, name)
    if found.at_ns is None:
        return
    detect = result.phases.detect.at_ns
    begin_ns = detect if name == "switch" and detect is not None else result.edge.inject_before_ns
    args = {"ms": found.ms, "by": found.by, "early_ms": found.early_ms, "late_ms": found.late_ms}
    yield Slice(begin_ns, found.at_ns, f"{name}: {result.edge.label}", args)


def _outages(trace: Trace, metrics: DrillMetrics, edges: Sequence[SlicePosition]) -> None:
    """Add a track for each flow with losses; an arrow leads from the edge in whose window an outage began."""
    hit = [flow for flow in metrics.flows if flow.longest_outages]
    if not hit:
        return
    pid = trace.process("outages of flows")
    for flow in hit:
        placed = trace.slices(pid, flow.name, _of_flow(flow, metrics))
        for outage in placed:
            cause = _cause(metrics.edges, outage.at_ns)
            if cause is not None:
                trace.arrow(edges[cause], outage)


def _of_flow(flow: FlowResult, metrics: DrillMetrics) -> Iterator[Slice]:
    last_ns = max((result.edge.window_end_ns for result in metrics.edges), default=0)
    for outage in flow.longest_outages:
        end_ns = max(last_ns, outage.last_loss_at_ns) if outage.resumed_at_ns is None else outage.resumed_at_ns
        args: Args = {
            "plbm_ms": outage.plbm_ms,
            "tbm_ms": outage.tbm_ms,
            "packets": outage.packets,
            "open": outage.open,
            "from": flow.src_nic,
            "to": flow.dst_nic,
        }
        yield Slice(outage.first_loss_at_ns, end_ns, f"outage, {outage.packets} packets", args)


def _cause(results: Sequence[EdgeResult], at_ns: int) -> int | None:
    within = (at for at, each in enumerate(results) if each.edge.inject_before_ns <= at_ns < each.edge.window_end_ns)
    return next(within, None)


def _paths(trace: Trace, run: Run) -> None:
    """Add the plane, port and source port of each flow: a slice begins with every path change."""
    if not run.paths:
        return
    names = {flow.flow: flow.name for flow in run.metrics.flows} if run.metrics is not None else {}
    end_ns = max(path.at_ns for path in run.paths)
    end_ns = max([end_ns, *(result.edge.window_end_ns for result in (run.metrics.edges if run.metrics else ()))])
    pid = trace.process("paths of flows")
    ordered = sorted(run.paths, key=lambda path: (path.flow, path.at_ns))
    for flow, of_flow in groupby(ordered, key=lambda path: path.flow):
        told = list(of_flow)
        ends = [path.at_ns for path in told[1:]] + [end_ns]
        trace.slices(pid, names.get(flow, f"flow {flow}"), map(_path, told, ends))


def _path(path: PathAt, end_ns: int) -> Slice:
    where = "no path" if path.port is None else f"port {path.port}" if path.plane is None else f"plane {path.plane}"
    args: Args = {
        "why": path.why,
        "source_port": path.sport,
        "port": path.port,
        "plane": path.plane,
        "links": list(path.links),
        "dropped": path.dropped,
    }
    return Slice(path.at_ns, end_ns, f"{where} ({path.why})", args)


def _ranks(trace: Trace, run: Run) -> None:
    """Add the iterations of all ranks together, and the activity of each rank."""
    if run.metrics is None:
        jobs: list[tuple[str, JobMetrics | None, tuple[SpanTime, ...] | None]] = [("ranks", None, run.spans)]
    else:
        jobs = [("ranks", run.metrics.job, run.spans), ("ranks of the client", run.metrics.beside, run.client_spans)]
    for name, job, spans in jobs:
        if job is None and not spans:
            continue
        pid = trace.process(name)
        if job is not None:
            trace.slices(
                pid,
                "iterations of all ranks",
                (Slice(i.begin_ns, i.end_ns, f"iteration {i.number}", {"wrong": i.wrong}) for i in job.iterations),
            )
            deaths = (Instant(d.at_ns, "died", {"cause": job.cause_of(d), "undone": d.undone}) for d in job.deaths)
            trace.instants(pid, "deaths", deaths)
        for title, of_rank in _by_rank(spans or ()):
            trace.slices(pid, title, (_span(span) for span in of_rank))


def _by_rank(spans: Iterable[SpanTime]) -> Iterator[tuple[str, Iterable[SpanTime]]]:
    """Yield the iterations of a rank, then its activity within them."""

    def key(span: SpanTime) -> tuple[int, bool]:
        return span.rank, span.kind != "iteration"

    for (rank, inside), found in groupby(sorted(spans, key=key), key=key):
        yield (f"rank {rank}" if inside else f"rank {rank}: iterations"), found


def _span(span: SpanTime) -> Slice:
    args: Args = {"kind": span.kind, "iteration": span.iteration, "wrong": span.wrong}
    name = f"iteration {span.iteration}" if span.kind == "iteration" else span.label
    return Slice(span.begin_ns, span.end_ns, name, args)


def _nodes(trace: Trace, events: Sequence[Event]) -> None:
    """Add a process for each node, and a track for each kind of its events: links, LACP, LAG, BGP, ..."""

    def key(event: Event) -> tuple[str, str]:
        return event.node, event.kind.value

    for node, of_node in groupby(sorted(events, key=key), key=lambda event: event.node):
        pid = trace.process(node or "lab")
        for kind, of_kind in groupby(of_node, key=lambda event: event.kind.value):
            trace.instants(pid, kind, map(_instant, of_kind))


def _instant(event: Event, everywhere: bool = False) -> Instant:
    name = " ".join(filter(None, (event.subject, event.what)))
    return Instant(event.at_ns, name, {"node": event.node, **event.detail}, everywhere)


def _counters(trace: Trace, run: Run) -> None:
    """Add goodput by plane, queues that were not always empty, and the machine's load."""
    pid = trace.process("load")
    series = run.series
    if series is not None and series.streams is not None:
        bins = series.streams.bins
        for name, values in goodput_bps(series.streams, run.paths or ()).items():
            course = enumerate(values.tolist())
            trace.counter(
                pid,
                f"goodput, {name}",
                (Count(bins.start_ns + at * bins.width_ns, {"bit/s": value}) for at, value in course),
            )
    if series is not None and series.ports is not None:
        for port in series.ports.series:
            _queue(trace, pid, port)
    host = run.host or ()
    for name in ("idle_pct", "others_pct", "run_delay_pct", "steal_pct", "psi_pct", "lag_ms"):
        of_name = ((moment.at_ns, getattr(moment, name)) for moment in host)
        trace.counter(pid, f"host {name}", (Count(at, {name: value}) for at, value in of_name if value is not None))


def _queue(trace: Trace, pid: int, port: Series) -> None:
    readings = list(port.until(2**63))
    if any(reading.backlog_bytes for reading in readings):
        counts = (Count(reading.at_ns, {"bytes": reading.backlog_bytes}) for reading in readings)
        trace.counter(pid, f"queue of {port.port.port}", counts)
