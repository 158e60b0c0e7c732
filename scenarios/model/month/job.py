"""Synchronous job on pods: duration of an iteration by network state, and cost of a flap. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.scenarios.model.month.failures import Failure, Flaps, Kind
from hpn.traffic.fluid.flows import drawn, ring
from hpn.traffic.fluid.pace import Paced, after, healthy
from hpn.traffic.fluid.pods import Numbers, Pods
from hpn.traffic.fluid.routes import FailedParts
from hpn.traffic.fluid.solve import Floats


@dataclass(frozen=True, eq=False)
class ModelledJob:
    """Rings over the first hosts of the pods, one per rail; ``well`` has their queue pairs' rates without faults."""

    well: Paced
    gpus: int
    given: Assumptions
    path_control: bool
    hosts: Numbers  # of the ring, counted over all pods

    @classmethod
    def on(
        cls, pods: Pods, gpus: int, queue_pairs: int, seed: int, given: Assumptions, *, path_control: bool = True
    ) -> ModelledJob:
        """Return a job of ``gpus``, whole hosts; the hosts choose source ports evenly, as HPN's do."""
        hosts = np.arange(gpus // pods.rails, dtype=np.int64)
        return cls(
            healthy(pods, drawn(pods, ring(pods, hosts), queue_pairs, seed, "even")), gpus, given, path_control, hosts
        )

    @property
    def pods(self) -> Pods:
        """Pods of the job."""
        return self.well.pods

    @property
    def has_another_way(self) -> bool:
        """True if a NIC that lost one link is reachable through its other link."""
        return self.pods.tors > 1 and (self.pods.planes == 1 or self.path_control)

    @cached_property
    def sums_s(self) -> float:
        """Time of the sums in a healthy iteration: the time at full rate, scaled by the slowest flow."""
        return self.given.sums_s * self.pods.port_bps * self.pods.tors / self.well.slowest_bps

    @cached_property
    def iteration_s(self) -> float:
        """Duration of a healthy iteration on this network."""
        return self.given.iteration_s - self.given.sums_s + self.sums_s

    def stretch(self, broken: Iterable[Failure]) -> float:
        """Return the factor by which an iteration is longer; infinite if a queue pair has no path left."""
        return self._stretch(frozenset((failure.kind, failure.number) for failure in broken))

    @cached_property
    def _stretch(self) -> Callable[[frozenset[tuple[Kind, int]]], float]:
        """Cached solver of states: the same state is needed when a failure comes and again until the next one."""
        return lru_cache(maxsize=8)(self._solved)

    def _solved(self, broken: frozenset[tuple[Kind, int]]) -> float:
        slowest = after(self.well, self._broken(broken), path_control=self.path_control).slowest_bps
        if slowest == 0:
            return math.inf
        return 1 + self.sums_s * (self.well.slowest_bps / slowest - 1) / self.iteration_s

    @cached_property
    def stretch_of_a_cut(self) -> float:
        """Mean factor with one link cut, over a few links; 1 if the job cannot continue."""
        some = self.hosts[np.linspace(0, len(self.hosts) - 1, 3).astype(int)]  # their NICs of rail 0
        links = some * self.pods.tors
        found = [self.stretch([Failure(0.0, 0.0, Kind.LINK, int(link))]) for link in links]
        return float(np.mean(found)) if math.isfinite(max(found)) else 1.0

    @property
    def failover_s(self) -> float:
        """Time in s without arrivals at a NIC that has another path."""
        return (self.given.path_control_ms if self.pods.planes > 1 else self.given.second_tor_ms) / 1000

    def stalls(self, flaps: Flaps) -> tuple[Floats, Floats]:
        """Return when each flap halts the job, in hours, and for how long, in s (infinite: it fails; 0: no effect).

        Only sums use the network. A flap outside of them affects the next one, if it lasts until then. With another
        path the job continues over that. Without one a queue pair continues at its first retry after the link is back
        in use, and fails after the last retry.
        """
        into = flaps.phase * self.iteration_s
        wait = np.where(into < self.sums_s, 0.0, self.iteration_s - into)
        blocked = np.full(len(wait), self.failover_s) if self.has_another_way else flaps.dark_s + self.given.return_s
        left = np.maximum(blocked - wait, 0.0)
        if not self.has_another_way:
            left = np.where(
                left > self.given.dies_after_s, np.inf, np.ceil(left / self.given.retry_s) * self.given.retry_s
            )
        return flaps.at_h + wait / 3600, left

    def _broken(self, failures: Iterable[tuple[Kind, int]]) -> FailedParts:
        broken, pods = FailedParts.nothing(self.pods), self.pods
        for kind, number in failures:
            if kind is Kind.LINK:
                broken = broken.with_access(number // pods.tors, number % pods.tors, pods)
            else:
                broken = broken.with_tor(number)
                if kind is Kind.STACK:
                    broken = broken.with_tor(number ^ 1)
        return broken
