"""Time series of flows for pictures: per bin, the packets that each flow sent, those that arrived, and their delay.

Imports numpy. Changes when a bin gets more data. Packets count in the bin in which they were sent, so a hole is where
the network lost them. Goodput counts them when they arrived, where PFC holds senders up in place of dropping. No figure
of a verdict comes from here. A job's queue pairs have no packet records. Instead, the
bytes of each message are spread evenly over its time. That begins at its post, or at the previous acknowledgement on
its queue pair, which sends messages in turn, and ends at its own acknowledgement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.failover.analysis.metrics.trace import FlowTrace, Ints, Traces
from hpn.failover.analysis.series import Bins, SeriesFlow, series_flows
from hpn.traffic.flows.flow import FlowSpec

Counts = npt.NDArray[np.uint32]
"""A row for each flow, a column for each bin."""
Sizes = npt.NDArray[np.uint64]
"""The same in bytes."""
Records = npt.NDArray[np.void]
Reals = npt.NDArray[np.float64]

_DELAY_STEP_US = 100
"""Resolution of delays: finer than a picture shows, and coarse enough that host noise compresses well."""


@dataclass(frozen=True, eq=False)
class StreamSeries:
    """Series of constant-rate streams. ``delay_us``: largest of arrived packets, in steps of 100 us; 0 if none.

    ``arrived``: unharmed packets in the bin in which they arrived; None where goodput counts them by send time.
    """

    bins: Bins
    flows: tuple[SeriesFlow, ...]
    sent: Counts  # packets
    received: Counts  # of these, unharmed
    delay_us: Counts
    arrived: Counts | None = None

    @property
    def goodput_packets(self) -> Counts:
        """Packets of each bin, as goodput counts them."""
        return self.received if self.arrived is None else self.arrived


@dataclass(frozen=True, eq=False)
class MessageSeries:
    """Series of a job's queue pairs: payload bytes, the time in which a message was under way, and retries.

    ``retries``: packets that are missing, by a NAK or an expiry of the retry timer after another: the first may be of
    a lost acknowledgement. ``busy_us`` and ``retries`` are None of runs that did not store them.
    """

    bins: Bins
    flows: tuple[SeriesFlow, ...]
    size_bytes: Sizes
    busy_us: Counts | None = None
    retries: Counts | None = None

    @property
    def packets(self) -> Counts:
        """Packets of each bin, in whole ones; those that are missing are among them."""
        payload = np.array([[flow.packet_bytes] for flow in self.flows], np.int64).reshape(-1, 1)
        packets = -(-self.size_bytes.astype(np.int64) // payload)
        return (packets if self.retries is None else np.maximum(packets, self.retries)).astype(np.uint32)


def stream_series(traces: Traces, bins: Bins) -> StreamSeries:
    """Return the packets that every flow sent, and what became of them."""
    shape = len(traces.flows), bins.count
    sent, received, delay_us, arrived = (np.zeros(shape, np.uint32) for _ in range(4))
    for at, trace in enumerate(traces):
        sent[at] = _per_bin(trace.burst_ns, bins, trace.burst_size)
        received[at] = _per_bin(trace.received_sent_ns, bins)
        delay_us[at] = _delays(trace, bins)
        if traces.by_arrival:
            arrived[at] = _per_bin(trace.arrival_ns[trace.received], bins)
    flows = series_flows(traces.flows)
    return StreamSeries(bins, flows, sent, received, delay_us, arrived if traces.by_arrival else None)


def message_series(
    messages: Records, flows: Sequence[FlowSpec], bins: Bins, retries: Records | None = None
) -> MessageSeries:
    """Return the bytes of messages, each spread evenly over its own time, and retries.

    Records are those of ``traffic.jobengine.records``: MESSAGE and RETRY.
    """
    edges_ns = bins.start_ns + np.arange(bins.count + 1) * bins.width_ns
    found = np.zeros((len(flows), bins.count), np.uint64)
    busy_us = np.zeros((len(flows), bins.count), np.uint32)
    for at, flow in enumerate(flows):
        mine = messages[messages["flow"] == flow.id]
        mine = mine[np.argsort(mine["completed_ns"], kind="stable")]
        begin_ns, end_ns = _under_way(mine)
        found[at] = _spread(mine["bytes"].astype(np.float64), begin_ns, end_ns, edges_ns)
        busy_us[at] = _spread((end_ns - begin_ns) / 1000, begin_ns, end_ns, edges_ns)
    counted = None
    if retries is not None:
        sure = retries[retries["expiries"] != 1]
        of = ((sure["at_ns"][sure["flow"] == flow.id], bins) for flow in flows)
        counted = np.array([_per_bin(*each) for each in of], np.uint32).reshape(found.shape)
    return MessageSeries(bins, series_flows(flows), found, busy_us, counted)


def _per_bin(times_ns: Ints, bins: Bins, weights: Ints | None = None) -> Ints:
    """Return how many of these times are in each bin, or the sum of their weights."""
    at = (times_ns - bins.start_ns) // bins.width_ns
    there = (at >= 0) & (at < bins.count)
    of = None if weights is None else weights[there]
    counted: Ints = np.bincount(at[there], of, bins.count)[: bins.count].astype(np.int64)
    return counted


def _delays(trace: FlowTrace, bins: Bins) -> Ints:
    """Return the largest delay of the packets sent in each bin, rounded up."""
    at = (trace.received_sent_ns - bins.start_ns) // bins.width_ns
    there = (at >= 0) & (at < bins.count)
    most = np.zeros(bins.count, np.int64)
    np.maximum.at(most, at[there], trace.delay_ns[there])
    steps: Ints = -(-most // (1000 * _DELAY_STEP_US)) * _DELAY_STEP_US
    return np.clip(steps, 0, np.iinfo(np.uint32).max)


def _under_way(messages: Records) -> tuple[Ints, Ints]:
    """Return when each message of a queue pair began and ended, in order: it sends them in turn."""
    end: Ints = messages["completed_ns"].astype(np.int64)
    before: Ints = np.concatenate([messages["posted_ns"][:1].astype(np.int64), end[:-1]])
    posted: Ints = messages["posted_ns"].astype(np.int64)
    begin = np.maximum(posted, before)
    return np.where(begin < end, begin, end - 1), end


def _spread(amounts: Reals, begin_ns: Ints, end_ns: Ints, edges_ns: Ints) -> Ints:
    """Return the amount in each bin as integers without rounding loss: the differences of the rounded sums.

    Messages of a queue pair follow each other, so the sum grows linearly from each one's begin to its end.
    """
    if not len(amounts):
        return np.zeros(len(edges_ns) - 1, np.int64)
    done = np.cumsum(amounts)
    times = np.maximum.accumulate(np.stack([begin_ns, end_ns], axis=1).ravel())
    sums = np.stack([done - amounts, done], axis=1).ravel()
    whole: Ints = np.rint(np.interp(edges_ns, times, sums)).astype(np.int64)
    return whole[1:] - whole[:-1]
