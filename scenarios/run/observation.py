"""Raw observations of a run before any analysis; written by the runner, read by the judgement."""

from __future__ import annotations

from dataclasses import dataclass

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.cpu_waits import NO_WAITS, Waits
from hpn.failover.analysis.hostload import HostLoad, Sample
from hpn.failover.analysis.job import JobFacts
from hpn.failover.analysis.model import Edge
from hpn.failover.analysis.paths import Looked, PathsAtBegin
from hpn.failover.analysis.port_sampling import Sampled
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.setup import JobReport
from hpn.traffic.workers.messages import TrafficReport


@dataclass(frozen=True)
class Observation:
    """Observations of one run. Times are CLOCK_MONOTONIC."""

    flows: tuple[FlowSpec, ...]
    report: TrafficReport | JobReport
    edges: tuple[Edge, ...]
    start_ns: int
    end_ns: int
    host: HostLoad | None
    differences: tuple[str, ...]
    ports: Sampled | None = None
    buffers: tuple[ClassUse, ...] | None = None  # None without ``switch:``
    job: JobFacts | None = None  # of a job, whose records are in ``report``
    beside: JobFacts | None = None  # client alongside a job
    spans: bytes = b""  # steps of a client, as traffic.rdma.records.SPAN
    samples: tuple[Sample, ...] = ()  # basis of ``host``
    waits: Waits = NO_WAITS  # CPU waits of the lab's own processes
    paths: PathsAtBegin | None = None
    looked: tuple[Looked, ...] = ()
    deviations: tuple[str, ...] = ()  # differences of the healthy lab from its fabric, before any fault
