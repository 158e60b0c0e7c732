"""Counts of traffic workers while they run, and the answers to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hpn.failover.analysis.hostload import HostLoad, is_starved
from hpn.failover.locating.counting import SETTLE_NS, Bin, Counting
from hpn.failover.locating.live import LiveLocation
from hpn.failover.locating.rounds import STEP_NS, Round
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.workers.messages import Progress
from hpn.traffic.workers.pool import softnet_drops

_LOOK_BACK_NS = 1_000_000_000
"""Time over which the machine's load is judged: its tick counters are too coarse for less."""

LoadOf = Callable[[int, int], HostLoad | None]
"""Load of the machine between two times (CLOCK_MONOTONIC, ns); None: not known."""


class Follower:
    """Listener to the workers of ``flows``; ``tell`` is called with each answer.

    With ``load`` packets that were sent while the machine was starved, by the rule of runs, do not count.
    """

    def __init__(
        self, live: LiveLocation, flows: Sequence[FlowSpec], tell: Callable[[Round], None], load: LoadOf | None = None
    ) -> None:
        self._live, self._flows, self._tell, self._load = live, flows, tell, load
        self._counting: Counting | None = None
        self._drops = 0

    def begin(self, start_ns: int) -> None:
        """Count from a time on."""
        self._counting = Counting([flow.id for flow in self._flows], start_ns, STEP_NS)
        self._drops = softnet_drops()

    def hear(self, worker: int, news: Progress) -> None:
        """Take a worker's progress, and pass on what it answers."""
        if self._counting is not None:
            self._counting.hear(worker, news)
            bins = self._counting.closed(softnet_drops() - self._drops)
            for found in self._live.take(doubted(bins, self._load)):
                self._tell(found)


def doubted(bins: Iterator[Bin], load: LoadOf | None) -> Iterator[Bin]:
    """Yield bins, each with why it is in doubt: the machine was starved while its packets were on their way."""
    for each in bins:
        found = None if load is None else load(each.end_ns - _LOOK_BACK_NS, each.end_ns + SETTLE_NS)
        why = None if found is None else is_starved(found)
        yield replace(each, doubt=why) if why else each
