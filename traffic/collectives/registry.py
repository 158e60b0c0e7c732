"""Registry of collectives and their algorithms. PURE, no numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.traffic.collectives import dimensions, doubling, exchange, hierarchical, ring, tree
from hpn.traffic.collectives.plan import Plan


@dataclass(frozen=True, slots=True)
class Kind:
    """A collective operation, with its accounting in nccl-tests.

    ``bus_factor``, a function of the number of ranks, converts size / time to busbw: the load of the busiest link with
    the best algorithm (nccl-tests, doc/PERFORMANCE.md). ``redop`` and ``root`` as nccl-tests prints them: 'sum' or
    'none', -1 for no root.
    """

    name: str
    bus_factor: Callable[[int], float]
    redop: str
    root: int


KINDS: Registry[Kind] = Registry(
    "kind of collective",
    lambda kind: kind.name,
    (
        Kind("all-reduce", lambda n: 2 * (n - 1) / n, "sum", -1),
        Kind("all-gather", lambda n: (n - 1) / n, "none", -1),
        Kind("reduce-scatter", lambda n: (n - 1) / n, "sum", -1),
        Kind("broadcast", lambda _: 1.0, "none", 0),
        Kind("all-to-all", lambda n: (n - 1) / n, "none", -1),
        Kind("send-recv", lambda _: 1.0, "none", -1),
    ),
    of=Kind,
)
"""Kinds of collectives by name."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One algorithm of one kind of collective. ``lay_out`` writes its moves; InputError when the group does not fit."""

    kind: str
    algorithm: str
    summary: str  # for docs/drills.md
    lay_out: Callable[[Plan], None]

    @property
    def name(self) -> str:
        """'kind/algorithm'."""
        return f"{self.kind}/{self.algorithm}"


COLLECTIVES: Registry[Collective] = Registry(
    "collective",
    lambda collective: collective.name,
    (
        Collective("all-reduce", "ring", "sums, then results, go round a ring", ring.all_reduce),
        Collective("all-reduce", "tree", "up and down two binary trees, half of the data each", tree.all_reduce),
        Collective(
            "all-reduce", "halving-doubling", "pairs exchange halves, quarters, ... and back", doubling.all_reduce
        ),
        Collective(
            "all-reduce",
            "hierarchical",
            "in hosts over NVLink, between hosts a ring a rail",
            hierarchical.all_reduce,
        ),
        Collective("all-reduce", "dimension-rings", "a ring along each dimension, both ways round", dimensions.rings),
        Collective("all-reduce", "dimension-direct", "along each dimension everyone to everyone", dimensions.direct),
        Collective("all-gather", "ring", "chunks go round a ring", ring.all_gather),
        Collective("reduce-scatter", "ring", "sums go round a ring", ring.reduce_scatter),
        Collective("broadcast", "ring", "a chain from the first rank to the last", ring.broadcast),
        Collective("broadcast", "tree", "down a binary tree from the first rank", tree.broadcast),
        Collective("all-to-all", "pairwise", "in steps, in each of which everyone sends to one", exchange.pairwise),
        Collective("all-to-all", "direct", "everyone to everyone at once", exchange.direct),
        Collective("send-recv", "shift", "everyone sends to the next", exchange.shift),
    ),
    lambda collective: () if collective.kind in KINDS else ("kind",),
    of=Collective,
)
"""Collectives by 'kind/algorithm'; the first algorithm of a kind is its default."""


def collective(kind: str, algorithm: str | None = None) -> Collective:
    """Return the collective of that kind and algorithm, or the kind's first. InputError that lists the choices."""
    of_kind = [entry for entry in COLLECTIVES.values() if entry.kind == kind]
    if not of_kind:
        raise InputError(f"no collective {kind!r}; there are {', '.join(KINDS)}")
    for entry in of_kind:
        if algorithm in {None, entry.algorithm}:
            return entry
    names = ", ".join(entry.algorithm for entry in of_kind)
    raise InputError(f"no algorithm {algorithm!r} for {kind}; there are {names}")
