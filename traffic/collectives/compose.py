"""Composer of the programs of all ranks of a job: compute, collectives and messages with dependencies. PURE.

Dependencies are operation numbers: each step takes the operations before it and returns the one that ends it, per rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.locations import Inside, Place
from hpn.traffic.collectives.plan import Plan
from hpn.traffic.collectives.program import ARRIVAL, COMPUTE, MESSAGE, Expected, Piece, Program, Span, Stream
from hpn.traffic.collectives.program_draft import Draft, message
from hpn.traffic.collectives.registry import Collective
from hpn.traffic.collectives.split import split

After = Mapping[int, Iterable[int]]
"""Operations that come before, by rank."""


class Composer:
    """Writer of one iteration's operations of all ranks of a job."""

    def __init__(self, places: Sequence[Place], path_mtu: int, inside: Inside) -> None:
        """Create the composer; ``places`` by rank. ``inside``: how GPUs of a host, and of different rails, are
        connected."""
        self._path_mtu = path_mtu
        self._inside = inside
        self._drafts = [Draft(rank, place) for rank, place in enumerate(places)]
        self._next_buffer = 0

    def compute(self, rank: int, ns: int, label: str, after: Iterable[int] = ()) -> int:
        """Add compute time of a rank; return the operation that ends it."""
        draft = self._drafts[rank]
        op = draft.spend(ns, Stream.COMPUTE, after)
        draft.spans.append(Span(label, COMPUTE, (op,)))
        return op

    def meet(self, rank: int, after: Iterable[int]) -> int:
        """Return an operation that is done as soon as all of ``after`` are."""
        return self._drafts[rank].meet(after)

    def collective(
        self,
        chosen: Collective,
        ranks: Sequence[int],
        size_bytes: int,
        label: str,
        *,
        slices: int = 1,
        after: After | None = None,
    ) -> Mapping[int, int]:
        """Add a collective of ``ranks``, in this order; ``size_bytes`` as in nccl-tests. Return its last operation by
        rank.

        InputError for fewer than two ranks, a rank twice, no bytes or a group that the algorithm cannot serve.
        """
        _check(chosen.name, ranks, size_bytes, slices, len(self._drafts))
        group = [self._drafts[rank] for rank in ranks]
        plan = Plan(group, self._inside, size_bytes, self._path_mtu, slices, self._next_buffer, after or {})
        chosen.lay_out(plan)
        self._next_buffer = plan.next_buffer
        ends = {}
        for draft, (ops, expected) in zip(group, plan.close(), strict=True):
            draft.spans.append(Span(label, chosen.kind, ops, size_bytes, len(ranks), expected))
            ends[draft.rank] = ops[-1]
        return ends

    def message(
        self, source: int, target: int, size_bytes: int, label: str, *, slices: int = 1, after: After | None = None
    ) -> Mapping[int, int]:
        """Add a message from one rank to another; return the last operation at both. InputError as above.

        It is timed at the source, from when it may begin until it is acknowledged; the data is checked at the target.
        """
        ends, expected = self._carry(source, target, size_bytes, label, slices, after or {})
        self._span(source, label, MESSAGE, ends[source], size_bytes)
        self._span(target, label, ARRIVAL, ends[target], size_bytes, expected)
        return {rank: ops[-1] for rank, ops in ends.items()}

    def pull(self, source: int, target: int, asking_bytes: int, size_bytes: int, label: str) -> Mapping[int, int]:
        """Add a request of ``target`` to ``source`` and its reply of ``size_bytes``; return the last operations.
        InputError as above.

        It is timed at the target, from the request until all data is there and checked.
        """
        asked, question = self._carry(target, source, asking_bytes, label, 1, {})
        ends, expected = self._carry(source, target, size_bytes, label, 1, {source: asked[source][-1:]})
        self._span(source, label, ARRIVAL, asked[source], asking_bytes, question)
        self._span(target, label, MESSAGE, (*asked[target], *ends[target]), size_bytes, expected)
        return {rank: ops[-1] for rank, ops in ends.items()}

    def pause(self, rank: int, ns: int, after: Iterable[int] = ()) -> int:
        """Let time pass at the rank, alongside everything else; return the operation that ends it."""
        return self._drafts[rank].spend(ns, Stream.PAUSE, after)

    def _carry(
        self, source: int, target: int, size_bytes: int, label: str, slices: int, after: After
    ) -> tuple[Mapping[int, tuple[int, ...]], tuple[Expected, ...]]:
        """Return the operations at both ends of a message, the last one ending it, and the target's expected data."""
        _check(label, (source, target), size_bytes, slices, len(self._drafts))
        ends = {rank: self._drafts[rank] for rank in (source, target)}
        first = {rank: len(draft.ops) for rank, draft in ends.items()}
        before = {rank: tuple(after.get(rank, ())) for rank in ends}
        number, self._next_buffer = self._next_buffer, self._next_buffer + 1
        sizes = split(size_bytes, slices, self._path_mtu)
        pieces = [Piece(number, index, size) for index, size in enumerate(sizes) if size]
        for piece in pieces:
            message(ends[source], ends[target], self._inside, piece, after=before[source], target_after=before[target])
        ops = {
            rank: tuple(range(first[rank], draft.meet(draft.loose(first[rank])) + 1)) for rank, draft in ends.items()
        }
        return ops, tuple(Expected(piece, (source,)) for piece in pieces)

    def _span(
        self,
        rank: int,
        label: str,
        kind: str,
        ops: tuple[int, ...],
        size_bytes: int,
        expected: tuple[Expected, ...] = (),
    ) -> None:
        self._drafts[rank].spans.append(Span(label, kind, ops, size_bytes, 2, expected))

    def programs(self) -> tuple[Program, ...]:
        """Return the programs of all ranks that have operations."""
        tags = max((used for draft in self._drafts for used in draft.tags.values()), default=1)
        return tuple(draft.program(self._path_mtu, tags) for draft in self._drafts if draft.ops)


def _check(what: str, ranks: Sequence[int], size_bytes: int, slices: int, known: int) -> None:
    if len(ranks) < 2 or len(set(ranks)) < len(ranks):
        raise InputError(f"{what} needs at least two different ranks, not {list(ranks)}")
    if not all(0 <= rank < known for rank in ranks):
        raise InputError(f"{what} names ranks {list(ranks)}; there are ranks 0 to {known - 1}")
    if size_bytes < 1:
        raise InputError(f"{what} is to carry {size_bytes} bytes; at least 1")
    if slices < 1:
        raise InputError(f"{what} is to be cut into {slices} slices; at least 1")
