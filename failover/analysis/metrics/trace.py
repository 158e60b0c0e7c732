"""Packet records converted into arrays per flow: send time and fate of each packet.

Changes when the record format or the classes of packets change. Everything is vectorised: five million records take a
few seconds. Only one flow at a time is in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hpn.failover.analysis.metrics.byflow import RECEIVED_FIELDS, SENT_FIELDS, ByFlow, by_flow
from hpn.failover.analysis.model import Settings
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.columns import Table
from hpn.traffic.streams.records import FLAG_BAD_ICRC

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NEVER = np.int64(-1)


@dataclass(frozen=True)
class FlowTrace:
    """One flow, indexed by packet in the order of its sequence numbers.

    ``arrival_ns`` is the receive time of the first unharmed copy, or NEVER. ``undecided`` packets were sent too near to
    the end of the record to tell. ``copies`` has the indices of duplicates. ``burst_ns`` and ``burst_size`` (in
    packets) are per burst, as is ``given_up``: packets due before it that a late sender left out.
    """

    spec: FlowSpec
    sent_ns: Ints
    arrival_ns: Ints
    undecided: Flags
    reordered: Flags
    corrupted: Flags  # no unharmed copy, but one with a wrong ICRC
    copies: Ints
    burst_ns: Ints
    burst_size: Ints
    given_up: Ints
    unknown: int
    by_arrival: bool = False  # goodput counts packets when they arrive

    @property
    def period_ns(self) -> float:
        """Nominal time from packet to packet."""
        return 1e9 / self.spec.rate_pps

    def clock(self, at_ns: Ints) -> Ints:
        """Return times on the flow's own clock, which stops during planned pauses; unchanged for an even stream.

        It begins with the flow's first packet. It never goes back, so the order of moments is preserved, however late a
        packet left. So the bounds of an outage remain bounds of the time in which it hid planned sending.
        """
        plan = self.spec.transfers
        if plan is None or not len(self.burst_ns):
            return at_ns
        begun, within = np.divmod(at_ns - self.burst_ns[0], plan.every_ns)
        sent: Ints = begun * self.spec.sending_ns + np.minimum(within, self.spec.sending_ns)
        return sent

    def clock_at(self, at_ns: int) -> int:
        """Return one moment on the flow's own clock."""
        return at_ns if self.spec.transfers is None else int(self.clock(np.array([at_ns], np.int64))[0])

    @cached_property
    def sent_clock(self) -> Ints:
        """Send times on that clock."""
        return self.clock(self.sent_ns)

    @cached_property
    def burst_clock(self) -> Ints:
        """Times of bursts on that clock."""
        return self.clock(self.burst_ns)

    @cached_property
    def received(self) -> Flags:
        """Flags of the packets of which an unharmed copy arrived."""
        return np.not_equal(self.arrival_ns, NEVER)

    @cached_property
    def missing(self) -> Ints:
        """Indices of packets that never arrived unharmed."""
        return np.flatnonzero(~self.received & ~self.undecided)

    @cached_property
    def received_sent_ns(self) -> Ints:
        """Send times of the received packets."""
        return self.sent_ns[self.received]

    @cached_property
    def delay_ns(self) -> Ints:
        """Receive minus send time of the received packets."""
        return self.arrival_ns[self.received] - self.received_sent_ns

    @cached_property
    def burst_gap_ns(self) -> Ints:
        """Time from each burst to the next, planned pauses left out."""
        return np.diff(self.burst_clock)

    @cached_property
    def resolution_ns(self) -> float:
        """One packet period, times the usual number of packets sent at once: the shortest visible time."""
        usual = float(np.median(self.burst_size)) if len(self.burst_size) else 1.0
        return max(1.0, usual) * self.period_ns

    @property
    def sent_rate_pps(self) -> float:
        """Packets per second really sent, from the first burst to the last, planned pauses left out."""
        span_ns = int(self.burst_clock[-1] - self.burst_clock[0]) if len(self.burst_ns) else 0
        return int(self.burst_size[:-1].sum()) / (span_ns / 1e9) if span_ns else 0.0

    def span(self, start_ns: int, end_ns: int) -> slice:
        """Return the indices of the packets sent in [start, end)."""
        first, last = np.searchsorted(self.sent_ns, (start_ns, max(start_ns, end_ns)), "left")
        return slice(int(first), int(last))

    def received_between(self, start_ns: int, end_ns: int) -> int:
        """Return the number of unharmed packets that were sent in [start, end), or with ``by_arrival`` arrived in it.

        Loss is told to the packet by send times. Where PFC stops senders, packets wait with them instead.
        """
        times_ns = self._arrivals_in_order if self.by_arrival else self.received_sent_ns
        first, last = np.searchsorted(times_ns, (start_ns, max(start_ns, end_ns)), "left")
        return int(last - first)

    @cached_property
    def _arrivals_in_order(self) -> Ints:
        return np.sort(self.arrival_ns[self.arrival_ns != NEVER])

    def given_up_between(self, start_ns: int, end_ns: int) -> int:
        """Return the most packets that a late sender left out in [start, end): those of all gaps that touch it."""
        first, last = np.searchsorted(self.burst_ns, (start_ns, max(start_ns, end_ns)), "left")
        due = math.ceil(max(end_ns - start_ns, 0) / self.period_ns)
        return min(int(self.given_up[int(first) : int(last) + 1].sum()), due)

    def largest_gap_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the longest unplanned time without a burst among the gaps that touch [start, end]."""
        first = max(int(np.searchsorted(self.burst_ns, start_ns, "right")) - 1, 0)
        last = int(np.searchsorted(self.burst_ns, end_ns, "left"))
        gaps = self.burst_gap_ns[first:last]
        return int(gaps.max()) if len(gaps) else 0


@dataclass(frozen=True, eq=False)
class Traces:
    """The traces of flows, in their order, each computed during iteration: a second iteration computes them again.

    ``deadline_ns``: the fate of packets sent later and not received is unknown.
    """

    flows: Sequence[FlowSpec]
    sent: ByFlow
    received: ByFlow
    deadline_ns: int
    by_arrival: bool = False  # see ``FlowTrace``

    def __iter__(self) -> Iterator[FlowTrace]:
        yield from map(self._trace, self.flows)

    @property
    def late(self) -> Iterator[FlowTrace]:
        """Traces of the flows whose sender gave packets up."""
        for flow in self.flows:
            if self.sent.of(flow.id, "given_up").any():
                yield self._trace(flow)

    def _trace(self, flow: FlowSpec) -> FlowTrace:
        return replace(_trace(flow, self.sent, self.received, self.deadline_ns), by_arrival=self.by_arrival)


def build_traces(
    flows: Sequence[FlowSpec],
    sent: Table,
    received: Table,
    settings: Settings,
    record_end_ns: int | None = None,
    *,
    by_arrival: bool = False,
) -> Traces:
    """Return one trace per flow, from tables of records as ``traffic.streams.records`` defines them.

    ``by_arrival``: goodput counts packets when they arrive, for networks that hold senders up in place of dropping.
    ``record_end_ns`` is when the receivers stopped listening; by default the last time in the records.
    """
    bursts, arrivals = by_flow(sent, SENT_FIELDS), by_flow(received, RECEIVED_FIELDS)
    if record_end_ns is None:
        record_end_ns = max(bursts.latest("sent_ns"), arrivals.latest("received_ns"))
    return Traces(flows, bursts, arrivals, record_end_ns - int(settings.drain_ms * 1e6), by_arrival)


def _trace(spec: FlowSpec, bursts: ByFlow, arrivals: ByFlow, deadline_ns: int) -> FlowTrace:
    starts = bursts.of(spec.id, "seq")
    in_order = np.argsort(starts, kind="stable")
    starts, counts = starts[in_order], bursts.of(spec.id, "count")[in_order]
    burst_ns = bursts.of(spec.id, "sent_ns")[in_order]
    sent_ns = np.repeat(burst_ns, counts)
    received_ns = arrivals.of(spec.id, "received_ns")
    as_they_came = np.argsort(received_ns, kind="stable")
    index = _positions(starts, counts, arrivals.of(spec.id, "seq")[as_they_came])
    known = index >= 0
    broken = (arrivals.of(spec.id, "flags")[as_they_came] & FLAG_BAD_ICRC) != 0
    index_good = index[known & ~broken]
    first = _first_place(len(sent_ns), index_good)
    got = first >= 0
    arrival_ns = np.full(len(sent_ns), NEVER)
    arrival_ns[got] = received_ns[as_they_came][known & ~broken][first[got]]
    corrupted = np.zeros(len(sent_ns), np.bool_)
    corrupted[index[known & broken]] = True
    is_copy = np.ones(len(index_good), np.bool_)
    is_copy[first[got]] = False
    came = np.flatnonzero(got | corrupted)
    undecided = ~got & (sent_ns > deadline_ns)
    undecided[: came.max(initial=-1) + 1] = False  # it or a later packet arrived, unharmed or not: its fate is known
    return FlowTrace(
        spec=spec,
        sent_ns=sent_ns,
        arrival_ns=arrival_ns,
        undecided=undecided,
        reordered=_reordered(len(sent_ns), index_good[~is_copy]),
        corrupted=corrupted & ~got,
        copies=np.sort(index_good[is_copy]),
        burst_ns=burst_ns,
        burst_size=counts,
        given_up=bursts.of(spec.id, "given_up")[in_order],
        unknown=int(np.count_nonzero(~known & ~broken)),  # the numbers of a broken packet have no meaning
    )


def _positions(starts: Ints, counts: Ints, seqs: Ints) -> Ints:
    """Return the index of each sequence number among the packets of bursts, -1 where it was never sent."""
    if not len(starts) or not len(seqs):
        return np.full(len(seqs), -1, np.int64)
    before = np.cumsum(counts) - counts
    if np.array_equal(starts - starts[0], before):  # no gaps in the numbering, the usual case
        index = seqs - starts[0]
        return np.where((index >= 0) & (index < before[-1] + counts[-1]), index, -1)
    burst = np.searchsorted(starts, seqs, "right") - 1
    offset = seqs - starts[burst]
    return np.where((burst >= 0) & (offset < counts[burst]), before[burst] + offset, -1)


def _first_place(size: int, index: Ints) -> Ints:
    """Return the position in arrival order at which each packet first appears, -1 if nowhere."""
    place = np.full(size, -1, np.int64)
    place[index[::-1]] = np.arange(len(index) - 1, -1, -1)  # the last assignment, the earliest arrival, stays
    return place


def _reordered(size: int, arrivals: Ints) -> Flags:
    """Return flags of RFC 4737 Type-P-Reordered packets: a larger sequence number had arrived before."""
    flags = np.zeros(size, np.bool_)
    if len(arrivals):
        highest = np.maximum.accumulate(arrivals)
        flags[arrivals[arrivals < highest]] = True
    return flags
