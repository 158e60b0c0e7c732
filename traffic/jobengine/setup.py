"""What the engine tells a job's worker, and what that reports in the end. No numpy: the supervisor imports it.

Changes when a job's workers must know or tell something more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hpn.traffic.collectives.program import Program
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.rehash import Cause, RehashPolicy
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


@dataclass(frozen=True, slots=True)
class JobSetup(Assignment):
    """All that a job's worker needs to know; the first message it gets."""

    programs: tuple[Program, ...]  # of the ranks here
    senders: tuple[QueuePair, ...]  # whose requester is here
    receivers: tuple[QueuePair, ...]  # whose responder is here
    transport: Transport
    acks: AckPolicy
    control: Parameters  # as for real links
    scale: Scale  # of the lab against those
    choice: str  # key of MESSAGE_CHOICES
    split: bool  # every message in parts over all queue pairs of its connection
    failover: bool  # a connection goes on with the queue pairs that it has left
    recovery: PortRecovery | None  # how those that failed return; None: they do not
    rehash: RehashPolicy | None  # when a queue pair leaves its path; None: never
    port_rate_bps: Mapping[str, tuple[int, ...]]  # of each NIC here: what its ports may carry of the job
    tick_ns: int
    offset_ns: int  # of the tick against the other workers'


@dataclass(frozen=True, slots=True)
class Ports(Message):
    """Through which port of its NIC each queue pair's packets leave now: 2 x flow for data, 2 x flow + 1 for ACKs."""

    ports: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Spray(Message):
    """The source ports that the data packets of queue pairs take in turn from now on, by flow."""

    sports: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Abort(Message):
    """A queue pair of the job has died, and with it the job: its queue pairs are gone. Answer Aborted."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class FailedOver(Message):
    """A queue pair of the job has died, and others of its connection have taken over what it had."""

    flow: int
    at_ns: int
    requests: int  # posted again


@dataclass(frozen=True, slots=True)
class Leaves(Message):
    """A queue pair is to take another path: whoever chooses paths gives its data another source port."""

    flow: int
    at_ns: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Recovered(Message):
    """A queue pair that had failed over is there again, as new; or not ``again``: nobody tries any more."""

    flow: int
    at_ns: int
    again: bool


@dataclass(frozen=True, slots=True)
class Aborted(Message):
    """The answer to Abort: the last iteration that any rank here has begun."""

    iteration: int


@dataclass(frozen=True, slots=True)
class Life:
    """A job from a start to its death: which of its starts it was, and its first iteration.

    No iteration has the number of one of an earlier life, and no queue pair has: what is late is known by it.
    """

    number: int
    iteration: int


FIRST_LIFE = Life(0, 0)


@dataclass(frozen=True, slots=True)
class Part:
    """What of a job is one worker's: ranks, and ends of queue pairs."""

    programs: tuple[Program, ...]
    senders: tuple[QueuePair, ...]  # whose requester is here
    receivers: tuple[QueuePair, ...]  # whose responder is here


@dataclass(frozen=True, slots=True)
class Restart(Message):
    """Make new queue pairs and ranks for another life, which Begin begins. Answer Restarted.

    ``part``: what the worker has now, where hosts were replaced; None: what it had.
    """

    life: Life
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Restarted(Message):
    """The answer to Restart: whatever comes now is taken."""


@dataclass(frozen=True, slots=True)
class NicCounters:
    """What one NIC counted, by the names of ``rdma statistic show`` (mlx5, rxe hw_counters)."""

    nic: str
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueuePairReport:
    """A queue pair over its life."""

    flow: int
    packets: int  # sent, those sent again included
    packets_again: int
    bytes_acknowledged: int  # payload, each byte once
    died_at_ns: int | None


@dataclass(frozen=True, slots=True)
class JobWorkerReport(Message):
    """One worker's own account; spans and messages are in its record files."""

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

    @property
    def files(self) -> tuple[str, ...]:
        """All records."""
        return (*self.span_files, *self.message_files)

    @property
    def machine_drops(self) -> int:
        """Packets lost by this machine, not by the fabric."""
        return self.softnet_drops + sum(w.socket_drops for w in self.workers)
