"""One collective of a group of ranks while it is being laid out. PURE.

An algorithm lists its moves of pieces in an order in which they would be right one after the other. What has to wait
for what follows from which pieces they read and write, so that they run as much at once as the data allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.traffic.collectives.draft import Draft, message
from hpn.traffic.collectives.places import Inside
from hpn.traffic.collectives.program import Expected, Piece

At = tuple[int, int]
"""A piece: its buffer, and its index there."""


@dataclass(frozen=True, slots=True)
class Move:
    """The operations of one message: ``send`` at its source, ``receive`` at its target."""

    send: int
    receive: int


class Plan:
    """The moves of a collective between the members of a group, who are counted from 0 in the group's order."""

    def __init__(
        self,
        drafts: Sequence[Draft],
        inside: Inside,
        size_bytes: int,
        path_mtu: int,
        slices: int,
        first_buffer: int,
        after: Mapping[int, Iterable[int]],
    ) -> None:
        """``drafts`` in the group's order; ``after``, by rank, is what has to be done before the collective begins."""
        self.members = len(drafts)
        self.size_bytes, self.path_mtu, self.slices = size_bytes, path_mtu, slices
        self.places = tuple(draft.place for draft in drafts)
        self._drafts = drafts
        self._inside = inside
        self.next_buffer = first_buffer
        self._begin = [draft.meet(after.get(draft.rank, ())) for draft in drafts]
        self._sizes: dict[int, tuple[int, ...]] = {}
        self._written: dict[tuple[int, Piece], int] = {}  # by member and piece: the last operation that writes it
        self._read: dict[tuple[int, Piece], tuple[int, ...]] = {}  # what those wait for that read it since
        self._expected: list[list[Expected]] = [[] for _ in drafts]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the members."""
        return tuple(draft.rank for draft in self._drafts)

    def buffer(self, pieces: tuple[int, ...]) -> int:
        """A buffer that every member gets, in pieces of these sizes; its number."""
        number, self.next_buffer = self.next_buffer, self.next_buffer + 1
        self._sizes[number] = pieces
        return number

    def move(
        self,
        source: int,
        target: int,
        piece: At,
        *,
        reduce: bool = False,
        wait: Iterable[int] = (),
    ) -> Move | None:
        """A piece of ``source`` goes to ``target`` and replaces its own, or is added; None when empty.

        ``wait``: what else the source waits for before it sends.
        """
        moved = self._piece(piece)
        if moved.size_bytes == 0:
            return None
        send, receive = message(
            self._drafts[source],
            self._drafts[target],
            self._inside,
            moved,
            reduce=reduce,
            after=(self._writer(source, moved), *wait),
            target_after=self._read.pop((target, moved), ()) or (self._writer(target, moved),),
        )
        # A send takes its data when it is ready: what waits for the same, and has a higher number, comes after that.
        self._read[source, moved] = self._read.get((source, moved), ()) + self._drafts[source].ops[send].after
        self._written[target, moved] = receive
        return Move(send, receive)

    def expect(self, member: int, piece: At, members: Iterable[int]) -> None:
        """In the end the member's piece holds the sum over ``members`` of what theirs holds in the beginning."""
        held = self._piece(piece)
        if held.size_bytes:
            ranks = tuple(self._drafts[other].rank for other in members)
            self._expected[member].append(Expected(held, ranks))

    def close(self) -> Sequence[tuple[tuple[int, ...], tuple[Expected, ...]]]:
        """End the collective: for each member its operations, the last of which ends it, and what is expected then."""
        closed = []
        for draft, begin, expected in zip(self._drafts, self._begin, self._expected, strict=True):
            end = draft.meet(draft.loose(begin))
            closed.append((tuple(range(begin, end + 1)), tuple(expected)))
        return closed

    def _piece(self, at: At) -> Piece:
        buffer, index = at
        return Piece(buffer, index, self._sizes[buffer][index])

    def _writer(self, member: int, piece: Piece) -> int:
        return self._written.get((member, piece), self._begin[member])
