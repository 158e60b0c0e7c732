"""What is left of a Chakra trace once it has been read: for each rank a graph of nodes. PURE."""

from __future__ import annotations

from dataclasses import dataclass

Group = tuple[int, ...]
At = tuple[int, int]
"""A node: its rank, and its place among the rank's nodes."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Time that passes at a GPU or, beside that, at its CPU; one thing at a time at each. 0 ns: nodes meet there."""

    ns: int = 0
    on_cpu: bool = False


@dataclass(frozen=True, slots=True)
class Joint:
    """A collective of ``ranks``, a broadcast's root first; None: all. ``size_bytes``: what a rank puts in."""

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
    """A message of ``peer``; over when it is there."""

    peer: int
    size_bytes: int
    tag: int


@dataclass(frozen=True, slots=True)
class Node:
    """What a rank does when all of ``after`` are over: places of nodes of the same rank, smaller than its own."""

    id: int
    after: tuple[int, ...]
    does: Spent | Joint | Sent | Received


@dataclass(frozen=True, slots=True)
class RankTrace:
    """The nodes of a rank, each behind all that it comes after, and the file that they are from."""

    file: str
    nodes: tuple[Node, ...]
