"""Job as rates: its ranks' messages, in order on each queue pair, over modelled paths. PURE.

Ranks are the lab's own state machines (``traffic.jobengine.ranks``): they post, wait and add as there, then start their
next iteration. Instead of packets, a message leaves at the max-min rate of its queue pair, and that queue pair's next
message follows at once. Workers look for arrivals once a tick, and so does the model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from hpn.scenarios.model.paths_over_time import Outage, PathsOverTime, Piece
from hpn.traffic.collectives.rank import Post, Timed
from hpn.traffic.congestion.parameter_sets import LINE_RATE
from hpn.traffic.flows.framing import (
    BTH_BYTES,
    ETHERNET_BYTES,
    ICRC_BYTES,
    IMMEDIATE_BYTES,
    IP_UDP_BYTES,
    RETH_BYTES,
)
from hpn.traffic.fluid.links import Links
from hpn.traffic.fluid.solve import link_load, max_min
from hpn.traffic.jobengine.connection import Slice, slices
from hpn.traffic.jobengine.message_choice import MESSAGE_CHOICES
from hpn.traffic.jobengine.plan import JobPlan
from hpn.traffic.jobengine.ranks import Ranks
from hpn.traffic.jobengine.records import SPAN
from hpn.traffic.jobengine.sending_end import Words

_OVERHEAD = ETHERNET_BYTES + IP_UDP_BYTES + BTH_BYTES + ICRC_BYTES
_DONE_BITS = 1e-3
_FULL = 1.02
Span = tuple[int, int]


@dataclass(slots=True)
class _Part:
    """Part of a message on one queue pair."""

    post: int
    source: int
    target: int
    tag: int
    offset: int
    words: Words
    size_bytes: int
    bits: float  # on the wire, not yet sent
    last: float  # share of the last packet in ``bits``
    gone: bool = False  # the last packet has started

    @property
    def left(self) -> float:
        """Bits until the last packet starts, or until it has left."""
        return self.bits if self.gone else self.bits - self.last


class JobRun:
    """Run of a job plan on these paths until ``end_ns``."""

    def __init__(
        self,
        links: Links,
        plan: JobPlan,
        ways: PathsOverTime,
        end_ns: int,
        heard: Callable[[float], None] | None = None,
    ) -> None:
        self._heard = heard  # called with the fraction of the run that is done
        self.died: tuple[int, int] | None = None  # index of the queue pair, and time
        self.crowded: dict[int, float] = {}  # by directed link: maximum demand as a multiple of its rate
        self._links, self._plan, self._ways, self._end_ns = links, plan, ways, end_ns
        self._capacity = links.capacity / plan.slower
        self._now = 0.0
        self._queues: list[deque[_Part]] = [deque() for _ in plan.queue_pairs]
        self._outstanding = [0] * len(plan.queue_pairs)  # bytes posted and not completed
        self._of: dict[tuple[int, int, int | None], list[int]] = {}
        for at, pair in enumerate(plan.queue_pairs):
            self._of.setdefault((pair.source, pair.target, pair.rail), []).append(at)
        self._messages: dict[tuple[int, int, int | None], int] = {}
        self._spans: list[tuple[int, int, int, int, int, int]] = []
        self._ranks = Ranks(plan.programs, self._leave, self._timed)
        self._due: list[tuple[int, bool, int, Callable[[int], None]]] = []
        self._calls = 0
        self._rates: NDArray[np.float64] = np.zeros(len(plan.queue_pairs))
        self._stale = True
        self._piece_at = [piece.begin_ns for piece in ways.pieces]
        waits = [_waits(plan, ways.outages_of.get(at, ())) for at in range(len(self._queues))]
        self._silent = [spans for spans, _ in waits]
        self._dies = sorted((at_ns, pair) for pair, (_, at_ns) in enumerate(waits) if at_ns is not None)
        ends = (moment for spans in self._silent for span in spans for moment in span)
        self._turns = sorted({*self._piece_at, *ends})

    @property
    def spans(self) -> NDArray[np.void]:
        """Ended spans in the workers' format (``traffic.jobengine.records.SPAN``)."""
        return np.array(self._spans, dtype=SPAN)

    def run(self) -> None:
        """Run to the end, or until a queue pair with data to send fails."""
        self._ranks.start(0)
        while self._now < self._end_ns and self.died is None:
            if self._stale:
                self._solve()
            self._step()
            if self._heard is not None:
                self._heard(self._now / self._end_ns)

    def _step(self) -> None:
        """Advance to the next moment at which anything changes."""
        busy = np.flatnonzero(self._rates > 0)
        left = np.array([self._queues[at][0].left for at in busy])
        done = self._now + float((left / self._rates[busy]).min()) * 1e9 if len(busy) else np.inf
        deadline = self._ranks.deadline_ns()
        due = min(self._due[0][0] if self._due else np.inf, np.inf if deadline is None else deadline)
        later = bisect_right(self._turns, self._now)
        turn = self._turns[later] if later < len(self._turns) else np.inf
        until = max(self._now, min(done, due, turn, self._end_ns))
        for at, rate in zip(busy.tolist(), self._rates[busy].tolist(), strict=True):
            self._queues[at][0].bits -= rate * (until - self._now) / 1e9
        self._now = until
        self._stale = self._stale or until == turn
        for at in busy.tolist():
            if self._queues[at][0].left <= _DONE_BITS:
                self._sent(at)
        self._happen()

    def _happen(self) -> None:
        now_ns = round(self._now)
        while self._due and self._due[0][0] <= now_ns:
            heappop(self._due)[3](now_ns)
        deadline = self._ranks.deadline_ns()
        if deadline is not None and deadline <= now_ns:
            self._ranks.on_timer(now_ns)
        for at_ns, pair in self._dies:
            if at_ns <= self._now and self._queues[pair] and self.died is None:
                self.died = (pair, at_ns)

    def _sent(self, at: int) -> None:
        """Handle a queue pair's head that has left, or whose last packet starts.

        A packet leaves completely in the tick that it starts in. Its receiver sees it at the next tick, and the sender
        sees the acknowledgement one tick later.
        """
        part, tick_ns = self._queues[at][0], self._plan.tick_ns
        if part.gone:
            self._queues[at].popleft()
            self._stale = True
            return
        part.gone = True
        seen_ns = (int(self._now // tick_ns) + 1) * tick_ns
        self._call(
            seen_ns,
            lambda now: self._ranks.arrived(part.target, part.source, part.tag, part.offset, part.words, now),
            answer=False,
        )
        self._call(seen_ns + tick_ns, lambda now: self._acknowledged(at, part, now), answer=True)

    def _acknowledged(self, at: int, part: _Part, now_ns: int) -> None:
        self._outstanding[at] -= part.size_bytes
        self._ranks.acknowledged(part.post, now_ns)

    def _call(self, at_ns: int, what: Callable[[int], None], *, answer: bool) -> None:
        """Schedule a call; at one tick a worker takes arrived data first, then acknowledgements."""
        self._calls += 1
        heappush(self._due, (at_ns, answer, self._calls, what))

    def _leave(self, number: int, rank: int, post: Post, _now_ns: int) -> int:
        """Assign a message to queue pairs of its connection, as in the lab; return the number of its parts."""
        key = (rank, post.peer, post.rail)
        pairs, mtu = self._of[key], self._plan.transport.path_mtu
        if self._plan.split:
            parts = slices(post.size_bytes, len(pairs), mtu)
        else:
            outstanding = [self._outstanding[at] for at in pairs]
            so_far = self._messages[key] = self._messages.get(key, -1) + 1
            parts = [Slice(MESSAGE_CHOICES[self._plan.choice].choose(outstanding, so_far), 0, post.size_bytes)]
        for part in parts:
            bits, first = _wire_bits(part.size_bytes, mtu), part.offset // mtu
            last = 8.0 * (part.size_bytes - (-(-part.size_bytes // mtu) - 1) * mtu + _OVERHEAD + IMMEDIATE_BYTES)
            words = post.words[first : first + -(-part.size_bytes // mtu)]
            at = pairs[part.queue_pair]
            self._stale = self._stale or not self._queues[at]
            self._outstanding[at] += part.size_bytes
            self._queues[at].append(
                _Part(number, rank, post.peer, post.tag, part.offset, words, part.size_bytes, bits, last)
            )
        return len(parts)

    def _timed(self, rank: int, ended: Sequence[Timed]) -> None:
        self._spans += [(rank, each.iteration, each.span, each.wrong, each.begin_ns, each.end_ns) for each in ended]

    def _solve(self) -> None:
        """Compute the rates of queue pairs that have data to send, on their current paths."""
        self._stale = False
        self._rates = np.zeros(len(self._queues))
        piece = self._ways.pieces[max(0, bisect_right(self._piece_at, self._now) - 1)]
        busy = [at for at, queue in enumerate(self._queues) if queue and piece.arrives[at] and not self._is_silent(at)]
        if busy:
            self._rates[busy] = max_min(piece.links[busy], self._capacity)
            if self._plan.control == LINE_RATE.values:
                self._note_crowds(piece, busy)

    def _is_silent(self, at: int) -> bool:
        return any(begin <= self._now < end for begin, end in self._silent[at])

    def _note_crowds(self, piece: Piece, busy: Sequence[int]) -> None:
        """Record links that are overloaded: without congestion control each port sends at its rate, and packets are
        lost.
        """
        links = piece.links[busy]
        first = links[:, 0]
        sharing = np.bincount(first, minlength=len(self._capacity))[first]
        asked = link_load(links, self._capacity[first] / sharing, len(self._capacity)) / self._capacity
        for link in np.flatnonzero(asked > _FULL).tolist():
            self.crowded[link] = max(self.crowded.get(link, 0.0), float(asked[link]))


def _wire_bits(size_bytes: int, path_mtu: int) -> float:
    packets = -(-size_bytes // path_mtu)
    return 8.0 * (size_bytes + packets * _OVERHEAD + RETH_BYTES + IMMEDIATE_BYTES)


def _waits(plan: JobPlan, outages: Sequence[Outage]) -> tuple[list[Span], int | None]:
    """Return when a queue pair is silent after its outages, and when its retries are exhausted.

    Lost data is resent when the receiver reports the gap, if the sender's window lasts that long. Otherwise it is
    resent when a retry timer expires and the path is back.
    """
    transport, timer = plan.transport, plan.transport.timer
    window_ns = round(transport.window_packets * 1e9 / min(pair.flow.rate_pps for pair in plan.queue_pairs))
    found: list[Span] = []
    for outage in outages:
        end_ns = outage.end_ns
        if end_ns is not None and end_ns - outage.begin_ns <= window_ns:
            continue
        expires_ns, tries = outage.begin_ns, 0
        while end_ns is None or expires_ns < end_ns:
            if tries > timer.retries(transport.retry_count):
                return [*found, (outage.begin_ns, 1 << 62)], expires_ns
            expires_ns += timer.wait_ns(tries)
            tries += 1
        found.append((outage.begin_ns, expires_ns))
    return found, None
