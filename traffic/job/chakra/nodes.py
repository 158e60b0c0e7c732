"""A Chakra trace after reading: a graph of nodes for each rank. PURE."""

from __future__ import annotations

from dataclasses import dataclass

Group = tuple[int, ...]
At = tuple[int, int]
"""A node: its rank, and its index among the rank's nodes."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Time that passes at a GPU or, in parallel, at its CPU; one node at a time at each. 0 ns: a join of nodes."""

    ns: int = 0
    on_cpu: bool = False


@dataclass(frozen=True, slots=True)
class Joint:
    """A collective of ``ranks``, a broadcast's root first; None: all. ``size_bytes``: input of one rank."""

    kind: str
    size_bytes: int
    ranks: Group | None


@dataclass(frozen=True, slots=True)
class Sent:
    """A message to ``peer``; over when acknowledged."""

    peer: int
    size_bytes: int
    tag: int


@dataclass(frozen=True, slots=True)
class Received:
    """A message from ``peer``; over when it has arrived."""

    peer: int
    size_bytes: int
    tag: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node that starts when all of ``after`` are over: indexes of nodes of the same rank, smaller than its own."""

    id: int
    after: tuple[int, ...]
    does: Spent | Joint | Sent | Received


@dataclass(frozen=True, slots=True)
class RankTrace:
    """The nodes of a rank, each after all its dependencies, and their file."""

    file: str
    nodes: tuple[Node, ...]
