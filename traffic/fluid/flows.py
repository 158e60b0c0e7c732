"""Sending pairs in pods, and the hash choices of each queue pair. PURE.

A flow is one queue pair. Its choices are drawn once, for every port that it may use. So a fault changes the paths of
the flows that it affects and of no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hpn.traffic.fluid.pods import Numbers, Pods

Choice = Literal["hashed", "even"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """One direction from NIC to NIC each; ``src`` ascends, so pairs of a rail are neighbours."""

    src: Numbers
    dst: Numbers


@dataclass(frozen=True, eq=False)
class Flows:
    """Queue pairs, with their NICs and hash choices.

    ``agg`` and ``core`` are by (flow, port), as each ToR hashes independently. ``far_port`` is the ToR of the
    destination's set that an Agg picks, if a plane has both.
    """

    src: Numbers
    dst: Numbers
    queue_pairs: int  # of a pair; flow i is of pair i // queue_pairs
    port: npt.NDArray[np.int8]
    far_port: npt.NDArray[np.int8]
    agg: npt.NDArray[np.int16]
    core: npt.NDArray[np.int16]

    def __len__(self) -> int:
        """Number of queue pairs."""
        return len(self.src)


def ring(pods: Pods, hosts: Numbers | None = None) -> Pairs:
    """Return a ring on each rail: each host's NIC sends to that of the next, the last to the first, as in an AllReduce.

    ``hosts`` in the order of the ring, counted over all pods; default: all.
    """
    order = np.arange(pods.nics_of_a_rail, dtype=np.int64) if hosts is None else np.asarray(hosts, dtype=np.int64)
    return _ordered(pods, [order] * pods.rails)


def permutation(pods: Pods, seed: int) -> Pairs:
    """Return a random permutation on each rail: every NIC sends to one and receives from one, in one cycle."""
    draw = np.random.default_rng(seed)
    return _ordered(pods, [draw.permutation(pods.nics_of_a_rail) for _ in range(pods.rails)])


def _ordered(pods: Pods, orders: list[Numbers]) -> Pairs:
    src = np.concatenate([pods.nics(order, rail) for rail, order in enumerate(orders)])
    dst = np.concatenate([pods.nics(np.roll(order, -1), rail) for rail, order in enumerate(orders)])
    if len(orders[0]) < 2:
        return Pairs(src[:0], dst[:0])
    ascending = np.argsort(src, kind="stable")
    return Pairs(src[ascending], dst[ascending])


def drawn(pods: Pods, pairs: Pairs, queue_pairs: int, seed: int, choice: Choice = "hashed") -> Flows:
    """Return ``queue_pairs`` flows for each pair, with their hash choices.

    hashed: each choice is random, as with default source ports. even: the choices that a sender
    controls by source port go round, as with HPN's hosts: its port and the ToR's uplink. Further choices stay random.
    """
    draw = np.random.default_rng(seed)
    count = len(pairs.src) * queue_pairs
    port = draw.integers(0, pods.tors, count, dtype=np.int8)
    agg = draw.integers(0, pods.aggs, (count, pods.tors), dtype=np.int16)
    if choice == "even":
        turn = np.tile(np.arange(queue_pairs), len(pairs.src))
        port = (turn % pods.tors).astype(np.int8)
        agg = ((np.repeat(agg[::queue_pairs], queue_pairs, axis=0) + turn[:, None] // pods.tors) % pods.aggs).astype(
            np.int16
        )
    return Flows(
        np.repeat(pairs.src, queue_pairs),
        np.repeat(pairs.dst, queue_pairs),
        queue_pairs,
        port,
        draw.integers(0, pods.tors, count, dtype=np.int8),
        agg,
        draw.integers(0, max(1, pods.cores), (count, pods.tors), dtype=np.int16),
    )
