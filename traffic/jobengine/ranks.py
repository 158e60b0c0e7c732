"""Ranks of one worker: they run their programs, iteration after iteration, and route their messages. PURE.

A message to a rank of the same host is handed over here; one to another host leaves by a connection. A message in
several parts is acknowledged when all of them are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from hpn.traffic.collectives.program import Program
from hpn.traffic.collectives.rank import Post, RankMachine, Timed
from hpn.traffic.jobengine.sending_end import Words

Leave = Callable[[int, int, Post, int], int]
"""Function that posts a message: number of the post, rank, message, now; returns the number of work requests."""


RankWanted = Callable[[int, int, int, int, tuple[int, int], int], None]
"""Function called when a rank has a buffer for a message: rank, then as ``traffic.collectives.rank.Wanted``."""


@dataclass(slots=True)
class _Posted:
    """A message that was sent: its rank and operation, and the number of unacknowledged parts."""

    rank: int
    op: int
    parts: int


class Ranks:
    """Runner of programs. ``leave`` posts messages to other hosts; ``timed`` receives every span that has ended."""

    def __init__(
        self,
        programs: Iterable[Program],
        leave: Leave,
        timed: Callable[[int, Sequence[Timed]], None],
        first: int = 0,
        wanted: RankWanted | None = None,
    ) -> None:
        """Create the ranks; ``first``: their first iteration. ``wanted``: called for every receive that they await."""
        self._machines = {
            program.rank: RankMachine(program, first, None if wanted is None else partial(wanted, program.rank))
            for program in programs
        }
        self._leave = leave
        self._timed = timed
        self._posted: dict[int, _Posted] = {}
        self._posts = 0
        self._queue: deque[tuple[int, Post]] = deque()  # posted and not yet handled
        self._touched: set[int] = set()  # ranks with news since they were last looked at
        self._running = False
        self._settling = False

    @property
    def machines(self) -> Sequence[RankMachine]:
        """Rank machines."""
        return tuple(self._machines.values())

    def start(self, now_ns: int) -> None:
        """Begin the first iteration of every rank."""
        self._running = True
        for machine in self._machines.values():
            self._add(machine.program.rank, machine.start(machine.iteration, now_ns))
        self._settle(now_ns)

    def stop(self) -> None:
        """Begin no iteration and post nothing more."""
        self._running = False
        self._queue.clear()

    def abort(self) -> int:
        """Discard all ranks with their state; return the last iteration that any of them had begun."""
        last = max((machine.iteration for machine in self._machines.values()), default=0)
        self.stop()
        self._machines.clear()
        self._touched.clear()
        return last

    def acknowledged(self, post: int, now_ns: int) -> None:
        """Handle a completed work request of that post."""
        posted = self._posted[post]
        posted.parts -= 1
        if posted.parts == 0:
            del self._posted[post]
            self._on(posted.rank, self._machines[posted.rank].on_sent(posted.op, now_ns), now_ns)

    def arrived(self, rank: int, peer: int, tag: int, offset: int, words: Words, now_ns: int) -> None:
        """Handle packets of a message from ``peer`` in the memory of ``rank``. ValueError when none is expected."""
        self._on(rank, self._machines[rank].on_bytes(peer, tag, offset, words, now_ns), now_ns)

    def deadline_ns(self) -> int | None:
        """Return the time at which ``on_timer`` is due."""
        due = (machine.deadline_ns() for machine in self._machines.values())
        return min((at for at in due if at is not None), default=None) if self._running else None

    def on_timer(self, now_ns: int) -> None:
        """Advance time."""
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
        if not self._settling:  # otherwise the outer call does it
            self._settle(now_ns)

    def _add(self, rank: int, posts: Iterable[Post]) -> None:
        self._touched.add(rank)
        self._queue.extend((rank, post) for post in posts)

    def _settle(self, now_ns: int) -> None:
        """Post and begin iterations until nothing is left to post and no idle rank is left."""
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
        """Report spans that ended, and start the next iteration of idle ranks; return True if any started."""
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
