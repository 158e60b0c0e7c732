"""State machine that runs one rank's program, iteration after iteration. PURE: no sockets, time is an argument.

It returns messages to post and its next deadline; it takes acknowledgements and arrivals. Data of a message that is not
awaited yet, also of later iterations, is stored until it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from hpn.traffic.collectives.buffer_contents import Words, added, blocks_of, initial, total
from hpn.traffic.collectives.program import (
    WIRE_TAGS,
    Expected,
    Piece,
    Program,
    Receive,
    Send,
    Spend,
    Stream,
    Timed,
    wire_tag,
)
from hpn.traffic.transport.ranges import Ranges

__all__ = ["Post", "RankMachine", "Timed"]

_NEVER = -1

Wanted = Callable[[int, int, int, tuple[int, int], int], None]
"""Function called when a receive has a buffer: peer, tag as on the wire, bytes, (iteration, operation), now."""


@dataclass(frozen=True, slots=True)
class Post:
    """A message to send. ``words``: one for each path MTU, read-only, never changed later. ``rail`` as in ``Send``.

    Its acknowledgement is reported by ``op``.
    """

    op: int
    peer: int
    tag: int  # as on the wire
    size_bytes: int
    rail: int | None
    words: Words


class RankMachine:
    """One rank: its buffers, the state of its program, and arrived data."""

    def __init__(self, program: Program, first: int = 0, wanted: Wanted | None = None) -> None:
        """Create the rank; ``first``: earliest iteration that it may begin. ``wanted`` is called for every receive."""
        self.program = program
        self._wanted = wanted
        self.iteration = first  # the running one or, when idle, the last one
        self.idle = True
        self._timed: list[Timed] = []
        self._inbox: dict[tuple[int, int, int], _Message] = {}  # by iteration, peer and tag
        self._receives = {(op.peer, op.tag): op for op in program.ops if isinstance(op, Receive)}
        self._waiters: list[list[int]] = [[] for _ in program.ops]
        for op in program.ops:
            for other in op.after:
                self._waiters[other].append(op.id)
        self._spans_of: list[list[int]] = [[] for _ in program.ops]
        for at, span in enumerate(program.spans):
            for op_id in span.ops:
                self._spans_of[op_id].append(at)
        self._awaited: set[int] = set()  # receives that may take their message
        self._done: list[bool] = []
        self._clear()

    def _clear(self) -> None:
        ops, spans = self.program.ops, self.program.spans
        self._left = [len(op.after) for op in ops]  # what each operation still waits for
        self._done = [False] * len(ops)
        self._undone = len(ops)
        self._span_left = [len(span.ops) for span in spans]
        self._span_begin = [_NEVER] * len(spans)
        self._words: dict[tuple[int, int], Words] = {}  # pieces written to in this iteration
        self._timers: list[tuple[int, int]] = []  # heap: end of a Spend, its operation
        self._stream_free: dict[Stream, int] = {}
        self._awaited.clear()

    def start(self, iteration: int, now_ns: int) -> list[Post]:
        """Begin an iteration with fresh buffers. ValueError when one is running or ``iteration`` is over."""
        if not self.idle or iteration < self.iteration or (iteration == self.iteration and self._undone == 0):
            raise ValueError(f"rank {self.program.rank} cannot begin iteration {iteration} after {self.iteration}")
        self._forget(iteration)
        self.iteration, self.idle = iteration, False
        self._clear()
        return self._run([op.id for op in self.program.ops if not op.after], now_ns)

    def on_sent(self, op: int, now_ns: int) -> list[Post]:
        """Handle the acknowledgement of that operation's message."""
        return self._finish(op, now_ns)

    def on_bytes(self, peer: int, tag: int, offset: int, words: Words, now_ns: int) -> list[Post]:
        """Handle packets of a message, from byte ``offset`` on; ``tag`` as on the wire.

        Duplicates are ignored. ValueError when no such message is expected from ``peer``, or the packets do not fit
        into it.
        """
        ahead = (tag - self.iteration * self.program.tags) % WIRE_TAGS
        if ahead >= WIRE_TAGS // 2:
            return []  # of an iteration that is over: a duplicate
        later, own_tag = divmod(ahead, self.program.tags)
        op = self._receives.get((peer, own_tag))
        if op is None:
            raise ValueError(f"rank {self.program.rank} expects no message {own_tag} from rank {peer}")
        if later == 0 and self._done[op.id]:
            return []
        key = (self.iteration + later, peer, own_tag)
        message = self._inbox.get(key)
        if message is None:
            message = self._inbox[key] = _Message(blocks_of(op.piece.size_bytes, self.program.path_mtu))
        at, rest = divmod(offset, self.program.path_mtu)
        if rest or at + len(words) > message.blocks:
            raise ValueError(f"{len(words)} packets at byte {offset} are no part of {op}")
        message.keep(at, words)
        if message.missing or later or op.id not in self._awaited:
            return []
        self._take(op)
        return self._finish(op.id, now_ns)

    def on_timer(self, now_ns: int) -> list[Post]:
        """Advance time: operations that end by ``now_ns`` are done."""
        posts: list[Post] = []
        while self._timers and self._timers[0][0] <= now_ns:
            posts += self._finish(heappop(self._timers)[1], now_ns)
        return posts

    def deadline_ns(self) -> int | None:
        """Return when to call ``on_timer`` next."""
        return self._timers[0][0] if self._timers else None

    @property
    def has_timed(self) -> bool:
        """True if spans have ended since the last ``take_timed``."""
        return bool(self._timed)

    def take_timed(self) -> list[Timed]:
        """Return the spans that ended since the last call, in order."""
        taken, self._timed = self._timed, []
        return taken

    def _finish(self, op_id: int, now_ns: int) -> list[Post]:
        return self._run(self._settle(op_id, now_ns), now_ns)

    def _run(self, ready: list[int], now_ns: int) -> list[Post]:
        """Begin operations that are ready, and those that become ready by it."""
        posts: list[Post] = []
        queue = deque(ready)
        while queue:
            op = self.program.ops[queue.popleft()]
            for at in self._spans_of[op.id]:
                if self._span_begin[at] == _NEVER:
                    self._span_begin[at] = now_ns
            if isinstance(op, Send):
                posts.append(self._post(op))
            elif isinstance(op, Receive):
                self._awaited.add(op.id)
                self._want(op, now_ns)
                message = self._inbox.get((self.iteration, op.peer, op.tag))
                if message is not None and not message.missing:
                    self._take(op)
                    queue += self._settle(op.id, now_ns)
            elif op.ns == 0:
                queue += self._settle(op.id, now_ns)
            else:
                self._spend(op, now_ns)
        return posts

    def _post(self, op: Send) -> Post:
        tag = wire_tag(self.iteration, op.tag, self.program.tags)
        return Post(op.id, op.peer, tag, op.piece.size_bytes, op.rail, self._content(op.piece))

    def _want(self, op: Receive, now_ns: int) -> None:
        if self._wanted is not None:
            tag = wire_tag(self.iteration, op.tag, self.program.tags)
            self._wanted(op.peer, tag, op.piece.size_bytes, (self.iteration, op.id), now_ns)

    def _spend(self, op: Spend, now_ns: int) -> None:
        end = max(now_ns, self._stream_free.get(op.stream, now_ns)) + op.ns
        self._stream_free[op.stream] = end
        heappush(self._timers, (end, op.id))

    def _take(self, op: Receive) -> None:
        """Put a complete message into its piece."""
        words = self._inbox.pop((self.iteration, op.peer, op.tag)).words
        piece = op.piece
        if op.reduce:
            words = added(self._content(piece), words, piece.size_bytes, self.program.path_mtu)
        self._words[piece.buffer, piece.index] = words

    def _content(self, piece: Piece) -> Words:
        words = self._words.get((piece.buffer, piece.index))
        if words is None:
            words = initial(self.program.rank, self.iteration, piece, self.program.path_mtu)
            self._words[piece.buffer, piece.index] = words
        return words

    def _settle(self, op_id: int, now_ns: int) -> list[int]:
        """Mark an operation as done; return the operations that become ready."""
        if self.idle or self._done[op_id] or self._left[op_id]:
            raise ValueError(f"rank {self.program.rank}: operation {op_id} is not under way")
        self._done[op_id] = True
        self._undone -= 1
        for at in self._spans_of[op_id]:
            self._span_left[at] -= 1
            if self._span_left[at] == 0:
                self._end(at, now_ns)
        self.idle = self._undone == 0
        ready = []
        for waiter in self._waiters[op_id]:
            self._left[waiter] -= 1
            if self._left[waiter] == 0:
                ready.append(waiter)
        return ready

    def _end(self, at: int, now_ns: int) -> None:
        wrong = sum(self._wrong(expected) for expected in self.program.spans[at].expected)
        self._timed.append(Timed(at, self.iteration, self._span_begin[at], now_ns, wrong))

    def _wrong(self, expected: Expected) -> int:
        piece = expected.piece
        due = total(expected.ranks, self.iteration, piece, self.program.path_mtu)
        return int(np.count_nonzero(self._content(piece) != due))

    def _forget(self, iteration: int) -> None:
        """Drop messages of iterations that will never run here."""
        for key in [key for key in self._inbox if key[0] < iteration]:
            del self._inbox[key]


class _Message:
    """Packets of one message, each stored once."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.missing = blocks
        self.words: Words = np.zeros(blocks, np.uint64)
        self._there = Ranges()

    def keep(self, at: int, words: Words) -> None:
        """Store ``words`` from packet ``at`` on; packets already stored do not change."""
        for start, stop in self._there.add(at, at + len(words)):
            self.words[start:stop] = words[start - at : stop - at]
            self.missing -= stop - start
