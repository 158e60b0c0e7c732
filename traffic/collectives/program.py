"""Program of one rank for one iteration: a graph of sends, receives and time spent. PURE, no numpy.

A rank is one GPU with its NIC. Operations are numbered in an order in which they could be done one after the other. The
dependencies of an operation (``after``) have smaller numbers, so no program can deadlock by itself. Of several
operations that become ready at once the smallest number is first. ``traffic.collectives.compose`` makes programs,
``traffic.collectives.rank`` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WIRE_TAGS = 1 << 32
"""Number of tags on the wire: a tag is an RDMA immediate of 32 bits."""


ITERATION = "iteration"
"""Kind of the span of a rank's complete iteration, the first span of every program."""
COMPUTE = "compute"
"""Kind of a span in which a GPU computes."""
MESSAGE = "message"
"""Kind of the span of a message, at its sender (until acknowledged) or, if it was requested, at the requester."""
ARRIVAL = "arrival"
"""Kind of the span at a message's receiver, which may wait for it: its data is checked, its time has no meaning."""


class Stream(StrEnum):
    """Resource that a rank spends time on: one operation at a time on each, first come, first served."""

    COMPUTE = "compute"
    NVLINK = "nvlink"  # transfers from the GPU to others of its host
    PAUSE = "pause"  # time that passes in parallel with everything else


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a buffer: the content of one message. ``index`` counts the parts of ``buffer``.

    The ranks of a collective have buffers of the same number, in the same pieces.
    """

    buffer: int
    index: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Send:
    """A message to ``peer`` with the piece's content when it becomes ready; done when acknowledged.

    ``tag`` is unique among those to ``peer`` in one iteration. ``rail``: the NIC of this host that it leaves by; it
    arrives at the peer's own NIC. None: the peer is in this host, and the message is handed over directly (a ``Spend``
    before it models the time).
    """

    id: int
    after: tuple[int, ...]
    peer: int
    tag: int
    piece: Piece
    rail: int | None


@dataclass(frozen=True, slots=True)
class Receive:
    """A message from ``peer``; done when it is complete and is added to the piece or, else, replaces it."""

    id: int
    after: tuple[int, ...]
    peer: int
    tag: int
    piece: Piece
    reduce: bool


@dataclass(frozen=True, slots=True)
class Spend:
    """Time that passes: modelled, not measured. 0 ns: a join of the operations in ``after``."""

    id: int
    after: tuple[int, ...]
    ns: int
    stream: Stream


Op = Send | Receive | Spend


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected final content of ``piece``: the sum over ``ranks`` of their initial content in the iteration."""

    piece: Piece
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A timed part: from when the first of ``ops`` may begin until the last is done; then ``expected`` is checked.

    ``kind``: of a collective, or one of those above. ``size_bytes`` (as in nccl-tests) and ``ranks`` (number of
    participants) are 0 where they have no meaning.
    """

    label: str
    kind: str
    ops: tuple[int, ...]
    size_bytes: int = 0
    ranks: int = 0
    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """Operations of one rank in every iteration.

    ``tags``: number of tags used by an iteration, the same at all ranks of the job. ``path_mtu``: bytes represented by
    one word of a piece. ValueError when operations are not numbered from 0 or wait for later ones.
    """

    rank: int
    path_mtu: int
    tags: int
    ops: tuple[Op, ...]
    spans: tuple[Span, ...]

    def __post_init__(self) -> None:
        for at, op in enumerate(self.ops):
            if op.id != at or any(not 0 <= other < at for other in op.after):
                raise ValueError(f"rank {self.rank}: operation {at} is out of order: {op}")
        if not self.ops:
            raise ValueError(f"rank {self.rank} has nothing to do; leave it out of the job")


@dataclass(frozen=True, slots=True)
class Timed:
    """Timing of one span. ``wrong``: blocks (path MTUs) with wrong content."""

    span: int  # index in the program
    iteration: int
    begin_ns: int
    end_ns: int
    wrong: int


def wire_tag(iteration: int, tag: int, tags: int) -> int:
    """Return the 32-bit tag on the wire, for ``tags`` of them in an iteration."""
    return (iteration * tags + tag) % WIRE_TAGS
