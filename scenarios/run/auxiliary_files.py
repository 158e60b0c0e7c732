"""Auxiliary files of a run folder: drill, fabric, host, paths, and the counters of queue pairs and workers.

Changes when a run writes another such file. They are written after the run from data already in memory, so they do not
affect the measurement.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from hpn.failover.analysis.hostload import course
from hpn.failover.analysis.paths import Paths
from hpn.results.run.counters import QueuePairCounts, WorkerCounts, Workers
from hpn.results.run.files import content, write
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import Identity, identity_of
from hpn.results.run.manifest import Manifest
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.run.observation import Observation
from hpn.scenarios.run.rdma_counters import FILE as DEVICES
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event
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


_FILES = ("fabric.json", "drill.json", "host.jsonl", "paths.jsonl", "queue_pairs.jsonl", "workers.json")


def write_beside(
    folder: RunFolder, planned: PlannedRun, observed: Observation, events: Sequence[Event], manifest: Manifest
) -> Identity:
    """Write all auxiliary files and return the identity of the experiment; ``events`` must be in order of time.

    OSError when a file cannot be written.
    """
    fabric = planned.fabric
    asked = asked_of(planned.drill, fabric)
    folder.write_fabric(fabric)
    folder.write_drill(asked)
    folder.write_host(course(observed.samples, os.cpu_count() or 1))
    folder.write_counts(queue_pairs_of(observed.report, observed.flows), workers_of(observed.report))
    begin = observed.paths
    if begin is not None:
        span_ns = observed.start_ns, observed.end_ns
        folder.write_paths(Paths(fabric, begin).over((*events, *observed.edges, *observed.looked), span_ns))
    return identity_of(fabric, asked, manifest.phase_ms)


def copy_beside(folder: RunFolder, to: RunFolder) -> None:
    """Copy the auxiliary files of a run to the folder of its new analysis; files that the run lacks are skipped."""
    for name in (*_FILES, DEVICES):
        try:
            write(to.path / name, content(folder.path / name))
        except InputError:
            continue
