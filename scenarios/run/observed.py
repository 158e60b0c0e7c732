"""What a run brings in, before anything is analysed; the runner fills it, judging reads it."""

from __future__ import annotations

from dataclasses import dataclass

from hpn.failover.analysis.hostload import HostLoad, Sample
from hpn.failover.analysis.job import JobFacts
from hpn.failover.analysis.model import Edge
from hpn.failover.analysis.paths import Looked, PathsAtBegin
from hpn.failover.analysis.readings import Sampled
from hpn.failover.analysis.waits import NO_WAITS, Waits
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.setup import JobReport
from hpn.traffic.workers.messages import TrafficReport


@dataclass(frozen=True)
class Observed:
    """Everything one run brought in. Times are CLOCK_MONOTONIC."""

    flows: tuple[FlowSpec, ...]
    report: TrafficReport | JobReport
    edges: tuple[Edge, ...]
    start_ns: int
    end_ns: int
    host: HostLoad | None
    differences: tuple[str, ...]
    ports: Sampled | None = None
    job: JobFacts | None = None  # where a job ran, beside its records in ``report``
    beside: JobFacts | None = None  # a client beside a job
    spans: bytes = b""  # of a client, alone or beside: its steps, as traffic.rdma.records.SPAN
    samples: tuple[Sample, ...] = ()  # that ``host`` is made of
    waits: Waits = NO_WAITS  # of the lab's own processes for a CPU
    paths: PathsAtBegin | None = None
    looked: tuple[Looked, ...] = ()
    deviations: tuple[str, ...] = ()  # of the healthy lab, before any fault, from what the fabric decides
