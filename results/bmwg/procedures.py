"""Tests of draft-calabria-bmwg-ai-fabric-training-bench: which run is one, what it reports, how ours deviates.

Changes when another section can be reported: one ``Procedure`` in ``PROCEDURES``. Section numbers are the draft's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev

from hpn.failover.analysis.edge import EdgeKind
from hpn.failover.analysis.pause_cycles import deadlock
from hpn.results.bmwg import measured
from hpn.results.bmwg.formulas import fairness, max_mean_ratio, variation
from hpn.results.judge.repeats.spread import nearest_rank
from hpn.results.run.reading import Run
from hpn.testbed.entries import Registry

Value = str | int | float | None
Rows = Callable[[Run], Sequence[Sequence[Value]]]

_SOAK_NS = 60 * 10**9
"""Shortest run that is told as a soak; the draft asks for 24 h."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A test of the draft. ``rows``: of a run, () if it is none of this test; ``primary``: column of the main metric.

    ``deviates``: what is not as the draft has it; without ``columns``, why the test is not done at all.
    """

    section: str
    title: str
    deviates: str
    columns: tuple[str, ...] = ()
    rows: Rows = lambda _run: ()
    primary: str = ""


def _is_healthy(run: Run) -> bool:
    return run.drill is not None and not run.drill.faults


def _asks_incast(run: Run) -> bool:
    return run.drill is not None and any("pattern incast" in line for line in run.drill.traffic)


_COLLECTIVE = (
    *("load balancing", "N", "S (bytes)", "algo_factor", "algorithm (set)", "iterations", "S_fabric (bytes)"),
    *("BusBW avg (bit/s)", "P50", "P95", "P99", "BusBW / line rate", "JCT mean (s)", "ECN marked (%)", "PAUSE frames"),
)


def _of_kind(kind: str) -> Rows:
    def rows(run: Run) -> Sequence[Sequence[Value]]:
        found, times = measured.collective(run), measured.collective_seconds(run)
        if found is None or found.kind != kind or found.compute_s or not _is_healthy(run) or not times:
            return ()
        bandwidths = [found.busbw(time) for time in times]
        lowest = [nearest_rank(bandwidths, percent) for percent in (50, 95, 99)]
        iterations = measured.seconds(measured.steady(run))
        return [
            [
                *(measured.strategy(run), found.participants, found.size_bytes, found.factor, found.algorithm),
                *(len(times), found.size_bytes * found.factor, fmean(bandwidths), *lowest),
                *(fmean(bandwidths) / found.line_rate, fmean(iterations)),
                *(measured.marked_share(run), measured.pause_frames(run)),
            ]
        ]

    return rows


def _jct(run: Run) -> Sequence[Sequence[Value]]:
    found, times = measured.collective(run), measured.seconds(measured.steady(run))
    if found is None or not found.compute_s or not _is_healthy(run) or not times:
        return ()
    ratio = sum(times) / (len(times) * found.roofline_s)
    return [
        [
            *(measured.strategy(run), found.kind, found.participants, found.size_bytes, found.compute_s),
            *(found.factor, found.line_rate, len(times), sum(times), len(times) * found.roofline_s, ratio),
        ]
    ]


def _scale(run: Run) -> Sequence[Sequence[Value]]:
    found, times = measured.collective(run), measured.collective_seconds(run)
    if found is None or found.kind != "all-reduce" or not _is_healthy(run) or not times:
        return ()
    ratio = fmean(measured.seconds(measured.steady(run))) / found.roofline_s
    bandwidth = fmean(found.busbw(time) for time in times)
    counted = (measured.marked_share(run), measured.pause_frames(run))
    return [[measured.strategy(run), found.participants, found.size_bytes, found.compute_s, ratio, bandwidth, *counted]]


def _balance(run: Run) -> Sequence[Sequence[Value]]:
    loads = measured.uplink_bytes(run)
    if run.metrics is None or run.metrics.job is None or not _is_healthy(run) or len(loads) < 2:
        return ()
    flows = measured.uplink_flows(run) or (None, None)
    job, span_s = run.metrics.job, measured.traffic_s(run)
    late = job.summed_counters.get("out_of_sequence", 0) / span_s
    return [
        [
            *(measured.strategy(run), job.queue_pairs, len(loads), max_mean_ratio(loads), fairness(loads), *flows),
            *(late, job.packets_again / span_s),
        ]
    ]


def _pauses(run: Run) -> Sequence[Sequence[Value]]:
    buffers = run.metrics.buffers if run.metrics else None
    if not buffers or run.metrics is None or run.metrics.job is None or not (_is_healthy(run) and _asks_incast(run)):
        return ()
    span_s = measured.traffic_s(run)
    received = 8 * run.metrics.job.messages.size_bytes / span_s
    sent: dict[str, list[int]] = {}
    for each in buffers:
        tier = measured.tier_of(run, each.node)
        row = sent.setdefault(tier, [0, 0, 0])
        row[0] += each.xoff_sent
        row[1] = max(row[1], each.paused_ns)
        row[2] += each.lost
    return [
        [measured.strategy(run), tier, frames / span_s, paused / 1e3, lost, received]
        for tier, (frames, paused, lost) in sent.items()
    ]


def _storms(run: Run) -> Sequence[Sequence[Value]]:
    buffers = run.metrics.buffers if run.metrics else None
    if not buffers or run.drill is None:
        return ()
    ring = deadlock(buffers)
    storms, ended = sum(each.storms for each in buffers), sum(each.storms_ended for each in buffers)
    if not (ring or storms or any(fault.kind == "pause-storm" for fault in run.drill.faults)):
        return ()
    dropped = sum(each.storm_drops for each in buffers)
    return [[measured.traffic_s(run), len(ring), " ".join(ring), storms, ended, dropped]]


def _marking(run: Run) -> Sequence[Sequence[Value]]:
    asked, sampled = measured.marking(run), run.series.ports.series if run.series and run.series.ports else ()
    if asked is None:
        return ()
    found = []
    for series in sampled:
        parts = [[0, 0], [0, 0], [0, 0]]  # packets, marked: below Kmin, between, above Kmax
        for before, after in pairwise(series.until(measured.EVER)):
            least, most = sorted((before.backlog_bytes, after.backlog_bytes))
            at = 0 if most < asked.kmin else 2 if least > asked.kmax else 1
            parts[at][0] += after.sent_packets - before.sent_packets
            parts[at][1] += (after.marked or 0) - (before.marked or 0)
        if parts[1][1] or parts[2][1]:
            shares = [100 * marked / packets if packets else None for packets, marked in parts]
            found.append([series.port.port, asked.kmin, asked.kmax, asked.pmax, *shares])
    return found


def _failures(run: Run) -> Sequence[Sequence[Value]]:
    if run.metrics is None or run.drill is None or run.metrics.job is None or not run.drill.faults:
        return ()
    times, failed = measured.seconds(measured.steady(run)), measured.seconds(measured.hit(run))
    if measured.collective(run) is None or not times or not failed:
        return ()
    what = ", ".join(f"{fault.kind} {fault.target}" for fault in run.drill.faults)
    worst, tail = max(failed), nearest_rank(times, 99)
    again = run.metrics.job.packets_again
    return [
        [
            *(measured.strategy(run), what, len(times), fmean(times), tail, worst, worst - fmean(times), again),
            "yes" if worst <= tail else "no",
        ]
    ]


def _outages(run: Run) -> Sequence[Sequence[Value]]:
    if run.metrics is None or run.drill is None or not run.metrics.has_streams:
        return ()
    found = [each for each in run.metrics.edges if each.edge.kind is EdgeKind.FAILURE]
    return [
        [edge.edge.label, edge.flows_hit, edge.lost, edge.worst_outage_plbm_ms, edge.full_convergence_ms]
        for edge in found
    ]


def _soak(run: Run) -> Sequence[Sequence[Value]]:
    found, times = measured.collective(run), measured.seconds(measured.steady(run))
    if found is None or run.drill is None or run.drill.end_ns < _SOAK_NS or not _is_healthy(run) or not times:
        return ()
    ratios = [time / found.roofline_s for time in times]
    third = max(len(ratios) // 3, 1)
    course = (fmean(ratios[:third]), fmean(ratios[-third:]))
    return [[measured.traffic_s(run), len(ratios), fmean(ratios), pstdev(ratios), variation(ratios), *course]]


def _depths(run: Run) -> Sequence[Sequence[Value]]:
    found = measured.queues(run)
    return () if found is None else [[measured.strategy(run), *found]]


_RATES = "Rates are scaled; message sizes and N are those of the lab, not the draft's."
_UET = "Not done: there is no UET here."
_SPREAD = ("load balancing", "queue pairs", "uplinks", "MMR (bytes)", "JFI (bytes)", "MMR (flows)", "JFI (flows)")
_DISORDER = ("out-of-order events (1/s)", "retransmitted (packets/s)")

PROCEDURES: Registry[Procedure] = Registry(
    "BMWG procedure",
    lambda each: each.section,
    (
        Procedure("5.1", "Baseline Throughput", "Not done: no binary search for the rate without loss."),
        Procedure("5.2", "Latency Characterization", "Not done: stamps are a tick (0.25 ms) apart, not 100 ns."),
        Procedure("5.3", "Back-to-Back Burst Absorption", "Not done: bursts are paced by ticks."),
        Procedure("6", "UEC Transport Protocol Benchmarks", _UET),
        Procedure(
            "7.1",
            "ECN Marking Accuracy and Threshold",
            "Queues are sampled. A row has the ports that marked. A peak between two samples is not seen, so"
            " marks below Kmin are an upper bound.",
            ("port", "Kmin (bytes)", "Kmax (bytes)", "Pmax", "marked below Kmin (%)", "between (%)", "above Kmax (%)"),
            _marking,
        ),
        Procedure(
            "7.2",
            "PFC Behavior Under Incast",
            "The port that was paused longest stands for its tier.",
            (
                *("load balancing", "sent by", "PAUSE frames (1/s)", "longest pause of a port (us)"),
                *("packets lost", "received (bit/s)"),
            ),
            _pauses,
            "received (bit/s)",
        ),
        Procedure("7.3", "DCQCN Convergence Time", "Not done: a job starts all its queue pairs at once."),
        Procedure(
            "7.4",
            "PFC Storm and Deadlock Resilience",
            "Runs last seconds, not 300 s. Ports in a ring at the end wait for each other.",
            (
                *("traffic (s)", "ports in a ring", "ring", "watchdog fired", "watchdog restored"),
                "packets dropped by it",
            ),
            _storms,
        ),
        Procedure(
            "8",
            "Load Balancing Efficacy (ECMP, flowlets, spraying, JFI)",
            "Links are the uplinks of the ToRs that sent. " + _RATES,
            (*_SPREAD, *_DISORDER),
            _balance,
            "JFI (bytes)",
        ),
        *(
            Procedure(
                section,
                title,
                "The algorithm is set, so it needs no tracing. S_fabric is derived: every accelerator has a NIC. "
                + _RATES,
                _COLLECTIVE,
                _of_kind(kind),
                "BusBW avg (bit/s)",
            )
            for section, title, kind in (
                ("9.1", "AllReduce Benchmark", "all-reduce"),
                ("9.2", "AllToAll Benchmark", "all-to-all"),
                ("9.3", "AllGather Benchmark", "all-gather"),
            )
        ),
        Procedure(
            "10.1",
            "Synthetic JCT Under Controlled Conditions",
            "Fewer iterations than 1000. " + _RATES,
            (
                *("load balancing", "collective", "N", "S (bytes)", "C (s)", "algo_factor", "B_acc (bit/s)"),
                *("iterations", "JCT (s)", "Roofline_seq (s)", "JCT Ratio"),
            ),
            _jct,
            "JCT Ratio",
        ),
        Procedure("10.2", "MLPerf-Aligned JCT", "Not done: there are no accelerators."),
        Procedure("10.3", "Multi-Tenant JCT Interference", "Not done: a lab runs one job."),
        Procedure(
            "11.1",
            "Fabric Scale Limits",
            "N is what the drills ask for; adjacencies are not cleared.",
            (
                *("load balancing", "N", "S (bytes)", "C (s)", "JCT Ratio", "BusBW avg (bit/s)", "ECN marked (%)"),
                "PAUSE frames",
            ),
            _scale,
            "JCT Ratio",
        ),
        Procedure(
            "11.2",
            "Link Failure Convergence (jobs) and Zero-Impact Failover",
            "Stamps are a tick apart, not nanoseconds. " + _RATES,
            (
                *("load balancing", "failure", "steady iterations", "steady JCT (s)", "P99 (s)", "failure JCT (s)"),
                *("JCT overhead (s)", "packets retransmitted", "zero-impact"),
            ),
            _failures,
            "JCT overhead (s)",
        ),
        Procedure(
            "11.2 streams",
            "Link Failure Convergence (packet loss)",
            "Streams at a set rate, not a collective; they tell the loss itself.",
            ("failure", "flows hit", "packets lost", "longest loss (ms)", "full convergence (ms)"),
            _outages,
            "longest loss (ms)",
        ),
        Procedure(
            "12.1",
            "Sustained Load",
            "Shorter than 24 h; one collective, at the load that it offers.",
            (
                *("traffic (s)", "iterations", "JCT Ratio mean", "standard deviation", "CV"),
                *("JCT Ratio, first third", "last third"),
            ),
            _soak,
            "JCT Ratio mean",
        ),
        Procedure("12.2", "Resource Leak Detection", "Not done: processes live as long as a run."),
        Procedure(
            "4.2",
            "Queue Depth (P95 / Max)",
            "Samples, of the port with the deepest P95.",
            ("load balancing", "port", "P95 (bytes)", "max of any port (bytes)"),
            _depths,
        ),
    ),
    of=Procedure,
)
"""Procedures by the draft's section."""
