"""Layout of one collective of a group of ranks. PURE.

An algorithm lists its moves of pieces in an order in which they would be right one after the other. Dependencies follow
from the pieces that they read and write, so that moves run as concurrently as the data allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.traffic.collectives.locations import Inside
from hpn.traffic.collectives.program import Expected, Piece
from hpn.traffic.collectives.program_draft import Draft, message

At = tuple[int, int]
"""A piece: its buffer, and its index there."""


@dataclass(frozen=True, slots=True)
class Move:
    """The operations of one message: ``send`` at its source, ``receive`` at its target."""

    send: int
    receive: int


class Plan:
    """The moves of a collective between the members of a group, numbered from 0 in the group's order."""

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
        """Create the plan; ``drafts`` in the group's order; ``after``, by rank: operations before the collective."""
        self.members = len(drafts)
        self.size_bytes, self.path_mtu, self.slices = size_bytes, path_mtu, slices
        self.places = tuple(draft.place for draft in drafts)
        self._drafts = drafts
        self._inside = inside
        self.next_buffer = first_buffer
        self._begin = [draft.meet(after.get(draft.rank, ())) for draft in drafts]
        self._sizes: dict[int, tuple[int, ...]] = {}
        self._written: dict[tuple[int, Piece], int] = {}  # by member and piece: the last operation that writes it
        self._read: dict[tuple[int, Piece], tuple[int, ...]] = {}  # dependencies of the sends that have read it since
        self._expected: list[list[Expected]] = [[] for _ in drafts]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of the members."""
        return tuple(draft.rank for draft in self._drafts)

    def buffer(self, pieces: tuple[int, ...]) -> int:
        """Add a buffer of every member, in pieces of these sizes; return its number."""
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
        """Move a piece from ``source`` to ``target``, where it replaces the target's own or is added; None when empty.

        ``wait``: further operations that the source waits for before it sends.
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
        # A send takes its data when it is ready: later operations with the same dependencies come after it.
        self._read[source, moved] = self._read.get((source, moved), ()) + self._drafts[source].ops[send].after
        self._written[target, moved] = receive
        return Move(send, receive)

    def expect(self, member: int, piece: At, members: Iterable[int]) -> None:
        """Expect that the member's final piece is the sum over ``members`` of their initial pieces."""
        held = self._piece(piece)
        if held.size_bytes:
            ranks = tuple(self._drafts[other].rank for other in members)
            self._expected[member].append(Expected(held, ranks))

    def close(self) -> Sequence[tuple[tuple[int, ...], tuple[Expected, ...]]]:
        """End the collective: return each member's operations, the last of which ends it, and its expected data."""
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
