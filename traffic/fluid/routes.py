"""Paths of queue pairs through pods, and the reactions of network and hosts to failures. PURE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hpn.traffic.fluid.flows import Flows
from hpn.traffic.fluid.pods import Numbers, Pods
from hpn.traffic.fluid.solve import Floats

Paths = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_TRIES = 64
_NEVER = 2**32
"""Rehash attempts of a flow whose uplink has failed; with half of 60 uplinks down, one flow in 2^64 finds none."""


@dataclass(frozen=True, eq=False)
class FailedParts:
    """Failed parts, each by number: NIC-ToR links (both directions), ToRs, ToR-Agg links, Aggs."""

    access: Flags
    tors: Flags
    fabric: Flags
    aggs: Flags

    @classmethod
    def nothing(cls, pods: Pods) -> FailedParts:
        """Return the state without failures."""
        tors = pods.sets * pods.tors
        sizes = (pods.gpus * pods.tors, tors, tors * pods.aggs, pods.pods * pods.planes * pods.aggs)
        access, of_tors, fabric, aggs = (np.zeros(size, np.bool_) for size in sizes)
        return cls(access, of_tors, fabric, aggs)

    def with_access(self, nic: int, port: int, pods: Pods) -> FailedParts:
        """Add the failure of the link of this port of a NIC."""
        return replace(self, access=_set(self.access, nic * pods.tors + port))

    def with_tor(self, tor: int) -> FailedParts:
        """Add the failure of this ToR, number ``set * tors + k``."""
        return replace(self, tors=_set(self.tors, tor))

    def with_fabric(self, tor: int, agg: int, pods: Pods) -> FailedParts:
        """Add the failure of the link of this ToR to this Agg."""
        return replace(self, fabric=_set(self.fabric, tor * pods.aggs + agg))

    def with_agg(self, pod: int, plane: int, agg: int, pods: Pods) -> FailedParts:
        """Add the failure of this Agg."""
        return replace(self, aggs=_set(self.aggs, (pod * pods.planes + plane) * pods.aggs + agg))

    def dead_links(self, pods: Pods) -> Flags:
        """Return flags of the directed links that carry nothing: failed links, and those of failed switches."""
        dead = np.zeros(pods.links, np.bool_)
        starts = pods.blocks
        tors = np.repeat(self.tors.reshape(pods.sets, 1, pods.tors), pods.hosts, axis=1).ravel()
        access = self.access | tors
        tor = np.arange(len(self.tors))
        pod, plane = pods.pod_of(tor // pods.tors), pods.plane_of_port(tor % pods.tors)
        aggs = self.aggs.reshape(pods.pods, pods.planes, pods.aggs)
        fabric = self.fabric | np.repeat(self.tors, pods.aggs) | aggs[pod, plane].ravel()
        core = np.repeat(self.aggs, pods.cores)
        for block, flags in ((0, access), (1, access), (2, fabric), (3, fabric), (4, core), (5, core)):
            dead[starts[block] : starts[block + 1]] = flags
        if pods.stacked:
            dead[starts[6] :] = np.repeat(self.tors.reshape(-1, 2).any(axis=1), 2)
        return dead


def paths_of(
    pods: Pods, flows: Flows, broken: FailedParts, which: Numbers | None = None, *, path_control: bool = True
) -> Paths:
    """Return the directed links of the flows ``which`` (default: all), -1 for none, after convergence.

    A sender leaves its failed port. If planes are disjoint it must also leave a plane in which the destination is
    unreachable; without ``path_control`` it does not. A path that cannot be repaired leads over the failed link.
    """
    rows = np.arange(len(flows)) if which is None else which
    dead = broken.dead_links(pods)
    src, dst = flows.src[rows], flows.dst[rows]
    port, far, out = _ports(pods, flows, rows, dead, broken, path_control)
    inside = (pods.set_of(src) == pods.set_of(dst)) & (port == far)
    found = np.full((len(rows), pods.hops), -1, np.int32)
    found[:, 0] = pods.access(src, port)
    found[:, -1] = pods.access(dst, out, down=True)
    if pods.stacked:
        other = out != far
        found[other, -2] = pods.peer(pods.set_of(dst) * 2 + far)[other]
    above = np.flatnonzero(~inside)
    found[above, 1:-1] = _above(pods, flows, rows, above, port, far, dead, found[above, 1:-1])
    return found


def capacity_of(pods: Pods, broken: FailedParts) -> Floats:
    """Return the capacity of each directed link, bit/s; 0 if it has failed."""
    capacity = pods.capacity()
    capacity[broken.dead_links(pods)] = 0.0
    return capacity


def _ports(
    pods: Pods, flows: Flows, rows: Numbers, dead: Flags, broken: FailedParts, path_control: bool
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the sender's port, the first ToR of the far set, and the port by which the NIC is reached."""
    src, dst = flows.src[rows], flows.dst[rows]
    port = flows.port[rows].astype(np.int64)
    if pods.tors == 1:
        return port, port, port

    def lives(nic: Numbers, at: Numbers) -> Flags:
        return ~dead[pods.access(nic, at)]

    def first(at: Numbers, works: Callable[[Numbers], Flags]) -> Numbers:
        """Return the port itself if it works, else a random one of those that do; itself if none does."""
        others = [(at + step) % pods.tors for step in range(1, pods.tors)]
        working = [works(other) for other in others]
        many = np.sum(working, axis=0)
        left = np.where(works(at), _NEVER, _hash(rows, _TRIES) % np.maximum(many, 1))  # to pass over before that one
        found = at
        for other, good in zip(others, working, strict=True):
            found = np.where(good & (left == 0), other, found)
            left = left - good
        return found

    if pods.planes > 1:

        def leads(at: Numbers) -> Flags:
            return lives(src, at) & (lives(dst, at) | (not path_control))

        port = first(port, leads)
        return port, port, port
    port = first(port, lambda at: lives(src, at))
    same = pods.set_of(src) == pods.set_of(dst)
    far = np.where(same, port, flows.far_port[rows])
    if pods.stacked:
        tor = pods.set_of(dst) * 2
        far = np.where(broken.tors[tor + far] & ~broken.tors[tor + 1 - far], 1 - far, far)
        return port, far, np.where(~lives(dst, far) & lives(dst, 1 - far), 1 - far, far)
    far = first(far, lambda at: lives(dst, at))
    return port, far, far


def _above(
    pods: Pods,
    flows: Flows,
    rows: Numbers,
    above: Numbers,
    port: Numbers,
    far: Numbers,
    dead: Flags,
    found: Paths,
) -> Paths:
    """Return the links between two ToRs of these flows, rehashed where one of them has failed."""
    row, at = rows[above], port[above]
    src_set, dst_set = pods.set_of(flows.src[row]), pods.set_of(flows.dst[row])
    first, last = src_set * pods.tors + at, dst_set * pods.tors + far[above]
    plane = pods.plane_of_port(at)
    from_pod, to_pod = pods.pod_of(src_set), pods.pod_of(dst_set)
    crosses = from_pod != to_pod
    agg, core = flows.agg[row, at].astype(np.int64), flows.core[row, at].astype(np.int64)
    todo = np.arange(len(row))
    for again in range(_TRIES):
        if again:
            fresh = _hash(row[todo], again)
            agg[todo], core[todo] = fresh % pods.aggs, (fresh >> 20) % max(1, pods.cores)
        down = np.where(crosses[todo], (agg[todo] + core[todo]) % pods.aggs, agg[todo])
        found[todo, 0] = pods.fabric(first[todo], agg[todo])
        found[todo, -1 - pods.stacked] = pods.fabric(last[todo], down, down=True)
        if pods.pods > 1:
            on = todo[crosses[todo]]
            found[on, 1] = pods.core(from_pod[on], plane[on], agg[on], core[on])
            found[on, 2] = pods.core(to_pod[on], plane[on], down[crosses[todo]], core[on], down=True)
        tried = found[todo, : 2 * (1 + (pods.pods > 1))]
        todo = todo[(dead[tried] & (tried >= 0)).any(axis=1)]
        if not len(todo):
            break
    return found


def _hash(flow: Numbers, again: int) -> Numbers:
    """Return a random number for a flow and an attempt: splitmix64."""
    mixed = flow.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(again * 0xBF58476D1CE4E5B9 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(2)).astype(np.int64)


def _set(flags: Flags, at: int) -> Flags:
    found = flags.copy()
    found[at] = True
    return found
