"""The ranks of one worker: their programs run, iteration after iteration; what they post goes where it belongs. PURE.

A message to a rank of the same host is handed over here; one to another host leaves by a connection. A message of
several parts is acknowledged when all of them are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from hpn.traffic.collectives.program import Program
from hpn.traffic.collectives.rank import Post, RankMachine, Timed
from hpn.traffic.jobengine.sender import Words

Leave = Callable[[int, int, Post, int], int]
"""Post a message of a rank: number of the post, rank, what, now; how many work requests it became."""


RankWanted = Callable[[int, int, int, int, tuple[int, int], int], None]
"""A rank has a place for a message: rank, and as ``traffic.collectives.rank.Wanted``."""


@dataclass(slots=True)
class _Posted:
    """A message that has left: whose it is, and how many parts of it are not acknowledged."""

    rank: int
    op: int
    parts: int


class Ranks:
    """Runs programs. ``leave`` posts what goes to another host; ``timed`` is told of every span that has ended."""

    def __init__(
        self,
        programs: Iterable[Program],
        leave: Leave,
        timed: Callable[[int, Sequence[Timed]], None],
        first: int = 0,
        wanted: RankWanted | None = None,
    ) -> None:
        """``first``: the iteration that all ranks begin with. ``wanted``: told of what ranks wait for."""
        self._machines = {
            program.rank: RankMachine(program, first, None if wanted is None else partial(wanted, program.rank))
            for program in programs
        }
        self._leave = leave
        self._timed = timed
        self._posted: dict[int, _Posted] = {}
        self._posts = 0
        self._queue: deque[tuple[int, Post]] = deque()  # posted and not yet looked at
        self._touched: set[int] = set()  # ranks that something has happened to since they were looked at
        self._running = False
        self._settling = False

    @property
    def machines(self) -> Sequence[RankMachine]:
        """All of them."""
        return tuple(self._machines.values())

    def start(self, now_ns: int) -> None:
        """Begin the first iteration of every rank."""
        self._running = True
        for machine in self._machines.values():
            self._add(machine.program.rank, machine.start(machine.iteration, now_ns))
        self._settle(now_ns)

    def stop(self) -> None:
        """Begin nothing and post nothing more."""
        self._running = False
        self._queue.clear()

    def abort(self) -> int:
        """They are gone, with all that they had; the last iteration that one of them had begun."""
        last = max((machine.iteration for machine in self._machines.values()), default=0)
        self.stop()
        self._machines.clear()
        self._touched.clear()
        return last

    def acknowledged(self, post: int, now_ns: int) -> None:
        """A work request of that post is complete."""
        posted = self._posted[post]
        posted.parts -= 1
        if posted.parts == 0:
            del self._posted[post]
            self._on(posted.rank, self._machines[posted.rank].on_sent(posted.op, now_ns), now_ns)

    def arrived(self, rank: int, peer: int, tag: int, offset: int, words: Words, now_ns: int) -> None:
        """Packets of a message from ``peer`` are in the memory of ``rank``. ValueError when it expects none such."""
        self._on(rank, self._machines[rank].on_bytes(peer, tag, offset, words, now_ns), now_ns)

    def deadline_ns(self) -> int | None:
        """When ``on_timer`` is due."""
        due = (machine.deadline_ns() for machine in self._machines.values())
        return min((at for at in due if at is not None), default=None) if self._running else None

    def on_timer(self, now_ns: int) -> None:
        """Let time pass."""
        for rank, machine in self._machines.items():
            deadline = machine.deadline_ns()
            if deadline is not None and deadline <= now_ns:
                self._add(rank, machine.on_timer(now_ns))
        self._settle(now_ns)

    def _on(self, rank: int, posts: Sequence[Post], now_ns: int) -> None:
        machine = self._machines[rank]
        if not (posts or machine.idle or machine.has_timed):
            return  # one packet of many
        self._add(rank, posts)
        if not self._settling:  # whoever is further up does it
            self._settle(now_ns)

    def _add(self, rank: int, posts: Iterable[Post]) -> None:
        self._touched.add(rank)
        self._queue.extend((rank, post) for post in posts)

    def _settle(self, now_ns: int) -> None:
        """Until nothing is left to be posted here and no rank has ended an iteration without beginning the next."""
        if not (self._queue or self._touched):
            return
        self._settling = True
        while True:
            while self._queue and self._running:
                self._post(*self._queue.popleft(), now_ns)
            if not self._look(now_ns):
                break
        self._queue.clear()
        self._settling = False

    def _post(self, rank: int, post: Post, now_ns: int) -> None:
        if post.rail is None:
            target = self._machines[post.peer]
            self._add(post.peer, target.on_bytes(rank, post.tag, 0, post.words, now_ns))
            self._add(rank, self._machines[rank].on_sent(post.op, now_ns))
            return
        number = self._posts
        self._posts += 1
        self._posted[number] = _Posted(rank, post.op, 0)
        self._posted[number].parts = self._leave(number, rank, post, now_ns)

    def _look(self, now_ns: int) -> bool:
        """Tell of spans that ended; ranks that are idle go on to their next iteration: whether any did."""
        idle = []
        for rank in sorted(self._touched):
            machine = self._machines[rank]
            ended = machine.take_timed()
            if ended:
                self._timed(rank, ended)
            if machine.idle:
                idle.append(machine)
        self._touched.clear()
        for machine in idle if self._running else ():
            self._add(machine.program.rank, machine.start(machine.iteration + 1, now_ns))
        return bool(self._touched)
