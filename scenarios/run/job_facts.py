"""Facts of a run's job and client, from what carried them."""

from __future__ import annotations

from dataclasses import replace

from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.job import JobFacts
from hpn.scenarios.run.clients_on_lab import LabClients
from hpn.scenarios.run.job_on_lab import LabJob
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs, Report
from hpn.scenarios.run.rdma_counters import DeviceCounters
from hpn.traffic.jobengine.setup import JobReport


def job_facts(
    traffic: LabQueuePairs, report: Report, client: LabClients, devices: DeviceCounters, host: HostLoad | None
) -> tuple[JobFacts | None, JobFacts | None]:
    """Return the facts of the job and of the client; a client's steps are timed when this loop reads them."""
    job = traffic.facts(report) if isinstance(traffic, LabJob) and isinstance(report, JobReport) else None
    facts = client.facts(0 if host is None else round(host.loop_lag_max_ms * 1e6))
    return job, None if facts is None else replace(facts, counters=devices.counted())
