"""A job as input of its engine: programs and placement of all ranks, restarts, and the scheduler interface.

Changes when a job gets new options. Imports no process and no socket: drills are loaded with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hpn.traffic.collectives.program import Program
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.job.standby import Replaced
from hpn.traffic.jobengine.rehash import RehashPolicy
from hpn.traffic.jobengine.setup import QueuePair
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.port_recovery import PortRecovery
from hpn.traffic.transport.work import Transport


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job as it is to run: the programs of all ranks, and the queue pairs between them."""

    programs: tuple[Program, ...]
    nics: tuple[str, ...]  # of each rank, by position in ``programs``
    background: frozenset[int]  # ranks that do not count as the job's
    queue_pairs: tuple[QueuePair, ...]
    transport: Transport
    acks: AckPolicy
    control: Parameters
    scale: Scale
    slower: int  # divisor of each port's rate, for a slow kernel
    choice: str
    split: bool
    tick_ns: int
    failover: bool = False
    port_use: str = "active-active"
    recovery: PortRecovery | None = None
    rehash: RehashPolicy | None = None  # when a queue pair leaves its path; None: never
    spray: int = 1  # source ports that a queue pair's packets take in turn
    restart: RestartPolicy | None = None  # None: the job is not restarted
    samples: int = 0  # training samples in an iteration; 0: not given

    @property
    def flows(self) -> tuple[FlowSpec, ...]:
        """Queue pairs as flows: ends, names and source ports."""
        return tuple(pair.flow for pair in self.queue_pairs)

    @property
    def acts_on_marks(self) -> bool:
        """True if switch marks change its sending: by its congestion control, or by leaving a path."""
        return self.rehash is not None or self.control.acts_on_marks


@dataclass(frozen=True, slots=True)
class Layout:
    """Placement of a job in its next incarnation: replaced hosts, and the resulting NICs and flows."""

    replaced: tuple[Replaced, ...]
    nics: tuple[str, ...]  # as those of the plan
    flows: tuple[FlowSpec, ...]  # all, in the plan's order, with their source ports


@dataclass(frozen=True, slots=True)
class Death:
    """Failure of a job, and its next incarnation if there was one."""

    at_ns: int
    queue_pair: str  # the one whose retries were used up first; "": the watchdog ended it
    restarted_at_ns: int | None = None  # None: the run ended before
    first: int = 0  # its iteration that it began with
    replaced: tuple[Replaced, ...] = ()  # before it began
    silent: str = ""  # NICs that got nothing while the watchdog waited


class Scheduler(Protocol):
    """Source of hosts for a job that has failed."""

    async def layout(self) -> Layout | None:
        """Return the new layout after a restart, or None to reuse the old one."""

    def laid_out(self, layout: Layout) -> None:
        """Note that the job's workers are ready in this layout."""
