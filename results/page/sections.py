"""The parts of a page, made of a run's metrics: tables whose cells are text, charts and chains. Pure.

Changes when a page tells more of a run. A page is made of what its folder holds, on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from failover.analysis.budget import Interval
from failover.analysis.job import JobEdge, JobMetrics
from failover.analysis.model import DrillMetrics, EdgeResult, FlowEdgeResult, Goodput
from failover.analysis.unended import worst_ms
from results.page.axis import Tick, logarithmic_ms, milliseconds_text, number_text
from results.page.chain import Chain, chain_of
from results.page.chart import Chart, Line, Moment, thinned
from results.page.courses import GROUP, X_LABEL
from results.text.bounds import NEVER, at_least
from results.text.terminal import describe, interval_text, margin_text, measured_text
from results.text.values import rate, value_text
from results.verdict import Check
from testbed.events import Event

_MOST_FLOWS = 24
_MOST_PORTS = 16
_MOST_NICS = 24
_MOST_EDGES = 40
"""With a section of their own; those behind them, of a storm of flaps, have a row each."""
_OPEN_EDGES = 2
"""So many edges are open at once: a fault and its repair."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption; a column whose title begins with '>' holds numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class CheckRow:
    """An expectation as the page lists it."""

    outcome: str
    text: str
    measured: str
    interval: str
    limit: str
    margin: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One flow's outage on a logarithmic axis, from what it lasted certainly to what it may have lasted, per cent."""

    name: str
    text: str
    low_pct: float
    high_pct: float
    open_ended: bool


@dataclass(frozen=True, slots=True)
class Harmed:
    """The flows of an edge that were harmed most, most first."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    left_out: int  # harmed less


@dataclass(frozen=True, slots=True)
class EdgeSection:
    """One edge: what happened, and what it cost."""

    title: str
    line: str  # what it cost, in a few words
    open: bool  # at once; else on a click
    facts: tuple[Table, ...]
    chain: Chain
    harmed: Harmed | None
    goodput: Table | None  # None where no streams ran


def check_rows(checks: Sequence[Check]) -> tuple[CheckRow, ...]:
    """All expectations, those that were not kept first."""
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    return tuple(_check_row(check) for check in sorted(checks, key=lambda check: order[check.outcome.value]))


def edge_sections(metrics: DrillMetrics, events: Sequence[Event], hosts: frozenset[str]) -> tuple[EdgeSection, ...]:
    """One for each edge, in order of time, of the first ones; ``later_edges`` has the rest."""
    return tuple(
        EdgeSection(
            f"{result.edge.words[:1].upper()}{result.edge.words[1:]}",
            _line(metrics, at),
            at < _OPEN_EDGES,
            tuple(_costs(metrics, at)),
            chain_of(result, events, hosts),
            _harmed(metrics.flows_at(result)),
            _goodput(result) if metrics.has_streams else None,
        )
        for at, result in enumerate(metrics.edges[:_MOST_EDGES])
    )


def later_edges(metrics: DrillMetrics) -> Table | None:
    """A row for each edge that is too late to have a section; None where there is none."""
    rows = tuple((metrics.edges[at].edge.label, _line(metrics, at)) for at in range(_MOST_EDGES, len(metrics.edges)))
    return Table("Later faults and repairs", ("edge", "what it cost"), rows) if rows else None


def iterations_chart(job: JobMetrics, moments: Sequence[Moment], begin_ns: int) -> Chart | None:
    """How long each iteration of all ranks took, where it ended; None without any."""
    ended = sorted(job.iterations, key=lambda each: each.end_ns)
    if not ended:
        return None
    xs = [(each.end_ns - begin_ns) / 1e9 for each in ended]
    xs_, lines = thinned(xs, [Line("iteration", [each.ms for each in ended])])
    return Chart("iterations", "Iterations: how long each took", X_LABEL, "ms", xs_, lines, tuple(moments), group=GROUP)


def collectives_table(job: JobMetrics) -> Table | None:
    """What nccl-tests would print; None where nothing was timed."""
    rows = tuple(
        (
            span.label,
            span.kind,
            f"{span.size_bytes:,}" if span.size_bytes else "-",
            str(span.ranks),
            str(span.count),
            number_text(span.mean_ms),
            f"{number_text(span.least_ms)} to {number_text(span.most_ms)}",
            f"{rate(span.busbw_bps)}bit/s" if span.busbw_bps else "-",
            str(span.wrong),
        )
        for span in job.spans
    )
    columns = ("what", "kind", ">bytes", ">ranks", ">times", ">mean ms", ">range ms", ">busbw", ">wrong")
    return Table("Collectives, messages and computing: the slowest rank's time", columns, rows) if rows else None


def ports_table(metrics: DrillMetrics) -> Table | None:
    """The ports that were busiest: load, queue, marks and drops; None where none was read."""
    if metrics.ports is None:
        return None
    busiest = sorted(metrics.ports.ports, key=lambda port: (-port.load, port.port))
    rows = tuple(
        (
            port.port,
            port.tier,
            f"{100 * port.load:.1f} %",
            number_text(port.queue_mean_ms),
            number_text(port.queue_p99_ms),
            number_text(port.queue_max_ms),
            "-" if port.marked is None else f"{port.marked:,}",
            f"{port.drops:,}",
        )
        for port in busiest[:_MOST_PORTS]
    )
    left_out = len(busiest) - len(rows)
    more = f"; {left_out} less busy ones are left out" if left_out else ""
    columns = ("port", "tier", ">load", ">queue, mean ms", ">p99", ">worst", ">marked", ">dropped")
    return Table(f"Ports, the busiest first, read every {metrics.ports.period_ms:g} ms{more}", columns, rows)


def host_table(metrics: DrillMetrics) -> Table | None:
    """What else the machine did while it was measured; None where nobody looked."""
    host = metrics.host
    if host is None:
        return None
    rows = (
        ("CPUs", str(host.cpus)),
        ("idle, mean", _percent(host.idle_mean_pct)),
        ("idle, least of any second", _percent(host.idle_min_1s_pct)),
        ("taken by the hypervisor, most of any second", _percent(host.steal_max_1s_pct)),
        ("other processes, most of any second", _percent(host.others_max_1s_pct)),
        ("our processes waited for a CPU", _percent(host.run_delay_mean_pct)),
        ("event loop late, most", f"{host.loop_lag_max_ms:.2f} ms"),
    )
    return Table("The machine meanwhile", ("what", ">figure"), rows)


def _percent(share: float | None) -> str:
    """'-' of what the kernel does not tell."""
    return "-" if share is None else f"{share:.1f} %"


def _check_row(check: Check) -> CheckRow:
    return CheckRow(
        check.outcome.value,
        check.text,
        measured_text(check),
        interval_text(check) or "-",
        "-" if check.limit is None else value_text(check.limit, check.unit),
        margin_text(check),
        check.evidence or ("" if check.measured is not None else describe(check)),
    )


def _line(metrics: DrillMetrics, at: int) -> str:
    result, job = metrics.edges[at], metrics.job
    if metrics.has_streams:
        worst = result.worst_outage_interval_ms
        outage = _outage(_worst_ms(metrics, result), worst, result.never_over)
        if metrics.worst_began_before(result):
            outage = "goes on from before"
        return f"{result.flows_hit} flows hit, worst outage {outage}"
    if job is None:
        return ""
    cost = job.edges[at]
    return f"{_of_before(cost.rate_during, cost.rate_before)} iterations/s, {max(cost.lost, 0):.2f} lost"


def _costs(metrics: DrillMetrics, at: int) -> Iterator[Table]:
    """What an edge cost: the streams, the job or client, and the client beside it; whatever ran."""
    if metrics.has_streams:
        yield _facts(metrics, metrics.edges[at])
    for who, job in (("the job", metrics.job), ("the client beside it", metrics.beside)):
        if job is not None:
            yield _iterations("the client" if job.client is not None and who == "the job" else who, job, job.edges[at])


def _iterations(who: str, job: JobMetrics, cost: JobEdge) -> Table:
    before = cost.rate_before
    rows = (
        ("iterations/s before", number_text(before)),
        ("in the whole window", _of_before(cost.rate_during, before)),
        ("when things had settled", _of_before(cost.rate_after, before)),
        ("longest iteration", at_least(f"{number_text(cost.longest_ms)} ms", open_ended=cost.unfinished)),
        ("mean iteration before", f"{number_text(job.mean_ms)} ms"),
        ("iterations lost", f"{max(cost.lost, 0.0):.2f}"),
    )
    return Table(f"What it cost {who}", ("what", ">figure"), rows)


def _of_before(rate_: float, before: float) -> str:
    share = f" ({100 * rate_ / before:.1f} %)" if before else ""
    return f"{number_text(rate_)}{share}"


def _facts(metrics: DrillMetrics, result: EdgeResult) -> Table:
    hit, never = result.flows_hit, result.flows_unrecovered
    rows = (
        ("flows hit", str(hit)),
        ("of these lost anything", str(result.flows_lossy)),
        ("never came back", str(never)),
        ("queue pairs died", str(result.flows_died)),
        ("packets lost", f"{result.lost:,}"),
        (
            "the rest of the outage that began before" if metrics.worst_began_before(result) else "worst outage",
            _outage(_worst_ms(metrics, result), result.worst_outage_interval_ms, result.never_over),
        ),
        *_congested(result),
        ("median outage", _outage(result.median_outage_plbm_ms, result.median_outage_interval_ms, 2 * never > hit)),
    )
    return Table("What it cost the streams", ("what", ">figure"), rows)


def _congested(result: EdgeResult) -> Iterator[tuple[str, str]]:
    found = result.congestion
    if found is not None:
        yield "packets that congestion took", f"{found.packets:,} of {found.flows} flows"
        yield "worst outage without them", _outage(found.failover_ms, Interval(found.low_ms, found.high_ms), False)


def _worst_ms(metrics: DrillMetrics, result: EdgeResult) -> float:
    """Of what never came back the lower bound that an expectation has."""
    return max(result.worst_outage_plbm_ms, worst_ms(metrics, result) if result.never_over else 0.0)


def _outage(value_ms: float, within: Interval, never: bool) -> str:
    """``never``: it was not over when the edge's window was."""
    if never:
        return at_least(_time(value_ms)) if value_ms else NEVER
    if not value_ms:
        return f"none; shorter than {_time(within.high)} would not be seen" if within.high else "none"
    return f"{_time(value_ms)} ({_time(within.low)} to {_time(within.high)})"


def _time(value_ms: float) -> str:
    return milliseconds_text(float(f"{value_ms:.3g}"))


def _harmed(flows: Sequence[FlowEdgeResult]) -> Harmed | None:
    """None where nobody lost anything."""
    hurt = sorted(
        (flow for flow in flows if flow.lost + flow.corrupted or flow.stopped_by_error),
        key=lambda flow: (-flow.outage_plbm_ms, flow.name),
    )
    if not hurt:
        return None
    shown = hurt[:_MOST_FLOWS]
    axis = logarithmic_ms([at for flow in shown for at in (flow.budget.low_ms, flow.budget.high_ms)])
    bars = tuple(
        Bar(
            flow.name,
            _bar_text(flow),
            axis.at(flow.budget.low_ms),
            axis.at(flow.budget.high_ms) if flow.recovered and not flow.stopped_by_error else 100.0,
            not flow.recovered or flow.stopped_by_error,
        )
        for flow in shown
    )
    return Harmed(bars, axis.ticks(), len(hurt) - len(shown))


def _bar_text(flow: FlowEdgeResult) -> str:
    lasted = at_least(_time(flow.outage_plbm_ms), open_ended=not flow.recovered or flow.stopped_by_error)
    if flow.stopped_by_error:
        return f"{lasted if flow.outage_plbm_ms else NEVER}, queue pair died"
    return f"{lasted}, {flow.lost:,} packets"


def _goodput(result: EdgeResult) -> Table:
    """Of all flows, and of the NICs that kept least of what they had before."""
    harmed = sorted(result.nics, key=lambda each: (_kept(each.goodput), each.nic, each.direction))
    shown, left_out = harmed[:_MOST_NICS], harmed[_MOST_NICS:]
    of = [("all flows", result.goodput), *((f"{each.nic} {each.direction}", each.goodput) for each in shown)]
    rows = tuple((name, *_rates(it.before_bps, it.during_bps, it.after_bps)) for name, it in of)
    caption = "Goodput, bit/s; the NICs that kept least of it first"
    if left_out:
        caption += f"; {len(left_out)} more kept at least {100 * _kept(left_out[0].goodput):.1f} %"
    return Table(caption, ("of", ">before", ">during", ">after", ">during, of before"), rows)


def _kept(goodput: Goodput) -> float:
    return goodput.during_bps / goodput.before_bps if goodput.before_bps else math.inf


def _rates(before: float, during: float, after: float) -> tuple[str, str, str, str]:
    share = f"{100 * during / before:.1f} %" if before else "-"
    return rate(before), rate(during), rate(after), share
