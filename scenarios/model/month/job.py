"""Synchronous job on a network: duration of an iteration by network state, and cost of a flap. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.scenarios.model.month.failures import Failed, Failure, Flaps, Kind
from hpn.scenarios.model.month.job_network import JobNetwork
from hpn.traffic.fluid.solve import Floats


@dataclass(frozen=True, eq=False)
class ModelledJob:
    """A job on all GPUs that its network gives it."""

    network: JobNetwork
    given: Assumptions

    @cached_property
    def _well_bps(self) -> float:
        return self.network.slowest_bps(frozenset())

    @cached_property
    def sums_s(self) -> float:
        """Time of the sums in a healthy iteration: the time at full rate, scaled by the slowest flow."""
        return self.given.sums_s * self.network.nic_bps / self._well_bps

    @cached_property
    def iteration_s(self) -> float:
        """Duration of a healthy iteration on this network."""
        return self.given.iteration_s - self.given.sums_s + self.sums_s

    def stretch(self, broken: Iterable[Failure]) -> float:
        """Return the factor by which an iteration is longer; infinite if a queue pair has no path left."""
        return self._stretch(frozenset((failure.kind, failure.number) for failure in broken))

    @cached_property
    def _stretch(self) -> Callable[[frozenset[Failed]], float]:
        """Cached solver of states: the same state is needed when a failure comes and again until the next one."""
        return lru_cache(maxsize=8)(self._solved)

    def _solved(self, broken: frozenset[Failed]) -> float:
        slowest = self.network.slowest_bps(broken)
        if slowest == 0:
            return math.inf
        return 1 + self.sums_s * (self._well_bps / slowest - 1) / self.iteration_s

    @cached_property
    def stretch_of_a_cut(self) -> float:
        """Mean factor with one link cut, over a few links; 1 if the job cannot continue."""
        found = [self.stretch([Failure(0.0, 0.0, Kind.LINK, link)]) for link in self.network.some_links()]
        return float(np.mean(found)) if math.isfinite(max(found)) else 1.0

    @property
    def failover_s(self) -> float:
        """Time in s without arrivals at a NIC that has another path."""
        return (self.given.path_control_ms if self.network.isolated_planes else self.given.second_tor_ms) / 1000

    def stalls(self, flaps: Flaps) -> tuple[Floats, Floats]:
        """Return when each flap halts the job, in hours, and for how long, in s (infinite: it fails; 0: no effect).

        Only sums use the network. A flap outside of them affects the next one, if it lasts until then. With another
        path the job continues over that. Without one a queue pair continues at its first retry after the link is back
        in use, and fails after the last retry.
        """
        another_way = self.network.has_another_way
        into = flaps.phase * self.iteration_s
        wait = np.where(into < self.sums_s, 0.0, self.iteration_s - into)
        blocked = np.full(len(wait), self.failover_s) if another_way else flaps.dark_s + self.given.return_s
        left = np.maximum(blocked - wait, 0.0)
        if not another_way:
            left = np.where(
                left > self.given.dies_after_s, np.inf, np.ceil(left / self.given.retry_s) * self.given.retry_s
            )
        return flaps.at_h + wait / 3600, left
