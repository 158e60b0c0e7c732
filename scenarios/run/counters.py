"""Convert the reports of a run's workers to the records of its folder. Pure.

Changes when workers report something more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpn.results.run.counters import QueuePairCounts, WorkerCounts, Workers
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.setup import JobReport, JobWorkerReport, QueuePairReport
from hpn.traffic.workers.messages import SendReport, TrafficReport, WorkerReport

Report = TrafficReport | JobReport


def queue_pairs_of(report: Report, flows: Sequence[FlowSpec]) -> Iterator[QueuePairCounts]:
    """Yield the counts of each queue pair, worker by worker."""
    names = {flow.id: flow.name for flow in flows}
    for worker in report.workers:
        for pair in worker.senders if isinstance(worker, WorkerReport) else worker.queue_pairs:
            yield _queue_pair(pair, names.get(pair.flow, ""), worker.index)


def workers_of(report: Report) -> Workers:
    """Return the counts of each worker."""
    return Workers(report.softnet_drops, tuple(_worker(each) for each in report.workers))


def _queue_pair(pair: SendReport | QueuePairReport, name: str, worker: int) -> QueuePairCounts:
    if isinstance(pair, QueuePairReport):
        counters = {
            "packets": pair.packets,
            "packets_again": pair.packets_again,
            "bytes_acknowledged": pair.bytes_acknowledged,
        }
        return QueuePairCounts(pair.flow, name, worker, counters, pair.died_at_ns)
    counters = {
        "packets": pair.sent,
        "bursts": pair.bursts,
        "packets_acknowledged": pair.acknowledged,
        "naks": pair.naks,
        "timeouts": pair.timeouts,
        "slips": pair.slips,
        "send_gap_max_ns": pair.send_gap_max_ns,
        "send_gap_p99_ns": pair.send_gap_p99_ns,
        **{f"error {name}": count for name, count in pair.send_errors.items()},
    }
    return QueuePairCounts(pair.flow, name, worker, counters)


def _worker(worker: WorkerReport | JobWorkerReport) -> WorkerCounts:
    counters = {
        "socket_drops": worker.socket_drops,
        "icrc_bad": worker.icrc_bad,
        "foreign": worker.foreign,
        "late_ticks": worker.late_ticks,
    }
    if isinstance(worker, WorkerReport):
        of_streams = {
            "acks_sent": worker.acks_sent,
            "received": sum(worker.received.values()),
            "receive_buffer_bytes": worker.receive_buffer_bytes,
            "realtime": int(worker.realtime),
        }
        counters |= of_streams
    return WorkerCounts(worker.index, worker.cpu_s, counters, worker.errors)
