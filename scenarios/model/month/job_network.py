"""The network of a month's job: rates of its rings with failed parts, on pods by arithmetic. Pure; imports numpy."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hpn.scenarios.model.month.failures import Failed, Kind, Parts
from hpn.traffic.fluid.flows import drawn, ring
from hpn.traffic.fluid.pace import Paced, after, healthy
from hpn.traffic.fluid.pods import Numbers, Pods
from hpn.traffic.fluid.routes import FailedParts


class JobNetwork(Parts, Protocol):
    """A network that carries a job of rings, one on each rail. NIC-ToR links and ToRs have numbers."""

    @property
    def gpus(self) -> int:
        """GPUs of the job, one per NIC."""

    @property
    def nic_bps(self) -> float:
        """Rate of a NIC, all ports together, bit/s."""

    @property
    def isolated_planes(self) -> bool:
        """True if a NIC's ports lead to planes that share nothing."""

    @property
    def has_another_way(self) -> bool:
        """True if a NIC that lost one link is reachable through another."""

    def segment(self, link: int) -> Hashable:
        """Return the segment whose spare hosts replace the host of a link."""

    def some_links(self) -> Sequence[int]:
        """Return a few links of the first rail, spread over the job."""

    def slowest_bps(self, broken: frozenset[Failed]) -> float:
        """Return the rate of the slowest pair of NICs once these have failed; 0 if one has no path left."""


@dataclass(frozen=True, eq=False)
class PodNetwork:
    """Pods by arithmetic; ``well`` has the queue pairs' rates without faults."""

    well: Paced
    gpus: int
    path_control: bool
    hosts: Numbers  # of the ring, counted over all pods

    @classmethod
    def first_hosts(cls, pods: Pods, gpus: int, queue_pairs: int, seed: int, *, path_control: bool) -> PodNetwork:
        """Return whole hosts with ``gpus``; they choose source ports evenly, as HPN's do."""
        hosts = np.arange(gpus // pods.rails, dtype=np.int64)
        flows = drawn(pods, ring(pods, hosts), queue_pairs, seed, "even")
        return cls(healthy(pods, flows), gpus, path_control, hosts)

    @property
    def links(self) -> int:
        """See ``JobNetwork``."""
        return self.gpus * self.well.pods.tors

    @property
    def tors(self) -> int:
        """See ``JobNetwork``."""
        return self.well.pods.sets * self.well.pods.tors

    @property
    def stacked(self) -> bool:
        """See ``JobNetwork``."""
        return self.well.pods.stacked

    @property
    def nic_bps(self) -> float:
        """See ``JobNetwork``."""
        return self.well.pods.port_bps * self.well.pods.tors

    @property
    def isolated_planes(self) -> bool:
        """See ``JobNetwork``."""
        return self.well.pods.planes > 1

    @property
    def has_another_way(self) -> bool:
        """See ``JobNetwork``."""
        return self.well.pods.tors > 1 and (not self.isolated_planes or self.path_control)

    def link(self, of_job: int) -> int:
        """See ``JobNetwork``. The job has the first hosts of each rail; ``nic * tors + port``."""
        pods = self.well.pods
        nic, port = divmod(of_job, pods.tors)
        rail, host = divmod(nic, self.gpus // pods.rails)
        return (rail * pods.nics_of_a_rail + host) * pods.tors + port

    def segment(self, link: int) -> Hashable:
        """See ``JobNetwork``."""
        pods = self.well.pods
        return link // pods.tors // pods.hosts % (pods.pods * pods.segments)

    def some_links(self) -> Sequence[int]:
        """See ``JobNetwork``."""
        some = self.hosts[np.linspace(0, len(self.hosts) - 1, 3).astype(int)]
        return [int(host) * self.well.pods.tors for host in some]

    def slowest_bps(self, broken: frozenset[Failed]) -> float:
        """See ``JobNetwork``."""
        if not broken:
            return self.well.slowest_bps
        return after(self.well, self._parts(broken), path_control=self.path_control).slowest_bps

    def _parts(self, failures: Iterable[Failed]) -> FailedParts:
        pods = self.well.pods
        broken = FailedParts.nothing(pods)
        for kind, number in failures:
            if kind is Kind.LINK:
                broken = broken.with_access(number // pods.tors, number % pods.tors, pods)
            else:
                broken = broken.with_tor(number)
                if kind is Kind.STACK:
                    broken = broken.with_tor(number ^ 1)
        return broken
