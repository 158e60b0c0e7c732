"""Programs of all ranks of a job, made of compute, collectives and messages that wait for one another. PURE.

What waits for what is told by operation numbers: each step takes those that it comes after and gives the one that ends
it, per rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from testbed.errors import InputError
from traffic.collectives.draft import Draft, message
from traffic.collectives.places import Inside, Place
from traffic.collectives.plan import Plan
from traffic.collectives.program import Expected, Piece, Program, Span, Stream
from traffic.collectives.registry import Collective
from traffic.collectives.split import split

After = Mapping[int, Iterable[int]]
"""By rank: the operations of its program that come before."""


class Composer:
    """Writes what the ranks of a job do in one iteration."""

    def __init__(self, places: Sequence[Place], path_mtu: int, inside: Inside) -> None:
        """``places`` by rank. The ``inside`` of hosts says how GPUs of one host and of different rails meet."""
        self._path_mtu = path_mtu
        self._inside = inside
        self._drafts = [Draft(rank, place) for rank, place in enumerate(places)]
        self._next_buffer = 0

    def compute(self, rank: int, ns: int, label: str, after: Iterable[int] = ()) -> int:
        """The rank computes for so long; the operation that ends it."""
        draft = self._drafts[rank]
        op = draft.spend(ns, Stream.COMPUTE, after)
        draft.spans.append(Span(label, "compute", (op,)))
        return op

    def meet(self, rank: int, after: Iterable[int]) -> int:
        """An operation that is done as soon as all of ``after`` are."""
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
        """A collective of ``ranks``, in this order, on ``size_bytes`` as nccl-tests counts them; by rank, its end.

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
        """One rank sends ``size_bytes`` to another, who has them in the end; the ends at both. InputError as above.

        Timed at the source from when it may begin until all is acknowledged; what arrived is checked at the target.
        """
        _check(label, (source, target), size_bytes, slices, len(self._drafts))
        sender, receiver = self._drafts[source], self._drafts[target]
        sizes = split(size_bytes, slices, self._path_mtu)
        number, self._next_buffer = self._next_buffer, self._next_buffer + 1
        before = {draft.rank: tuple((after or {}).get(draft.rank, ())) for draft in (sender, receiver)}
        first = {draft.rank: len(draft.ops) for draft in (sender, receiver)}
        expected = []
        for index, size in enumerate(sizes):
            if size:
                piece = Piece(number, index, size)
                message(sender, receiver, self._inside, piece, after=before[source], target_after=before[target])
                expected.append(Expected(piece, (source,)))
        ends = {}
        for draft, kind, due in ((sender, "message", ()), (receiver, "arrival", tuple(expected))):
            end = draft.meet(draft.loose(first[draft.rank]))
            draft.spans.append(Span(label, kind, tuple(range(first[draft.rank], end + 1)), size_bytes, 2, due))
            ends[draft.rank] = end
        return ends

    def programs(self) -> tuple[Program, ...]:
        """The programs of all ranks that have something to do."""
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
