"""What one rank of a job does in an iteration: a graph of sends, receives and time spent. PURE, no numpy.

A rank is one GPU with its NIC. Operations are numbered in an order in which they could be done one after the other:
what an operation waits for (``after``) has smaller numbers, so no program can wait in a circle of its own. Of several
that become ready at once the smallest number is first.
Made by ``traffic.collectives.compose``, carried out by ``traffic.collectives.rank``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WIRE_TAGS = 1 << 32
"""A tag on the wire is an RDMA immediate: 32 bits."""


ITERATION = "iteration"
"""Kind of the span of all that a rank does in an iteration, the first of every program."""
COMPUTE = "compute"
"""Kind of a span in which a GPU computes."""
MESSAGE = "message"
"""Kind of the span of a message, at its sender (until acknowledged) or, if it was asked for, at who asked."""
ARRIVAL = "arrival"
"""Kind of the span at a message's receiver, which may wait for it: its data is checked, its time says nothing."""


class Stream(StrEnum):
    """What a rank spends time on; one thing at a time on each, first come, first served."""

    COMPUTE = "compute"
    NVLINK = "nvlink"  # what leaves the GPU for others of its host
    PAUSE = "pause"  # time that must have passed, whatever else goes on


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a buffer: what one message carries. ``index`` counts the parts of ``buffer``.

    The ranks of a collective have buffers of the same number, in the same pieces.
    """

    buffer: int
    index: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Send:
    """A message to ``peer``, with what the piece holds as soon as it is ready; done when acknowledged.

    ``tag`` is unique among those to ``peer`` in one iteration.
    ``rail``: the NIC of this host that it leaves by; it arrives at the peer's own. None: the peer is in this host, and
    the message is handed over as it is (the time that takes is a ``Spend`` before).
    """

    id: int
    after: tuple[int, ...]
    peer: int
    tag: int
    piece: Piece
    rail: int | None


@dataclass(frozen=True, slots=True)
class Receive:
    """A message from ``peer``; done when all of it is there and is added to the piece or, else, replaces it."""

    id: int
    after: tuple[int, ...]
    peer: int
    tag: int
    piece: Piece
    reduce: bool


@dataclass(frozen=True, slots=True)
class Spend:
    """Time that passes: modelled, not measured. 0 ns: just a place where what is ``after`` meets."""

    id: int
    after: tuple[int, ...]
    ns: int
    stream: Stream


Op = Send | Receive | Spend


@dataclass(frozen=True, slots=True)
class Expected:
    """What ``piece`` holds at the end: the sum over ``ranks`` of what theirs held when the iteration began."""

    piece: Piece
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """What is timed: from when the first of ``ops`` may begin until the last is done; then ``expected`` is checked.

    ``kind``: of a collective, or one of those below. ``size_bytes`` as nccl-tests counts it and ``ranks``, how many
    take part, are 0 where they have no meaning.
    """

    label: str
    kind: str
    ops: tuple[int, ...]
    size_bytes: int = 0
    ranks: int = 0
    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """What one rank does in every iteration.

    ``tags``: how many tags an iteration uses up, the same at all ranks of the job. ``path_mtu``: the bytes that one
    word of a piece stands for. ValueError when operations are not numbered from 0 or wait for later ones.
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
    """What a span of a program took. ``wrong``: blocks (path MTUs) that do not hold what they must."""

    span: int  # index in the program
    iteration: int
    begin_ns: int
    end_ns: int
    wrong: int


def wire_tag(iteration: int, tag: int, tags: int) -> int:
    """The tag as the wire carries it, in 32 bits, for ``tags`` of them in an iteration."""
    return (iteration * tags + tag) % WIRE_TAGS
