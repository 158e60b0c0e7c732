"""A job as its engine takes it: what every rank does and over what, where it goes on after a death, and who says so.

Changes when a job can be told to run in another way. Imports no process and no socket: drills are loaded with it.
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
    """A job as it is to run: what every rank does, and the queue pairs between them."""

    programs: tuple[Program, ...]
    nics: tuple[str, ...]  # of each rank, by position in ``programs``
    background: frozenset[int]  # ranks that do not count as the job's
    queue_pairs: tuple[QueuePair, ...]
    transport: Transport
    acks: AckPolicy
    control: Parameters
    scale: Scale
    slower: int  # a slow kernel gets a so-many-th of each port's rate
    choice: str
    split: bool
    tick_ns: int
    failover: bool = False
    recovery: PortRecovery | None = None
    rehash: RehashPolicy | None = None  # when a queue pair leaves its path; None: never
    spray: int = 1  # source ports that a queue pair's packets take in turn
    restart: RestartPolicy | None = None  # None: dead is dead
    samples: int = 0  # that an iteration trains on; 0: not said

    @property
    def flows(self) -> tuple[FlowSpec, ...]:
        """Its queue pairs as streams know them: ends, names and source ports."""
        return tuple(pair.flow for pair in self.queue_pairs)

    @property
    def acts_on_marks(self) -> bool:
        """Whether what switches mark changes what it sends: by its congestion control, or by leaving a path."""
        return self.rehash is not None or self.control.notifier(self.scale) is not None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a job is in its next life: hosts that were replaced, and what follows from it."""

    replaced: tuple[Replaced, ...]
    nics: tuple[str, ...]  # as those of the plan
    flows: tuple[FlowSpec, ...]  # all, in the plan's order, with their source ports


@dataclass(frozen=True, slots=True)
class Death:
    """A job's death, and its next life if there was one."""

    at_ns: int
    queue_pair: str  # whose retries were used up first
    restarted_at_ns: int | None = None  # None: the run ended before
    first: int = 0  # its iteration that it began with
    replaced: tuple[Replaced, ...] = ()  # before it began


class Scheduler(Protocol):
    """Finds hosts for a job that has died."""

    async def layout(self) -> Layout | None:
        """Where it goes on; None: where it was."""

    def laid_out(self, layout: Layout) -> None:
        """Its workers are ready there."""
