"""Draft of a rank's program. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpn.traffic.collectives.locations import CrossRail, Inside, Place
from hpn.traffic.collectives.program import ITERATION, Op, Piece, Program, Receive, Send, Span, Spend, Stream


class Draft:
    """The operations and spans of one rank so far."""

    def __init__(self, rank: int, place: Place) -> None:
        self.rank = rank
        self.place = place
        self.ops: list[Op] = []
        self.spans: list[Span] = []
        self.tags: dict[int, int] = {}  # by peer: number of tags used for messages to it

    def spend(self, ns: int, stream: Stream, after: Iterable[int]) -> int:
        """Add time to spend; return its number."""
        return self._add(Spend(len(self.ops), _sorted(after), ns, stream))

    def meet(self, after: Iterable[int]) -> int:
        """Add a join of operations; return its number."""
        return self.spend(0, Stream.COMPUTE, after)

    def send(self, piece: Piece, peer: int, rail: int | None, after: Iterable[int]) -> tuple[int, int]:
        """Add a message to ``peer``; return its number and its tag."""
        tag = self.tags.get(peer, 0)
        self.tags[peer] = tag + 1
        return self._add(Send(len(self.ops), _sorted(after), peer, tag, piece, rail)), tag

    def receive(self, piece: Piece, peer: int, tag: int, reduce: bool, after: Iterable[int]) -> int:
        """Add a message from ``peer``; return its number."""
        return self._add(Receive(len(self.ops), _sorted(after), peer, tag, piece, reduce))

    def loose(self, first: int) -> Sequence[int]:
        """Return the operations from ``first`` on that no other waits for."""
        awaited = {other for op in self.ops[first:] for other in op.after}
        return [at for at in range(first, len(self.ops)) if at not in awaited]

    def program(self, path_mtu: int, tags: int) -> Program:
        """Return the program so far, with a span over all of it."""
        whole = Span(ITERATION, ITERATION, tuple(range(len(self.ops))))
        return Program(self.rank, path_mtu, tags, tuple(self.ops), (whole, *self.spans))

    def _add(self, op: Op) -> int:
        self.ops.append(op)
        return op.id


def message(
    source: Draft,
    target: Draft,
    inside: Inside,
    piece: Piece,
    *,
    reduce: bool = False,
    after: Iterable[int] = (),
    target_after: Iterable[int] = (),
) -> tuple[int, int]:
    """Add a message between two ranks by the path between them; return the numbers of its send and receive."""
    rail: int | None = source.place.rail
    if source.place.host == target.place.host:
        rail = None
    elif inside.cross_rail is CrossRail.NVLINK:
        rail = target.place.rail
    if rail != source.place.rail:
        after = (source.spend(inside.transfer_ns(piece.size_bytes), Stream.NVLINK, after),)
    send, tag = source.send(piece, target.rank, rail, after)
    return send, target.receive(piece, source.rank, tag, reduce, target_after)


def _sorted(after: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(after)))
