"""Page of a run: one self-contained HTML file, for a design review or a paper.

Changes when the page has another part. It needs no scripts except for zoom, and repeats by shape and word whatever its
colours mean.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.repeats.random_faults import one_draw
from hpn.results.page import story
from hpn.results.page.chart import Chart, Moment, aligned
from hpn.results.page.edges import Story, stories
from hpn.results.page.hardware import on_real_hardware
from hpn.results.page.heat import HeatMap, heat_map
from hpn.results.page.loads import offered_table
from hpn.results.page.located import located_chart, located_tables
from hpn.results.page.names import Named, Names
from hpn.results.page.picture import fabric_picture
from hpn.results.page.ranks import RankTimeline, rank_timeline
from hpn.results.page.render import rendered
from hpn.results.page.sections import (
    CheckRow,
    Table,
    buffers_table,
    check_rows,
    collectives_table,
    counters_table,
    host_table,
    iterations_chart,
    links_table,
    ports_table,
)
from hpn.results.page.setup import fabric_line, traffic_line
from hpn.results.page.time_charts import HOST, goodput_chart, host_chart, messages_chart, queues_chart
from hpn.results.run.manifest import Manifest
from hpn.results.run.reading import Gap, Run
from hpn.results.text.harm import cost_told
from hpn.testbed.fabric.buffers import lossless_priorities
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.vm.engines import ENGINES

FIGURES = ("measured", "interval", "limit", "margin")
"""Columns of an expectation that contain figures."""


@dataclass(frozen=True, slots=True)
class View:
    """Content of the template, all of it text."""

    title: str
    outcome: str
    faults: Sequence[str]
    summary: str  # '' on another fabric than the drill's own, which it is about
    fabric: str  # in a sentence
    traffic: str
    cost: str
    draw: str  # note on random faults; '' if there are none, or the run is one of several
    causes: Sequence[str]
    answer: str
    broken: Sequence[str]
    harm: Sequence[str]
    reasons: Sequence[str]
    facts: Sequence[tuple[str, str]]
    settings: Sequence[tuple[str, str]]  # of job, client and kernel, for repeating the run
    checks: Sequence[CheckRow]
    check_columns: Sequence[str]  # columns of figures that any expectation fills
    has_evidence: bool
    check_names: Sequence[Named]
    stories: Sequence[Story]
    picture: str  # the fabric, as SVG; '' if the folder lacks it
    charts: Sequence[Chart]
    heat: HeatMap | None
    time_names: Sequence[Named]
    ranks: RankTimeline | None
    tables: Sequence[Table]
    table_names: Sequence[Named]
    machine: Sequence[Table]
    machine_charts: Sequence[Chart]
    virtual_time: bool
    gaps: Sequence[Gap]
    notes: Sequence[str]
    lag_notes: Sequence[str]
    hardware: Sequence[str]
    command: str
    alone: str  # option instead of --repeat for this run alone; '' if it was no repeat


def page(run: Run) -> str:
    """Return the page as text, to be written in UTF-8. MachineError when this installation is incomplete."""
    view = view_of(run)
    return rendered(
        "page.html", view, has_charts=bool(view.charts or view.machine_charts), picture=view.picture, sheet="run.css"
    )


def view_of(run: Run) -> View:
    """Return the content of the page, as text and numbers."""
    manifest, metrics, verdict = run.manifest, run.metrics, run.verdict
    begin_ns = _begin_ns(run)
    asked = () if run.drill is None else run.drill.faults
    edges = () if metrics is None else metrics.edges
    names = Names(run.fabric, asked, edges)
    checks = () if verdict is None else check_rows(verdict.checks)
    carried = None if run.series is None else run.series.streams or run.series.messages
    heat = None if carried is None else heat_map(carried)
    charts = aligned([chart for chart in _charts(run, begin_ns) if chart is not None])
    tables, machine = _tables(metrics, begin_ns)
    engine = ENGINES.get(manifest.engine)
    return View(
        title=manifest.drill + (f" #{manifest.repeat}" if manifest.repeat else ""),
        outcome=story.outcome(verdict),
        faults=story.faults(run.drill, names),
        summary="" if run.drill is None or run.drill.other_fabric else run.drill.summary,
        fabric=fabric_line(run.fabric),
        traffic=traffic_line(run.drill),
        cost="" if verdict is None else cost_told(verdict, metrics),
        draw=one_draw(manifest, run.drill),
        hardware=_hardware(manifest, run.fabric),
        lag_notes=() if verdict is None else verdict.notes,
        causes=() if verdict is None else verdict.causes,
        answer=story.answer(verdict),
        broken=() if verdict is None else story.broken(verdict),
        harm=() if metrics is None or verdict is None or verdict.cost else story.harm(metrics, verdict.outcome),
        reasons=() if verdict is None else verdict.reasons[1:],
        facts=_there(_facts(manifest)),
        settings=_there(_settings(manifest)),
        checks=checks,
        check_columns=[name for name in FIGURES if any(getattr(check, name) != "-" for check in checks)],
        has_evidence=any(check.evidence for check in checks),
        check_names=names.first_of_each_kind(text for check in checks for text in (check.text, check.evidence)),
        stories=() if metrics is None else stories(metrics, run.events or (), _hosts(run, metrics), names),
        picture="" if run.fabric is None else fabric_picture(run.fabric, asked),
        charts=[chart for chart in charts if chart.id != HOST],
        heat=heat,
        time_names=names.first_of_each_kind(_times(charts, heat)),
        ranks=_ranks(run, begin_ns),
        tables=tables,
        table_names=names.first_of_each_kind(_cells(tables)),
        machine=machine,
        machine_charts=[chart for chart in charts if chart.id == HOST],
        virtual_time=engine is not None and engine.virtual_time,
        gaps=run.gaps,
        notes=() if metrics is None else metrics.unexplained,
        alone=f"--phase {manifest.phase}" if manifest.repeat else "",
        command=shlex.join(manifest.command if manifest.command[:1] == ("hpn",) else ("hpn", *manifest.command)),
    )


def _hardware(manifest: Manifest, fabric: Fabric | None) -> Sequence[str]:
    if fabric is None:
        return on_real_hardware([manifest])
    switch = fabric.spec.switch
    return on_real_hardware(
        [manifest], [fabric.spec.scale], pfc=switch is not None and bool(lossless_priorities(switch))
    )


def _ranks(run: Run, begin_ns: int) -> RankTimeline | None:
    """Return the activity of ranks around the first edge, until the job died or the record ends."""
    if run.spans is None:
        return None
    metrics = run.metrics
    edges = () if metrics is None else metrics.edges
    dead = () if metrics is None or metrics.job is None else [death.at_ns for death in metrics.job.deaths]
    end_ns = max((each.edge.window_end_ns for each in edges), default=None)
    edge_ns = min((each.edge.inject_before_ns for each in edges), default=None)
    return rank_timeline(run.spans, begin_ns, edge_ns, min(dead, default=end_ns))


def _tables(metrics: DrillMetrics | None, begin_ns: int) -> tuple[Sequence[Table], Sequence[Table]]:
    """Return the tables about the fault's effects and those about the machine, without empty ones."""
    if metrics is None:
        return (), ()
    collectives = None if metrics.job is None else collectives_table(metrics.job)
    counters = None if metrics.job is None else counters_table(metrics.job)
    links = None if metrics.job is None else links_table(metrics.job)
    located = () if metrics.location is None else located_tables(metrics.location, begin_ns)
    rest = (offered_table(metrics), collectives, links, counters, ports_table(metrics), buffers_table(metrics))
    found = (*located, *rest)
    host = host_table(metrics)
    return [table for table in found if table is not None], [] if host is None else [host]


def _cells(tables: Sequence[Table]) -> Iterator[str]:
    """Yield the cells that may contain names: the first cell of the first row, and the column titles."""
    for table in tables:
        yield from (row[0] for row in table.rows[:1])
        yield from table.columns


def _times(charts: Sequence[Chart], heat: HeatMap | None) -> Iterator[str]:
    """Yield the texts of charts over time that may contain names."""
    for chart in charts:
        yield from (line.name for line in chart.lines)
        yield from (moment.text for moment in chart.moments)
    yield from () if heat is None else (row.name for row in heat.rows[:1])


def _charts(run: Run, begin_ns: int) -> Iterator[Chart | None]:
    metrics, series = run.metrics, run.series
    edges = () if metrics is None else metrics.edges
    moments = [Moment((each.edge.inject_before_ns - begin_ns) / 1e9, each.edge.label) for each in edges]
    end_ns = max((each.edge.window_end_ns for each in edges), default=None)
    if metrics is not None and metrics.job is not None:
        yield iterations_chart(metrics.job, moments, begin_ns)
    if series is not None and series.streams is not None:
        yield goodput_chart(series.streams, run.paths, moments)
    if metrics is not None and metrics.location is not None and end_ns is not None:
        yield located_chart(metrics.location, begin_ns, end_ns, moments)
    if series is not None and series.messages is not None:
        yield messages_chart(series.messages, moments)
    if series is not None and series.ports is not None:
        yield queues_chart(series.ports, begin_ns, end_ns, moments)
    yield host_chart(run.host or (), begin_ns, moments)


def _there(found: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    return [(name, value) for name, value in found if value]


def _facts(manifest: Manifest) -> Sequence[tuple[str, str]]:
    return [
        ("fabric", f"{manifest.fabric} ({manifest.architecture})"),
        ("engine", " ".join(filter(None, (manifest.engine, manifest.accelerator)))),
        ("LAG datapath", manifest.datapath),
        ("hosts", f"{manifest.host_profile} profile" if manifest.host_profile else ""),
        ("kernel", f"Linux {manifest.kernel}"),
        ("started", manifest.date),
        ("ended", manifest.wall_end),
        ("took", f"{manifest.duration_s:.1f} s"),
        ("profile", manifest.profile),
        ("streams' load", f"{100 * manifest.load:.0f} % of a NIC" if manifest.load else ""),
        ("phase", f"{manifest.phase}: faults {manifest.phase_ms:.0f} ms later" if manifest.phase > 1 else ""),
        ("marker", manifest.marker),
        ("seeds", ", ".join(f"{name} {seed}" for name, seed in manifest.seeds.items())),
        ("machine", ", ".join(f"{name} {value}" for name, value in manifest.machine.items())),
        ("commit", manifest.commit),
        ("versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())),
        ("try", str(manifest.attempt) if manifest.attempt > 1 else ""),
    ]


def _settings(manifest: Manifest) -> Sequence[tuple[str, str]]:
    found = [(f"job: {name}", str(value)) for name, value in manifest.job.items()]
    found += [(f"client: {name}", str(value)) for name, value in manifest.client.items()]
    return found + [(f"kernel: {name}", text) for name, text in manifest.doctor.items()]


def _hosts(run: Run, metrics: DrillMetrics) -> frozenset[str]:
    """Return host names; if the folder lacks the fabric, those of flows and of links that were hit."""
    if run.fabric is not None:
        return frozenset(host.name for host in run.fabric.hosts)
    nics = {nic for flow in metrics.flows for nic in (flow.src_nic, flow.dst_nic)}
    nics |= set() if metrics.job is None else set(metrics.job.counters)
    named = {nic.rpartition(".")[0] for nic in nics}
    return frozenset(named | {link.host for edge in metrics.edges for link in edge.edge.links if link.host})


def _begin_ns(run: Run) -> int:
    """Return the start of the run's traffic, or the nearest time that the folder has."""
    series = None if run.series is None else (run.series.streams or run.series.messages)
    if series is not None:
        return series.bins.start_ns
    healthy = (event.at_ns for event in run.events or () if event.what == "healthy")
    return next(healthy, run.manifest.started_ns)


def charts_of(run: Run) -> tuple[Chart, ...]:
    """Return the page's charts over time, on one x axis."""
    return aligned([chart for chart in _charts(run, _begin_ns(run)) if chart is not None])
