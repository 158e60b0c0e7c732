"""Rates of all flows in pods, healthy and after a fault; a fault solves again only what it can reach. PURE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traffic.flowlevel.flows import Flows
from traffic.flowlevel.pods import Numbers, Pods
from traffic.flowlevel.routes import Broken, Flags, Paths, capacity_of, paths_of
from traffic.flowlevel.solve import Floats, link_load, max_min


@dataclass(frozen=True, eq=False)
class Paced:
    """What every flow gets: paths (flows, hops), capacities and rates in bit/s."""

    pods: Pods
    flows: Flows
    paths: Paths
    capacity: Floats
    rates: Floats
    most_bps: float = np.inf  # that a queue pair sends

    @property
    def load(self) -> Floats:
        """On each directed link, bit/s."""
        return link_load(self.paths, self.rates, self.pods.links)

    @property
    def pair_rates(self) -> Floats:
        """Of each pair of NICs, its queue pairs together, bit/s."""
        return np.add.reduceat(self.rates, np.arange(0, len(self.flows), self.flows.queue_pairs))

    @property
    def slowest_bps(self) -> float:
        """Of the slowest pair if each of its queue pairs carries the same: the slowest of them sets its pace."""
        return float(self.rates.min(initial=np.inf)) * self.flows.queue_pairs


def healthy(pods: Pods, flows: Flows, most_bps: float = np.inf) -> Paced:
    """All flows with nothing broken, none of which sends more than ``most_bps``."""
    nothing = Broken.nothing(pods)
    paths, capacity = paths_of(pods, flows, nothing), pods.capacity()
    return Paced(pods, flows, paths, capacity, _solved(paths, capacity, most_bps), most_bps)


def after(well: Paced, broken: Broken, *, path_control: bool = True) -> Paced:
    """The same flows once everybody knows what is broken; ``well`` is the healthy state.

    Exact: flows that no chain of shared links joins to one that the fault moved keep their rates, and in one pod no
    link carries two rails.
    """
    pods, flows = well.pods, well.flows
    dead = broken.dead_links(pods)
    hit = np.flatnonzero(_touched(well.paths, dead))
    if not len(hit):
        return well
    paths = well.paths.copy()
    paths[hit] = paths_of(pods, flows, broken, hit, path_control=path_control)
    capacity = capacity_of(pods, broken)
    rates = well.rates.copy()
    for rows in _joined(pods, flows, hit):
        rates[rows] = _solved(paths[rows], capacity, well.most_bps)
    return Paced(pods, flows, paths, capacity, rates, well.most_bps)


def unnoticed(well: Paced, broken: Broken) -> Paced:
    """The same flows on the same paths in the moment of a fault: what leads over a dead link stands, others gain."""
    hit = np.flatnonzero(_touched(well.paths, broken.dead_links(well.pods)))
    capacity, rates = capacity_of(well.pods, broken), well.rates.copy()
    for rows in _joined(well.pods, well.flows, hit):
        rates[rows] = _solved(well.paths[rows], capacity, well.most_bps)
    return Paced(well.pods, well.flows, well.paths, capacity, rates, well.most_bps)


def _touched(paths: Paths, dead: Flags) -> Flags:
    padded = np.append(dead, False)
    found = np.zeros(len(paths), np.bool_)
    for hop in range(paths.shape[1]):
        found |= padded[paths[:, hop]]
    return found


def _joined(pods: Pods, flows: Flows, hit: Numbers) -> list[slice]:
    """Stretches of flows that may share links with those hit: their rails, or all where Cores join rails."""
    if pods.pods > 1:
        return [slice(0, len(flows))]
    rails = np.unique(pods.rail_of(flows.src[hit]))
    edges = np.searchsorted(flows.src, np.arange(pods.rails + 1) * pods.nics_of_a_rail)
    return [slice(int(edges[rail]), int(edges[rail + 1])) for rail in rails]


def _solved(paths: Paths, capacity: Floats, most_bps: float) -> Floats:
    """Rates, with the links that occur numbered anew: the others cost time."""
    used = np.zeros(len(capacity) + 1, np.bool_)
    used[paths] = True
    used[-1] = False
    number = np.cumsum(used, dtype=np.int32) - 1
    number[-1] = -1
    return max_min(number[paths], capacity[used[:-1]], np.full(len(paths), most_bps))
