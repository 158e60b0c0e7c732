"""Tables of a page about the complete run: expectations, collectives, ports, the machine. Pure.

Changes when a page tells more of a run. A page is made only from its folder, on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import number
from hpn.results.judge.verdict import Check
from hpn.results.page.chart import Chart, Line, Moment, thinned
from hpn.results.page.time_charts import GROUP, X_LABEL
from hpn.results.text.buffers import buffer_rows
from hpn.results.text.checks import interval_text, margin_text, measured_text
from hpn.results.text.job import OF_LINKS, ON_LINKS, placement_rows
from hpn.results.text.values import milliseconds, value_text

_MOST_PORTS = 16
_LEAST_LOAD = 0.01
"""Share of a port's rate; ports with less, no queue and no loss are left out."""
_MEANINGS = {
    "duplicate_request": "packets received that had arrived before",
    "local_ack_timeout_err": "times that a queue pair waited for its retry timer, then sent again",
    "np_cnp_sent": "congestion notifications sent",
    "np_ecn_marked_roce_packets": "packets received with an ECN mark",
    "out_of_sequence": "packets received before one that was missing",
    "packet_seq_err": "NAKs received: the other side missed a packet",
    "path_answers": "probes of paths that were answered",
    "path_assumed_bad": "paths left because others of their port went dark",
    "path_denials": "paths left because they lost a packet",
    "path_packets_good": "packets that took good paths",
    "path_packets_skipped": "packets that took congested paths, as no path was good",
    "path_probes": "probes of bad paths",
    "path_skips": "times that a path was skipped for a mark",
    "paths_good": "paths that were good at the end",
    "req_cqe_error": "work requests that completed with an error",
    "req_cqe_flush_error": "of these, flushed as their queue pair had died",
    "req_transport_retries_exceeded": "queue pairs that died: all retries were used up",
    "rp_cnp_handled": "congestion notifications received, to which the sender slowed down",
    "rx_write_requests": "messages received",
}
"""Meanings of NIC counters, by the names of ``rdma statistic show``."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption; a column whose title begins with '>' holds numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class CheckRow:
    """An expectation in the page's list."""

    outcome: str
    text: str
    measured: str
    interval: str
    limit: str
    margin: str
    evidence: str


def check_rows(checks: Sequence[Check]) -> tuple[CheckRow, ...]:
    """Return all expectations, the broken ones first."""
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    return tuple(_check_row(check) for check in sorted(checks, key=lambda check: order[check.outcome.value]))


def iterations_chart(job: JobMetrics, moments: Sequence[Moment], begin_ns: int) -> Chart | None:
    """Return the duration of each iteration of all ranks, from its start to the next one's; None without any."""
    points = list(_steps(job))
    if not points:
        return None
    xs, lines = thinned([(at - begin_ns) / 1e9 for at, _ in points], [Line("iteration", [ms for _, ms in points])])
    title = "Iterations: how long each took"
    return Chart("iterations", title, X_LABEL, "ms", xs, lines, tuple(moments), steps=True, group=GROUP)


def _steps(job: JobMetrics) -> Iterator[tuple[int, float | None]]:
    """Yield the times at which a value begins; after the last iteration, and the last before a death, there is none."""
    begun = sorted(job.iterations, key=lambda each: each.begin_ns)
    for at, each in enumerate(begun):
        yield each.begin_ns, each.ms
        following = begun[at + 1].begin_ns if at + 1 < len(begun) else None
        if following is None or any(each.begin_ns < death.at_ns <= following for death in job.deaths):
            yield each.end_ns, each.ms
            yield from () if following is None else [(each.end_ns, None)]


def collectives_table(job: JobMetrics) -> Table | None:
    """Return the collectives in the style of nccl-tests; None if nothing was timed."""
    rows = tuple(
        (
            span.label,
            span.kind,
            f"{span.size_bytes:,}" if span.size_bytes else "-",
            str(span.ranks),
            str(span.count),
            milliseconds(span.mean_ms),
            f"{milliseconds(span.least_ms)} to {milliseconds(span.most_ms)}",
            value_text(span.busbw_bps, "bit/s") if span.busbw_bps else "-",
            str(span.wrong),
        )
        for span in job.spans
    )
    columns = ("what", "kind", ">bytes", ">ranks", ">times", ">mean ms", ">range ms", ">busbw", ">wrong")
    return Table("Collectives, messages and computing: the slowest rank's time", columns, rows) if rows else None


def counters_table(job: JobMetrics) -> Table | None:
    """Return the counters summed over all NICs; None if all are zero."""
    rows = tuple((name, f"{count:,}", _MEANINGS.get(name, "")) for name, count in job.summed_counters.items())
    return Table("Counters of all NICs together", ("counter", ">count", "what was counted"), rows) if rows else None


def links_table(job: JobMetrics) -> Table | None:
    """Return the load of queue pairs on each tier's links, before and after each edge; None if it was not recorded."""
    rows = tuple(placement_rows(job))
    return Table(ON_LINKS[0].upper() + ON_LINKS[1:], OF_LINKS, rows) if rows else None


def ports_table(metrics: DrillMetrics) -> Table | None:
    """Return load, queue, marks and drops of the busiest ports; None if none was sampled."""
    if metrics.ports is None:
        return None
    busiest = sorted(metrics.ports.ports, key=lambda port: (-port.load, port.port))
    used = [port for port in busiest if port.load >= _LEAST_LOAD or port.queue_max_ms or port.marked or port.drops]
    rows = tuple(
        (
            port.port,
            port.tier,
            f"{100 * port.load:.1f} %",
            f"{port.queue_mean_ms:.2f}",
            f"{port.queue_p99_ms:.2f}",
            f"{port.queue_max_ms:.2f}",
            "-" if port.marked is None else f"{port.marked:,}",
            f"{port.drops:,}",
        )
        for port in used[:_MOST_PORTS]
    )
    if not rows:
        return None
    less, idle = len(used) - len(rows), len(busiest) - len(used)
    more = f"; {less} less busy ones are left out" if less else ""
    more += f"; {idle} carried next to nothing" if idle else ""
    columns = ("port", "tier", ">load", ">queue, mean ms", ">p99", ">worst", ">marked", ">dropped")
    return Table(f"Ports, the busiest first, read every {metrics.ports.period_ms:g} ms{more}", columns, rows)


def buffers_table(metrics: DrillMetrics) -> Table | None:
    """Return the classes at ports that stopped others or dropped; None without any."""
    title, columns, rows = buffer_rows(metrics.buffers or ())
    return Table(title[0].upper() + title[1:], columns, rows) if rows else None


def host_table(metrics: DrillMetrics) -> Table | None:
    """Return the machine's load during the measurement; None if it was not sampled."""
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
        ("event loop: latest", f"{host.loop_lag_max_ms:.2f} ms"),
    )
    return Table("CPU and scheduling", ("what", ">figure"), rows)


def _percent(share: float | None) -> str:
    """Return a percentage; '-' if the kernel does not report it."""
    return "-" if share is None else f"{share:.1f} %"


def _check_row(check: Check) -> CheckRow:
    return CheckRow(
        check.outcome.value,
        check.text,
        measured_text(check),
        interval_text(check) or "-",
        _limit_text(check),
        margin_text(check),
        check.evidence,
    )


def _limit_text(check: Check) -> str:
    """Return the limit exactly as in the drill: '50 ms', '90 %', '4,000 ms'."""
    if check.limit is None:
        return "-"
    return f"{number(check.limit)} ms" if check.unit == "ms" else value_text(check.limit, check.unit)
