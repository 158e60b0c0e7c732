"""Loads, queues and marks of ports: figures computed from the kernel's counters. Pure.

Changes when a figure of a port is added. Load is exact, the difference of counters between the first and the last
reading. Queues are sampled: a peak between two readings is not seen. As a queue drains by at most 1 ms in 1 ms, no peak
exceeded the next reading by more than the time up to it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from hpn.failover.analysis.port_sampling import Ports, Reading, Sampled, Watched

_COURSE_NS = 100_000_000
_QUANTILE = 0.99
_Z = 1.96  # standard deviations of a 95 % interval


@dataclass(frozen=True, slots=True)
class Moment:
    """100 ms of a port in which it marked or dropped packets."""

    begin_ns: int
    marked: int
    drops: int
    queue_max_bytes: int  # of the readings in it


@dataclass(frozen=True, slots=True)
class PortResult:
    """One port over the whole record. A queue in ms is its bytes at the rate that the port had."""

    port: str
    link: str
    tier: str
    nic: str | None
    rate_bps: int  # at the end
    readings: int
    load: float  # what was sent, as a share of ``rate_bps``
    sent_bytes: int
    sent_packets: int
    drops: int  # packets, at this queue
    queue_mean_bytes: float
    queue_p99_bytes: int
    queue_max_bytes: int
    queue_mean_ms: float
    queue_p99_ms: float  # nearest rank
    queue_max_ms: float
    p99_uncertainty_ms: float  # to the farther end of the 95 % interval of the rank, readings taken as independent
    marked: int | None = None  # packets, ECN; None: nothing here marks, or nothing that counts
    since_ns: int = 0  # of the first reading
    course: tuple[Moment, ...] = ()  # when it marked or dropped, in order


@dataclass(frozen=True, slots=True)
class NicBalance:
    """Bytes that the ports towards one NIC sent before the first fault (without one: ever), the busiest first."""

    nic: str
    bps: tuple[float, ...]
    packets: tuple[int, ...]

    @property
    def ratio(self) -> float | None:
        """The busiest port's load over the least busy one's; None when that one sent nothing."""
        return self.bps[0] / self.bps[-1] if self.bps[-1] else None

    @property
    def uncertainty(self) -> float:
        """Change of the ratio if each port had one packet more or less."""
        ratio = self.ratio
        return 0.0 if ratio is None else ratio * sum(1 / count for count in (self.packets[0], self.packets[-1]))


@dataclass(frozen=True, slots=True)
class PortMetrics:
    """Everything measured at ports; ``balance`` has the NICs of several ports that flows are sent to."""

    period_ms: float
    ports_sampled: Ports
    longest_pause_ms: float  # between two readings: no peak of a queue was higher than seen by more than this
    cpu_ms_per_sample: float  # of the supervisor, for one reading of all ports; next to nothing in virtual time
    ports: tuple[PortResult, ...]
    balance: tuple[NicBalance, ...]


def port_metrics(sampled: Sampled, healthy_until_ns: int, end_ns: int, receivers: Collection[str]) -> PortMetrics:
    """Return the figures of one run; ``receivers`` are the NICs that flows are sent to."""
    results, towards, pause_ns = [], dict[str, list[tuple[float, int]]](), 0
    for series in sampled.series:
        readings = list(series.until(end_ns))
        if len(readings) < 2:
            continue
        results.append(_result(series.port, readings))
        pause_ns = max(pause_ns, *(b.at_ns - a.at_ns for a, b in pairwise(readings)))
        if series.port.nic in receivers and series.port.nic is not None:
            healthy = [reading for reading in readings if reading.at_ns <= healthy_until_ns]
            towards.setdefault(series.port.nic, []).append(_sent(healthy))
    samples = max(map(len, sampled.series), default=0)
    return PortMetrics(
        period_ms=sampled.sampling.period_ns / 1e6,
        ports_sampled=sampled.sampling.ports,
        longest_pause_ms=pause_ns / 1e6,
        cpu_ms_per_sample=sampled.cpu_ns / samples / 1e6 if samples else 0.0,
        ports=tuple(results),
        balance=tuple(_balance(nic, sent) for nic, sent in towards.items() if len(sent) > 1),
    )


def _sent(readings: Sequence[Reading]) -> tuple[float, int]:
    """Return bits per second and packets between the first and the last reading."""
    if len(readings) < 2:
        return 0.0, 0
    first, last = readings[0], readings[-1]
    bps = (last.sent_bytes - first.sent_bytes) * 8e9 / (last.at_ns - first.at_ns)
    return bps, last.sent_packets - first.sent_packets


def _balance(nic: str, sent: Sequence[tuple[float, int]]) -> NicBalance:
    ordered = sorted(sent, reverse=True)
    return NicBalance(nic, tuple(bps for bps, _ in ordered), tuple(packets for _, packets in ordered))


def _result(port: Watched, readings: Sequence[Reading]) -> PortResult:
    first, last = readings[0], readings[-1]
    backlog = sorted(reading.backlog_bytes for reading in readings)
    waits = sorted(reading.backlog_ms for reading in readings)
    return PortResult(
        port=port.port,
        link=port.link,
        tier=port.tier,
        nic=port.nic,
        rate_bps=last.rate_bps,
        readings=len(readings),
        load=_sent(readings)[0] / last.rate_bps,
        sent_bytes=last.sent_bytes - first.sent_bytes,
        sent_packets=last.sent_packets - first.sent_packets,
        drops=last.drops - first.drops,
        queue_mean_bytes=fmean(backlog),
        queue_p99_bytes=backlog[_rank(len(backlog))],
        queue_max_bytes=backlog[-1],
        queue_mean_ms=fmean(waits),
        queue_p99_ms=waits[_rank(len(waits))],
        queue_max_ms=waits[-1],
        p99_uncertainty_ms=_rank_uncertainty(waits),
        marked=_marks(first, last),
        since_ns=first.at_ns,
        course=tuple(_course(readings)),
    )


def _marks(before: Reading, after: Reading) -> int | None:
    """Return packets marked between two readings; None when nothing marked at both: a fault may replace RED."""
    return None if before.marked is None or after.marked is None else after.marked - before.marked


def _course(readings: Sequence[Reading]) -> Iterator[Moment]:
    """Yield the intervals with marks or drops; counts belong to the time of the reading that shows them."""
    start_ns = readings[0].at_ns
    moment = Moment(start_ns, 0, 0, 0)
    for before, after in pairwise(readings):
        begin_ns = after.at_ns - (after.at_ns - start_ns) % _COURSE_NS
        if begin_ns != moment.begin_ns:
            if moment.marked or moment.drops:
                yield moment
            moment = Moment(begin_ns, 0, 0, 0)
        moment = Moment(
            begin_ns,
            moment.marked + (_marks(before, after) or 0),
            moment.drops + after.drops - before.drops,
            max(moment.queue_max_bytes, after.backlog_bytes),
        )
    if moment.marked or moment.drops:
        yield moment


def _rank(count: int) -> int:
    """Return the index of the 99th percentile of ``count`` ordered values, by nearest rank."""
    return math.ceil(_QUANTILE * count) - 1


def _rank_uncertainty(ordered: Sequence[float]) -> float:
    """Return the distance of the 99th percentile to the farther end of its interval: the rank is binomially
    distributed."""
    at, last = _rank(len(ordered)), len(ordered) - 1
    reach = math.ceil(_Z * math.sqrt(len(ordered) * _QUANTILE * (1 - _QUANTILE)))
    return max(ordered[at] - ordered[max(at - reach, 0)], ordered[min(at + reach, last)] - ordered[at])
