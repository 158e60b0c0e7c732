"""Programs of all ranks of a job, made of compute, collectives and messages that wait for one another. PURE.

What waits for what is told by operation numbers: each step takes those that it comes after and gives the one that ends
it, per rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.draft import Draft, message
from hpn.traffic.collectives.places import Inside, Place
from hpn.traffic.collectives.plan import Plan
from hpn.traffic.collectives.program import ARRIVAL, COMPUTE, MESSAGE, Expected, Piece, Program, Span, Stream
from hpn.traffic.collectives.registry import Collective
from hpn.traffic.collectives.split import split

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
        draft.spans.append(Span(label, COMPUTE, (op,)))
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
        ends, expected = self._carry(source, target, size_bytes, label, slices, after or {})
        self._span(source, label, MESSAGE, ends[source], size_bytes)
        self._span(target, label, ARRIVAL, ends[target], size_bytes, expected)
        return {rank: ops[-1] for rank, ops in ends.items()}

    def pull(self, source: int, target: int, asking_bytes: int, size_bytes: int, label: str) -> Mapping[int, int]:
        """``target`` asks ``source`` for ``size_bytes``, and gets them; the ends at both. InputError as above.

        Timed at the target, from asking until all is there and checked.
        """
        asked, question = self._carry(target, source, asking_bytes, label, 1, {})
        ends, expected = self._carry(source, target, size_bytes, label, 1, {source: asked[source][-1:]})
        self._span(source, label, ARRIVAL, asked[source], asking_bytes, question)
        self._span(target, label, MESSAGE, (*asked[target], *ends[target]), size_bytes, expected)
        return {rank: ops[-1] for rank, ops in ends.items()}

    def pause(self, rank: int, ns: int, after: Iterable[int] = ()) -> int:
        """Let so long pass at the rank, beside all else; the operation that ends it."""
        return self._drafts[rank].spend(ns, Stream.PAUSE, after)

    def _carry(
        self, source: int, target: int, size_bytes: int, label: str, slices: int, after: After
    ) -> tuple[Mapping[int, tuple[int, ...]], tuple[Expected, ...]]:
        """The operations at both ends of a message, the last of which ends it, and what its target then has."""
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
