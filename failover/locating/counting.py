"""Packets sent and lost by flow and time, from the counts that workers tell while they run. Pure.

Changes when workers tell their counts in another way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.failover.locating.seen import Counts
from hpn.traffic.workers.messages import Progress

SETTLE_NS = 100_000_000
"""Time after which a packet that has not arrived is lost."""
SPREAD_NS = 200_000_000
"""A bin's packets were sent at most so long before it: workers tell their counts ten times a second."""


@dataclass(frozen=True, slots=True, eq=False)
class Bin:
    """Totals of each flow, in the order of their ids, at ``end_ns`` (CLOCK_MONOTONIC).

    ``whole``: False if the machine lost packets meanwhile, so that nobody can tell who else did. ``doubt``: why the
    machine may have held packets up then, or ''.
    """

    end_ns: int
    sent: Counts
    lost: Counts
    whole: bool
    doubt: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Arrived:
    """Packets received of a worker's flows by a time, and the numbers of all up to the highest received."""

    at_ns: int
    below: Counts
    received: Counts
    drops: int


class _Worker:
    """Counts that one worker told; ``senders`` and ``receivers``: places of its flows."""

    def __init__(self, places: Mapping[int, int], first: Progress) -> None:
        self._flows = tuple(first.sent), tuple(first.received)
        self.senders, self.receivers = (np.array([places[f] for f in flows], np.intp) for flows in self._flows)
        self._sent = deque([(0, np.zeros(len(self.senders), np.int64))])
        self._arrived: deque[_Arrived] = deque()
        nothing = np.zeros(len(self.receivers), np.int64)
        self._known = _Arrived(0, nothing, nothing, 0)

    def hear(self, news: Progress) -> None:
        senders, receivers = self._flows
        self._sent.append((news.at_ns, _counts(news.sent, senders)))
        below, received = _counts(news.highest, receivers) + 1, _counts(news.received, receivers)
        self._arrived.append(_Arrived(news.at_ns, below, received, news.drops))

    def sent_by(self, at_ns: int) -> Counts:
        """Return what was sent by a time; what was told earlier is forgotten."""
        while len(self._sent) > 1 and self._sent[1][0] <= at_ns:
            self._sent.popleft()
        return self._sent[0][1]

    def settled(self, at_ns: int) -> _Arrived | None:
        """Return what was told first from a time on."""
        return next((each for each in self._arrived if each.at_ns >= at_ns), None)

    def fate(self, sent: Counts, last: _Arrived) -> tuple[Counts, Counts]:
        """Return how many of the packets ``sent`` have a fate that is known by ``last``, and how many arrived."""
        known = self._known
        for each in self._arrived:
            fits = each.below <= sent
            below, received = (np.where(fits, new, old) for new, old in _both(each, known))
            known = _Arrived(each.at_ns, below, received, each.drops)
            if each is last:
                break
        while self._arrived and self._arrived[0] is not last and (self._arrived[0].below <= sent).all():
            self._arrived.popleft()
        self._known = known
        silent = last.below <= sent  # nothing arrived since: the rest is lost
        return np.where(silent, sent, known.below), np.where(silent, last.received, known.received)


class Counting:
    """Bins of ``width_ns`` from ``start_ns`` on, each once every worker has told what arrived after it."""

    def __init__(self, flows: Sequence[int], start_ns: int, width_ns: int) -> None:
        self._places = {flow: at for at, flow in enumerate(sorted(flows))}
        self._workers: dict[int, _Worker] = {}
        self._width_ns = width_ns
        self._end_ns = start_ns + width_ns
        self._sent, self._lost = (np.zeros(len(self._places), np.int64) for _ in range(2))
        self._drops = 0

    def hear(self, worker: int, news: Progress) -> None:
        """Take a worker's progress, which has ``highest``."""
        if worker not in self._workers:
            self._workers[worker] = _Worker(self._places, news)
        self._workers[worker].hear(news)

    def closed(self, machine_drops: int) -> Iterator[Bin]:
        """Yield the bins that are complete now; ``machine_drops``: packets that the machine has dropped so far."""
        while (found := self._next(machine_drops)) is not None:
            yield found

    def _next(self, machine_drops: int) -> Bin | None:
        if not self._complete:
            return None
        settled: list[tuple[_Worker, _Arrived]] = []
        for worker in self._workers.values():
            last = worker.settled(self._end_ns + SETTLE_NS)
            if last is None:
                return None
            settled.append((worker, last))
        sent, arrived = (np.zeros(len(self._places), np.int64) for _ in range(2))
        for worker, _ in settled:
            sent[worker.senders] = worker.sent_by(self._end_ns)
        for worker, last in settled:
            at = worker.receivers
            sent[at], arrived[at] = worker.fate(sent[at], last)
        drops = machine_drops + sum(last.drops for _, last in settled)
        sent = np.maximum(sent, self._sent)
        lost = np.clip(sent - arrived, self._lost, self._lost + sent - self._sent)
        found = Bin(self._end_ns, sent, lost, drops == self._drops)
        self._sent, self._lost, self._drops = sent, lost, drops
        self._end_ns += self._width_ns
        return found

    @property
    def _complete(self) -> bool:
        """True once the sender and the receiver of each flow have told something."""
        ends = ([each.senders for each in self._workers.values()], [each.receivers for each in self._workers.values()])
        return all(sum(map(len, end)) == len(self._places) for end in ends)


def _both(new: _Arrived, old: _Arrived) -> Iterator[tuple[Counts, Counts]]:
    yield new.below, old.below
    yield new.received, old.received


def _counts(told: Mapping[int, int], flows: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.fromiter((told[flow] for flow in flows), np.int64, len(flows))
