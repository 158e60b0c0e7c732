"""Drill as read from a file: pure, frozen, complete; made by ``scenarios.drill.load``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from pydantic import JsonValue, PlainSerializer

from hpn.failover.analysis.model import QUICK, Settings
from hpn.failover.analysis.port_sampling import Sampling
from hpn.failover.faults import PlannedFault
from hpn.scenarios.drill.capture import Captures
from hpn.scenarios.drill.job import JobSpec
from hpn.scenarios.drill.locate_section import Locating
from hpn.scenarios.expect.expectation import VERY_SLOW, Expectation
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.client.client import Client


class Profile(StrEnum):
    """Time that a flow must stay without loss to count as recovered: RFC 6412's 5 s, or 1 s."""

    QUICK = "quick"
    FULL = "full"

    @property
    def settings(self) -> Settings:
        """Constants of the measurement."""
        return QUICK if self is Profile.QUICK else Settings()

    @property
    def validation_ns(self) -> int:
        """Validation time in ns."""
        return int(self.settings.validation_s * 1e9)


PATH_MTUS = (256, 512, 1024, 2048, 4096)
PAYLOADS = (32, 64, 128, *PATH_MTUS)
"""Bytes of a packet's payload; the measurement header takes 24."""
DELAY_THRESHOLD_NS = int(Settings().forwarding_delay_threshold_ms * 1e6)


@dataclass(frozen=True, slots=True)
class Workload:
    """Traffic of a drill. ``load``: share of each NIC's total rate that its wire traffic fills."""

    pattern: str = "permutation"
    queue_pairs: int = 2  # per NIC and destination
    across_segments: bool = True
    load: float = 0.4
    path_mtu: int = 4096
    payload_bytes: int | None = None  # of each packet, as probes are small; None: the path MTU
    ib_timeout: int = 14
    retry_count: int = 7
    tick_ns: int = 1_000_000  # interval at which senders look at their schedule
    source_ports: str = "disjoint"  # how they are chosen: traffic.paths.CHOICES
    path_control: bool = True  # path control knows the queue pairs
    seed: int | None = None  # of the pattern; None: the fabric's
    size_bytes: int | None = None  # size of a transfer on each queue pair, in patterns that send transfers
    every_ns: int | None = None  # from the start of one transfer to the start of the next

    def slowed(self, times: int) -> Workload:
        """Return the workload for a kernel with ``times`` the cost per packet: less load, longer ticks.

        From 20 times on it has half the queue pairs, so that each sends densely enough to show an outage. Transfers
        shrink with the rate of their queue pair, so that they take as long.
        """
        if times <= 1:
            return self
        queue_pairs = self.queue_pairs if times < VERY_SLOW else max(1, self.queue_pairs // 2)
        tick_ns = max(self.tick_ns, min(times * 500_000, 20_000_000))
        size_bytes = self.size_bytes
        if size_bytes is not None:
            size_bytes = max(1, round(size_bytes * self.queue_pairs / queue_pairs / times))
        return replace(self, load=self.load / times, queue_pairs=queue_pairs, tick_ns=tick_ns, size_bytes=size_bytes)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Schedule of a drill, in ns from the start of traffic."""

    healthy_ns: int
    faults: tuple[PlannedFault, ...]
    settle_ns: int

    def slowed(self, times: int) -> Timeline:
        """Return the timeline for traffic divided by ``times``; the rate left on a slowed link is divided as well."""
        return replace(self, faults=tuple(replace(each, fault=each.fault.slowed(times)) for each in self.faults))

    @property
    def end_ns(self) -> int:
        """End of traffic: ``settle_ns`` after the last edge, or after the healthy phase."""
        return max([self.healthy_ns, *(edge.at_ns for fault in self.faults for edge in fault.edges)]) + self.settle_ns


def _as_given(topology: FabricSpec | None) -> JsonValue:
    found: JsonValue = None if topology is None else topology.model_dump(mode="json", exclude_unset=True)
    return found


PutOn = Annotated[FabricSpec | None, PlainSerializer(_as_given)]
"""Topology that replaces a drill's own, or None.

Between processes it is serialized with its explicitly set keys only.
"""


@dataclass(frozen=True, slots=True)
class OtherFabric:
    """Fabric that replaces a drill's own; ``notes``: the resulting changes, one line each."""

    topology: FabricSpec  # as written by the user
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drill:
    """One drill file, checked."""

    name: str
    summary: str
    description: str
    topology: FabricSpec
    workload: Workload
    profile: Profile
    timeline: Timeline
    expectations: tuple[Expectation, ...]
    source: str  # file of the drill
    sample: Sampling | None = None  # ports whose loads and queues are sampled
    job: JobSpec | None = None  # traffic that replaces the workload's streams
    client: Client | None = None  # program on the hosts, alongside streams or a job, or alone
    streams: bool = True  # True if the workload's streams run; not with a job, nor with a client alone
    captures: Captures | None = None  # links captured around each edge
    locating: Locating | None = None  # faults are located while streams run
    delay_threshold_ns: int = DELAY_THRESHOLD_NS  # a packet with a longer delay is late, and impaired (RFC 6412)
    other_fabric: OtherFabric | None = None  # None: the drill is on the fabric of its file

    @property
    def put_on(self) -> FabricSpec | None:
        """Topology that replaces the drill's own, or None."""
        return None if self.other_fabric is None else self.other_fabric.topology

    @property
    def settings(self) -> Settings:
        """Constants of the measurement."""
        return replace(self.profile.settings, forwarding_delay_threshold_ms=self.delay_threshold_ns / 1e6)

    @property
    def tick_ns(self) -> int:
        """Interval in ns at which senders look for due packets."""
        return self.workload.tick_ns if self.job is None else self.job.tick_ns

    def seeded(self, seed: int) -> Drill:
        """Return the drill with another seed of its topology: other hashes, and other random choices."""
        return replace(self, topology=self.topology.model_copy(update={"seed": seed}))

    def slowed(self, times: int) -> Drill:
        """Return the drill for a slow kernel: traffic that it can carry, and expectations to match.

        From 20 times on the expectations also allow more time, as daemons and drivers are an order of magnitude slower
        too.
        """
        workload = self.workload.slowed(times)
        queue_pairs = workload.queue_pairs / self.workload.queue_pairs
        expectations = tuple(each.slowed(times, queue_pairs) for each in self.expectations)
        sample = self.sample.slowed(times) if self.sample else None
        timeline = self.timeline.slowed(times)
        job = self.job.slowed(times) if self.job else None
        client = self.client and self.client.model_copy(update={"deadline": self.client.deadline * max(1, times)})
        slower = replace(self, workload=workload, job=job, timeline=timeline, expectations=expectations, sample=sample)
        return replace(slower, client=client)
