"""Which collectives there are, and the algorithms of each. PURE, no numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from testbed.entries import Registry
from testbed.errors import InputError
from traffic.collectives import ring
from traffic.collectives.plan import Plan


class Kind(StrEnum):
    """What a collective does."""

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    BROADCAST = "broadcast"
    ALL_TO_ALL = "all-to-all"
    SEND_RECV = "send-recv"


@dataclass(frozen=True, slots=True)
class Collective:
    """One algorithm of one kind of collective. ``lay_out`` writes its moves; InputError when the group does not fit."""

    kind: Kind
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
        Collective(Kind.ALL_REDUCE, "ring", "reduce-scatter, then all-gather, round a ring", ring.all_reduce),
        Collective(Kind.ALL_GATHER, "ring", "chunks go round a ring", ring.all_gather),
        Collective(Kind.REDUCE_SCATTER, "ring", "sums go round a ring", ring.reduce_scatter),
        Collective(Kind.BROADCAST, "ring", "a chain from the first rank to the last", ring.broadcast),
    ),
    of=Collective,
)
"""Collectives by 'kind/algorithm'; the first of a kind is what it is unless an algorithm is named."""


def collective(kind: str, algorithm: str | None = None) -> Collective:
    """The collective of that kind and algorithm, or the kind's first. InputError naming what there is otherwise."""
    of_kind = [entry for entry in COLLECTIVES.values() if entry.kind == kind]
    if not of_kind:
        raise InputError(f"no collective {kind!r}; there are {', '.join(Kind)}")
    for entry in of_kind:
        if algorithm in {None, entry.algorithm}:
            return entry
    names = ", ".join(entry.algorithm for entry in of_kind)
    raise InputError(f"no algorithm {algorithm!r} for {kind}; there are {names}")
