"""Missing packets grouped into outages, each with its length by both methods of RFC 6414.

Changes when the definition of an outage changes. Packet-loss based (PLBM) = missing / rate is the headline; timestamp
based (TBM) is the check. All durations are on the flow's own clock (``FlowTrace.clock``): a planned pause is no outage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpn.failover.analysis.metrics.trace import Flags, Floats, FlowTrace, Ints
from hpn.failover.analysis.model import LossPattern, Outage


@dataclass(frozen=True)
class OutageTable:
    """The outages of one flow in order of time, one array element each (a flow with random loss has thousands).

    ``first`` and ``last`` are packet indices of the first and last missing packet.
    """

    trace: FlowTrace
    first: Ints
    last: Ints
    packets: Ints
    holes: Ints
    longest_hole: Ints
    open: Flags
    certain_ns: Floats  # from the first to the last missing packet of each hole, by send time, summed
    possible_ns: Floats  # between the received packets around each hole, summed; for an open one the certain time

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def first_ns(self) -> Ints:
        """Send time of the first missing packet."""
        return self.trace.sent_ns[self.first]

    @cached_property
    def last_ns(self) -> Ints:
        """Send time of the last missing packet."""
        return self.trace.sent_ns[self.last]

    @cached_property
    def plbm_ns(self) -> Floats:
        """Outage length by PLBM: missing / rate."""
        return self.packets.astype(np.float64) * self.trace.period_ns

    @cached_property
    def tbm_ns(self) -> Floats:
        """Outage length by TBM: send time from the last packet received before to the first after, less regular
        periods."""
        period, clock = self.trace.period_ns, self.trace.sent_clock
        before = np.where(self.first > 0, clock[np.maximum(self.first - 1, 0)], clock[self.first] - period)
        inside = self.last - self.first + 1 - self.packets
        return self.resumed_clock - before - (inside + 1) * period

    @cached_property
    def resumed_clock(self) -> Floats:
        """Send time of the first packet received after; if there is none, its lower bound."""
        clock = self.trace.sent_clock
        after = clock[np.minimum(self.last + 1, len(clock) - 1)]
        return np.where(self.open, clock[self.last] + self.trace.period_ns, after.astype(np.float64))

    def outage(self, at: int) -> Outage:
        """Return one outage as plain data."""
        is_open = bool(self.open[at])
        return Outage(
            first_loss_at_ns=int(self.first_ns[at]),
            last_loss_at_ns=int(self.last_ns[at]),
            resumed_at_ns=None if is_open else int(self.trace.arrival_ns[self.last[at] + 1]),
            packets=int(self.packets[at]),
            holes=int(self.holes[at]),
            plbm_ms=float(self.plbm_ns[at]) / 1e6,
            tbm_ms=float(self.tbm_ns[at]) / 1e6,
            open=is_open,
            certain_ms=float(self.certain_ns[at]) / 1e6,
            possible_ms=float(self.possible_ns[at]) / 1e6,
        )

    def longest(self, count: int) -> tuple[Outage, ...]:
        """Return the ``count`` longest outages, in order of time."""
        chosen = np.sort(np.argsort(self.packets, kind="stable")[::-1][:count])
        return tuple(self.outage(int(at)) for at in chosen)


def find_outages(trace: FlowTrace, merge_packets: int) -> OutageTable:
    """Group missing packets into outages; ``merge_packets`` received in order end one, as for recovery."""
    missing = trace.missing
    broken = np.flatnonzero(~trace.received | trace.reordered)
    run = np.cumsum(np.diff(broken, prepend=-1 - merge_packets) > merge_packets)  # 1, 2, ...: number of each one's run
    run_of_missing = run[np.searchsorted(broken, missing)]
    starts_hole = np.diff(missing, prepend=-2) > 1
    hole_at = np.flatnonzero(starts_hole)
    hole_size = np.diff(hole_at, append=len(missing))
    starts = np.flatnonzero(np.diff(run_of_missing, prepend=0))
    ends = np.append(starts[1:], len(missing)) - 1 if len(starts) else starts
    first, last = missing[starts], missing[ends]
    group_of_hole = np.searchsorted(hole_at, starts)
    resumed = np.append(trace.received, False)  # index one past the end: nothing follows
    certain, possible = _hole_bounds_ns(trace, missing, hole_at, hole_size)
    return OutageTable(
        trace=trace,
        first=first,
        last=last,
        packets=ends - starts + 1,
        holes=np.diff(group_of_hole, append=len(hole_at)),
        longest_hole=np.maximum.reduceat(hole_size, group_of_hole) if len(starts) else hole_size,
        open=~resumed[last + 1],
        certain_ns=np.add.reduceat(certain, group_of_hole) if len(starts) else certain,
        possible_ns=np.add.reduceat(possible, group_of_hole) if len(starts) else possible,
    )


def bounds_since(trace: FlowTrace, missing: Ints, since_ns: int) -> tuple[float, float]:
    """Return the shortest and longest time that the holes of ``missing`` (not empty) lasted after ``since_ns``, ns."""
    since = trace.clock_at(since_ns)
    hole_at = np.flatnonzero(np.diff(missing, prepend=-2) > 1)
    certain, possible = _hole_bounds_ns(trace, missing, hole_at, np.diff(hole_at, append=len(missing)), since)
    return float(certain.sum()), float(possible.sum())


def _hole_bounds_ns(
    trace: FlowTrace, missing: Ints, hole_at: Ints, hole_size: Ints, since: int | None = None
) -> tuple[Floats, Floats]:
    """Return the shortest and longest time that each hole can have lasted (``failover.analysis.budget``).

    The packets of a hole are neighbours. A packet is stamped just before it is sent. A sender that is stopped in
    between stamps too early. The first packet received after shows that by its delay, the first missing one by the time
    to the next burst. Anything shorter than two usual gaps is left to the noise floor.
    """
    if not len(missing):
        return np.empty(0), np.empty(0)
    first = missing[hole_at]
    last = first + hole_size - 1
    clock = trace.sent_clock
    begun, ended = clock[first], clock[last]
    stopped = np.maximum(_next_burst(trace, begun) - begun - 2 * trace.resolution_ns, 0.0)
    certain = np.maximum(ended - begun - stopped, 0.0)
    before = np.where(first > 0, clock[np.maximum(first - 1, 0)], begun - trace.period_ns)
    follower = np.minimum(last + 1, len(clock) - 1)
    after = np.where(last + 1 < len(clock), clock[follower] + stopped_ns(trace, follower), ended)
    return certain, (after - (before if since is None else np.maximum(before, since))).astype(np.float64)


def _next_burst(trace: FlowTrace, sent: Ints) -> Ints:
    """Return the time of the next burst after each of ``sent``, all on the flow's clock; the last has none."""
    bursts = trace.burst_clock
    at = np.searchsorted(bursts, sent, "right")
    return np.where(at < len(bursts), bursts[np.minimum(at, len(bursts) - 1)], sent)


def stopped_ns(trace: FlowTrace, packets: Ints) -> Floats:
    """Return how long the sender stood still at most between stamp and system call of each packet; 0 for a lost one.

    It is the delay beyond the flow's usual one, up to the next burst: a delay in the network is no stop.
    """
    usual = float(np.median(trace.delay_ns)) if len(trace.delay_ns) else 0.0
    sent = trace.sent_clock[packets]
    late_ns = trace.arrival_ns[packets] - trace.sent_ns[packets] - usual
    excess = np.minimum(late_ns, _next_burst(trace, sent) - sent)
    return np.where(trace.received[packets], np.maximum(excess, 0.0), 0.0)


def recovery_index(table: OutageTable, at: int, packets: int) -> int | None:
    """Return the first of ``packets`` received in order after outage ``at`` and before the next; None without such a
    run.

    If the record ends sooner, fewer packets suffice, at least one: otherwise random loss would never seem to end.
    """
    trace = table.trace
    position = int(table.last[at]) + 1
    is_last = at + 1 == len(table)
    limit = int(np.flatnonzero(trace.received).max(initial=-1)) + 1 if is_last else int(table.first[at + 1])
    while position + (1 if is_last else packets) <= limit:
        run = slice(position, min(position + packets, limit))
        bad = np.flatnonzero(~trace.received[run] | trace.reordered[run])
        if not len(bad):
            return position
        position += int(bad[-1]) + 1
    return None


def pattern_of(packets: Ints) -> LossPattern:
    """Return the shape of a loss, from the sizes of its outages."""
    if not len(packets):
        return LossPattern.NONE
    share = float(packets.max()) / float(packets.sum())
    if share >= 0.9:
        return LossPattern.HOLE
    return LossPattern.SCATTERED if len(packets) > 3 and share < 0.5 else LossPattern.HOLES
