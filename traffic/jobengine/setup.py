"""Messages between the engine and a job's workers, and their final report. No numpy: the supervisor imports it.

Changes when a job's workers need or report more data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hpn.traffic.collectives.program import Program
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.rehash import Cause, RehashPolicy
from hpn.traffic.multipath.denials import Denial
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.port_recovery import PortRecovery
from hpn.traffic.transport.work import Transport
from hpn.traffic.workers.messages import Assignment, Message


@dataclass(frozen=True, slots=True)
class QueuePair:
    """One queue pair of a connection between two ranks; data goes one way, acknowledgements the other."""

    flow: FlowSpec  # its ends, names and source ports; ``rate_pps`` is what its port can carry
    source: int  # rank
    target: int
    rail: int | None  # of the NIC that it leaves by
    grants: bool = False  # it carries grants of ``source`` for what ``target`` sends to it, and no message
    dscp: int = 0  # of all that it sends, acknowledgements too
    wire_ns: int = 0  # that a full packet takes on the links of its shortest path; 0: unknown


@dataclass(frozen=True, slots=True)
class JobSetup(Assignment):
    """Settings of a job's worker; the first message it receives."""

    programs: tuple[Program, ...]  # of the ranks here
    senders: tuple[QueuePair, ...]  # whose requester is here
    receivers: tuple[QueuePair, ...]  # whose responder is here
    transport: Transport
    acks: AckPolicy
    control: Parameters  # as for real links
    scale: Scale  # of the lab against those
    choice: str  # key of MESSAGE_CHOICES
    split: bool  # every message in parts over all queue pairs of its connection
    failover: bool  # a connection continues with its remaining queue pairs
    port_use: str  # key of PORT_USES
    recovery: PortRecovery | None  # recovery of failed ones; None: they do not return
    rehash: RehashPolicy | None  # when a queue pair leaves its path; None: never
    port_rate_bps: Mapping[str, tuple[int, ...]]  # of each NIC here: what its ports may carry of the job
    tick_ns: int
    offset_ns: int  # of the tick against the other workers'


@dataclass(frozen=True, slots=True)
class Ports(Message):
    """NIC port of each queue pair's packets from now on: 2 x flow for data, 2 x flow + 1 for ACKs."""

    ports: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Spray(Message):
    """Source ports that the data packets of queue pairs use in turn from now on, by flow."""

    sports: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Values(Message):
    """Entropy values of multipath queue pairs from now on: 2 x flow for data, 2 x flow + 1 for ACKs."""

    values: Mapping[int, tuple[EntropyValue, ...]]


@dataclass(frozen=True, slots=True)
class Abort(Message):
    """Failure of a queue pair of the job, and so of the job: its queue pairs are gone. Answer Aborted."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class FailedOver(Message):
    """Failover of a queue pair of the job: others of its connection have taken over its work."""

    flow: int
    at_ns: int
    requests: int  # posted again


@dataclass(frozen=True, slots=True)
class Leaves(Message):
    """Request of a queue pair for another path: path control gives its data another source port."""

    flow: int
    at_ns: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Recovered(Message):
    """End of a queue pair's recovery: it is back, as new, or (not ``again``) its recovery has failed."""

    flow: int
    at_ns: int
    again: bool


@dataclass(frozen=True, slots=True)
class Aborted(Message):
    """The answer to Abort: the last iteration that any local rank has begun."""

    iteration: int


@dataclass(frozen=True, slots=True)
class Incarnation:
    """An incarnation of a job, from a start to its failure: its number, and its first iteration.

    Iterations and queue pairs have other numbers than in earlier incarnations, so late packets are recognised.
    """

    number: int
    iteration: int


FIRST_LIFE = Incarnation(0, 0)


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """A worker's part of a job: ranks, and ends of queue pairs."""

    programs: tuple[Program, ...]
    senders: tuple[QueuePair, ...]  # whose requester is here
    receivers: tuple[QueuePair, ...]  # whose responder is here


@dataclass(frozen=True, slots=True)
class Restart(Message):
    """Create queue pairs and ranks for another incarnation, which Begin starts. Answer Restarted.

    ``part``: the worker's new part, if hosts were replaced; None: unchanged.
    """

    life: Incarnation
    part: WorkerPart | None = None


@dataclass(frozen=True, slots=True)
class Restarted(Message):
    """The answer to Restart: the worker now accepts packets."""


@dataclass(frozen=True, slots=True)
class NicCounters:
    """Counters of one NIC, named as in ``rdma statistic show`` (mlx5, rxe hw_counters)."""

    nic: str
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueuePairReport:
    """Report of a queue pair over its life time."""

    flow: int
    packets: int  # sent, those sent again included
    packets_again: int
    bytes_acknowledged: int  # payload, each byte once
    died_at_ns: int | None
    denials: tuple[Denial, ...] = ()  # of a multipath queue pair


@dataclass(frozen=True, slots=True)
class JobWorkerReport(Message):
    """Report of one worker; spans and messages are in its record files."""

    index: int
    queue_pairs: tuple[QueuePairReport, ...]
    nics: tuple[NicCounters, ...]
    socket_drops: int  # datagrams the kernel dropped because the worker did not read in time
    icrc_bad: int
    foreign: int
    errors: Mapping[str, int]  # refused packets and receive errors by name
    late_ticks: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class JobReport:
    """The run as the engine saw it."""

    workers: tuple[JobWorkerReport, ...]
    softnet_drops: int
    span_files: tuple[str, ...]
    message_files: tuple[str, ...]
    retry_files: tuple[str, ...]
    stamp_files: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Record files."""
        return (*self.span_files, *self.message_files, *self.retry_files, *self.stamp_files)

    @property
    def machine_drops(self) -> int:
        """Packets lost by this machine, not by the fabric."""
        return self.softnet_drops + sum(w.socket_drops for w in self.workers)
