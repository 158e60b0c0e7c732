"""Complete input of a run's metrics and verdict; they use nothing else.

Changes when the analysis or the verdict needs more input. ``scenarios.run.stored_records`` stores it in a run folder
and reads it back, so that a run can be analysed again. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.cpu_waits import NO_WAITS, Waits
from hpn.failover.analysis.edges import with_windows
from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.job import JobFacts
from hpn.failover.analysis.model import Edge, Settings
from hpn.failover.analysis.offered import Offered
from hpn.failover.analysis.paths import Paths, Step
from hpn.failover.analysis.port_sampling import Sampled
from hpn.failover.locating.known import KnownPaths, known_paths
from hpn.failover.locating.rerouted import changes_of
from hpn.results.run.location import injected
from hpn.scenarios.drill.describe import fault_named
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.drill.workload import packet_period_ns
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.run.loads import offered_in
from hpn.scenarios.run.observation import Observation
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.events import Event
from hpn.testbed.routing.pathcontrol.policies import OFF
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.records import MESSAGE, RETRY, SPAN, STAMP
from hpn.traffic.jobengine.setup import JobReport
from hpn.traffic.streams.columns import InFiles, Records, Table, whole
from hpn.traffic.streams.records import RECEIVED, SENT
from hpn.traffic.workers.messages import TrafficReport


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a run other than packets, port readings and events. Times are CLOCK_MONOTONIC."""

    expectations: tuple[Expectation, ...]
    settings: Settings
    flows: tuple[FlowSpec, ...]
    edges: tuple[Edge, ...]  # with their windows
    start_ns: int
    healthy_end_ns: int
    end_ns: int
    host: HostLoad | None
    machine_drops: int
    differences: tuple[str, ...]  # lab's state after the run against before, and against its fabric
    deviations: tuple[str, ...] = ()  # differences of the lab from its fabric before any fault
    lags: tuple[tuple[str, str, str], ...] = ()  # host, LAG interface and NIC
    refresh_ms: int = 0  # of path control's refresh
    path_control: bool = True  # it is on and knows the queue pairs
    job: JobFacts | None = None  # a job, to which the queue pairs in ``flows`` belong, or a client
    beside: JobFacts | None = None  # client alongside a job
    waits: Waits = NO_WAITS  # CPU waits of the lab's own processes
    offered: Offered | None = None  # load of streams
    faults: Mapping[str, str] = field(default_factory=dict)  # description by id
    buffers: tuple[ClassUse, ...] | None = None  # None without ``switch:``
    known_paths: KnownPaths | None = None  # None where nothing is located
    locating: str = ""  # method of location; '': the usual one

    @property
    def streams(self) -> tuple[FlowSpec, ...]:
        """Flows that are streams; a run with a client may have some."""
        return self.flows if self.job is None or self.job.client is not None else ()


@dataclass(frozen=True)
class JobRecords:
    """Records of a job's workers: SPAN, MESSAGE, RETRY and STAMP; a client has spans only.

    ``retries`` and ``stamps`` are None of runs that did not store them.
    """

    spans: Records
    messages: Records
    retries: Records | None = None
    stamps: Records | None = None


@dataclass(frozen=True)
class Measurement:
    """Measurement of one run, the input of ``scenarios.run.judgement``; ``events`` are in order of time.

    Packets stay in their files and are read when needed.
    """

    facts: Facts
    events: tuple[Event, ...]
    sent: Table
    received: Table
    ports: Sampled | None = None
    job: JobRecords | None = None
    beside: JobRecords | None = None


def _is_controlled(drill: Drill) -> bool:
    """Return True if path control is on and knows the drill's queue pairs; it always knows those of a job."""
    told = drill.workload.path_control or not drill.streams
    return drill.topology.path_control.chosen.name != OFF and told


def measured_of(planned: PlannedRun, observed: Observation, events: Sequence[Event]) -> Measurement:
    """Return the measurement of a run; the files of its packets must exist while it is used."""
    drill = planned.drill
    facts = Facts(
        expectations=drill.expectations,
        settings=drill.settings.for_pacing(packet_period_ns(observed.flows) / 1e6, drill.tick_ns / 1e6),
        flows=observed.flows,
        edges=with_windows(observed.edges, observed.end_ns),
        start_ns=observed.start_ns,
        healthy_end_ns=observed.start_ns + drill.timeline.healthy_ns,
        end_ns=observed.end_ns,
        host=observed.host,
        machine_drops=observed.report.machine_drops,
        differences=observed.differences,
        deviations=observed.deviations,
        lags=tuple((nic.host, nic.lag, nic.name) for nic in planned.fabric.nics),
        refresh_ms=drill.topology.path_control.refresh_ms,
        path_control=_is_controlled(drill),
        job=observed.job,
        beside=observed.beside,
        waits=observed.waits,
        offered=offered_in(planned, observed, events),
        faults={fault.id: fault_named(fault) for fault in drill.timeline.faults},
        buffers=observed.buffers,
        known_paths=_known_paths(planned, observed, events),
        locating="" if drill.locating is None else drill.locating.method,
    )
    sent: tuple[str, ...] = ()
    received: tuple[str, ...] = ()
    of_client = JobRecords(np.frombuffer(observed.spans, SPAN), np.empty(0, MESSAGE))
    job = None
    match observed.report:
        case TrafficReport() as report:
            sent, received = report.sent_files, report.received_files
            if observed.job is not None:
                job = of_client
        case JobReport() as report:
            files = {SPAN: report.span_files, MESSAGE: report.message_files, RETRY: report.retry_files}
            spans, messages, retries = (whole(InFiles(_paths(found), dtype)) for dtype, found in files.items())
            stamps = whole(InFiles(_paths(report.stamp_files), STAMP))
            job = JobRecords(spans, messages, retries, stamps if len(stamps) else None)
    return Measurement(
        facts=facts,
        events=tuple(sorted(events, key=lambda event: event.at_ns)),
        sent=InFiles(_paths(sent), SENT),
        received=InFiles(_paths(received), RECEIVED),
        ports=observed.ports,
        job=job,
        beside=None if observed.beside is None else of_client,
    )


def _known_paths(planned: PlannedRun, observed: Observation, events: Sequence[Event]) -> KnownPaths | None:
    """Return the paths of streams over time if the drill locates its faults, or expects them to be located."""
    begin, drill = observed.paths, planned.drill
    if begin is None or not (drill.locating or any(each.metric.needs.paths for each in drill.expectations)):
        return None
    span_ns = observed.start_ns, observed.end_ns
    steps: list[Step] = [*sorted(events, key=lambda event: event.at_ns), *observed.edges, *observed.looked]
    faults = injected(asked_of(planned.drill, planned.fabric).faults)
    paths = tuple(Paths(planned.fabric, begin).over(steps, span_ns))
    nics = {flow.id: flow.src_nic for flow in observed.flows}
    changes = changes_of(planned.fabric, events, {flow.id: flow.dst_nic for flow in observed.flows})
    return known_paths(planned.fabric, nics, paths, observed.edges, faults, observed.end_ns, changes)


def _paths(files: Sequence[str]) -> Sequence[Path]:
    return [Path(path) for path in files]
