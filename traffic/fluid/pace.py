"""Rates of all flows in pods, healthy and after a fault; a fault recomputes only what it can affect. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpn.traffic.fluid.flows import Flows
from hpn.traffic.fluid.pods import Numbers, Pods
from hpn.traffic.fluid.routes import FailedParts, Flags, Paths, capacity_of, paths_of
from hpn.traffic.fluid.solve import Floats, link_load, max_min

_NEARLY = 1 - 1e-9
"""Load share from which on a link counts as full and limits flows."""


@dataclass(frozen=True, eq=False)
class Paced:
    """Result for every flow: paths (flows, hops), capacities and rates in bit/s."""

    pods: Pods
    flows: Flows
    paths: Paths
    capacity: Floats
    rates: Floats
    most_bps: float = np.inf  # limit of each queue pair

    @cached_property
    def load(self) -> Floats:
        """Load of each directed link, bit/s."""
        return link_load(self.paths, self.rates, self.pods.links)

    @property
    def pair_rates(self) -> Floats:
        """Rate of each pair of NICs, its queue pairs together, bit/s."""
        return np.add.reduceat(self.rates, np.arange(0, len(self.flows), self.flows.queue_pairs))

    @property
    def slowest_bps(self) -> float:
        """Rate of the slowest pair if its queue pairs carry equal shares: the slowest of them limits it."""
        return float(self.rates.min(initial=np.inf)) * self.flows.queue_pairs


def healthy(pods: Pods, flows: Flows, most_bps: float = np.inf) -> Paced:
    """Return all flows without failures, none of which sends more than ``most_bps``."""
    nothing = FailedParts.nothing(pods)
    paths, capacity = paths_of(pods, flows, nothing), pods.capacity()
    return Paced(pods, flows, paths, capacity, _solved(paths, capacity, most_bps), most_bps)


def after(well: Paced, broken: FailedParts, *, path_control: bool = True) -> Paced:
    """Return the same flows after convergence with these failures; ``well`` is the healthy state."""
    hit = _hit(well, broken)
    paths = well.paths.copy()
    paths[hit] = paths_of(well.pods, well.flows, broken, hit, path_control=path_control)
    return _again(well, paths, capacity_of(well.pods, broken), hit)


def unnoticed(well: Paced, broken: FailedParts) -> Paced:
    """Return the same flows on the same paths right after a fault: flows over a failed link stop, others gain."""
    return _again(well, well.paths, capacity_of(well.pods, broken), _hit(well, broken))


def _again(well: Paced, paths: Paths, capacity: Floats, hit: Numbers) -> Paced:
    """Return exact rates if only the flows ``hit`` have new paths or failed links.

    In one pod no link carries two rails, so rails without such a flow keep their rates. Under Cores they keep them too,
    unless a core link that the affected rails use is full, before or after: then all rates are computed.
    """
    pods, rates = well.pods, well.rates.copy()
    rows = _of_rails(pods, well.flows, hit)
    core = slice(pods.blocks[4], pods.blocks[6])
    if pods.pods == 1:
        for part in rows:
            rates[part] = _solved(paths[part], capacity, well.most_bps)
        return Paced(pods, well.flows, paths, capacity, rates, well.most_bps)
    ours = np.concatenate([np.arange(part.start, part.stop) for part in rows]) if rows else hit
    before = link_load(well.paths[ours], rates[ours], pods.links)
    room = capacity.copy()
    room[core] = np.maximum(capacity[core] - (well.load - before)[core], 0.0)
    rates[ours] = _solved(paths[ours], room, well.most_bps)
    now = link_load(paths[ours], rates[ours], pods.links)
    used = ((before > 0) | (now > 0))[core]
    full = (well.load > well.capacity * _NEARLY) | (well.load - before + now > capacity * _NEARLY)
    if (used & full[core]).any():
        rates = _solved(paths, capacity, well.most_bps)
    return Paced(pods, well.flows, paths, capacity, rates, well.most_bps)


def _hit(well: Paced, broken: FailedParts) -> Numbers:
    """Return the flows whose healthy path uses a failed link."""
    return np.flatnonzero(_touched(well.paths, broken.dead_links(well.pods)))


def _touched(paths: Paths, dead: Flags) -> Flags:
    padded = np.append(dead, False)
    found = np.zeros(len(paths), np.bool_)
    for hop in range(paths.shape[1]):
        found |= padded[paths[:, hop]]
    return found


def _of_rails(pods: Pods, flows: Flows, hit: Numbers) -> list[slice]:
    """Return all flows of the rails of the affected flows, one slice per rail."""
    rails = np.unique(pods.rail_of(flows.src[hit]))
    edges = np.searchsorted(flows.src, np.arange(pods.rails + 1) * pods.nics_of_a_rail)
    return [slice(int(edges[rail]), int(edges[rail + 1])) for rail in rails]


def _solved(paths: Paths, capacity: Floats, most_bps: float) -> Floats:
    """Return the rates, with only the used links numbered: the others cost time."""
    used = np.zeros(len(capacity) + 1, np.bool_)
    used[paths] = True
    used[-1] = False
    number = np.cumsum(used, dtype=np.int32) - 1
    number[-1] = -1
    return max_min(number[paths], capacity[used[:-1]], np.full(len(paths), most_bps))
