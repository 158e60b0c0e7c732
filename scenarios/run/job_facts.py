"""Facts of a run's job and client, from what carried them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hpn.failover.analysis.denied import DeniedPath
from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.job import JobFacts
from hpn.scenarios.run.clients_on_lab import LabClients
from hpn.scenarios.run.job_on_lab import LabJob
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs, Report
from hpn.scenarios.run.rdma_counters import DeviceCounters
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.setup import JobReport


def job_facts(
    traffic: LabQueuePairs, report: Report, client: LabClients, devices: DeviceCounters, host: HostLoad | None
) -> tuple[JobFacts | None, JobFacts | None]:
    """Return the facts of the job and of the client; a client's steps are timed when this loop reads them."""
    job = None
    if isinstance(traffic, LabJob) and isinstance(report, JobReport):
        job = replace(traffic.facts(report), denied=tuple(_denied(traffic.flows, report)))
    facts = client.facts(0 if host is None else round(host.loop_lag_max_ms * 1e6))
    return job, None if facts is None else replace(facts, counters=devices.counted())


def _denied(flows: Sequence[FlowSpec], report: JobReport) -> Iterator[DeniedPath]:
    """Yield the paths that queue pairs denied."""
    nics = {flow.id: flow.src_nic for flow in flows}
    for pair in (pair for worker in report.workers for pair in worker.queue_pairs):
        for each in pair.denials:
            yield DeniedPath(nics[pair.flow], each.port, each.sent_ns, each.at_ns, each.rtt_ns)
