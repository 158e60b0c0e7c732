"""Kernel counters of an interface's token bucket (tc -s qdisc), decoded from RTM_NEWQDISC. Pure.

Layouts: linux/rtnetlink.h (tcmsg, TCA_*), linux/gen_stats.h (TCA_STATS2), linux/pkt_sched.h (tc_tbf_qopt).
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from hpn.testbed.kernel.rtnetlink.nlmsg import attributes
from hpn.testbed.kernel.rtnetlink.rtnl import TCMSG_BYTES

_TCMSG = struct.Struct("=BxxxiIII")
_ROOT = 0xFFFFFFFF
_KIND, _OPTIONS, _STATS2 = 1, 2, 7  # TCA_*
_BASIC, _QUEUE, _PKT64 = 1, 3, 8  # TCA_STATS_*
_TBF_PARAMETERS, _TBF_RATE64 = 1, 4  # TCA_TBF_*
_RATE_AT = 8  # tc_tbf_qopt.rate.rate
_BASIC_STATS = struct.Struct("=QI")  # bytes, packets
_QUEUE_STATS = struct.Struct("=III")  # qlen, backlog, drops
_U32, _U64 = struct.Struct("=I"), struct.Struct("=Q")


@dataclass(frozen=True, slots=True)
class BucketReading:
    """One reading of a token bucket. Sent and dropped count since its creation and include control frames and ACKs.

    Bytes are from the Ethernet header on, as the rate counts them.
    """

    at_ns: int  # when the kernel's answer was read
    ifindex: int
    backlog_bytes: int  # queued bytes
    backlog_packets: int
    drops: int  # packets
    sent_bytes: int
    sent_packets: int
    rate_bps: int
    marked: int | None = None  # packets, by the RED inside; None without one
    classes: tuple[ClassCounters, ...] = ()  # by priority, of the mmu inside


@dataclass(frozen=True, slots=True)
class Rate:
    """Throughput and drops of a token bucket between two readings, and its backlog at the second."""

    sent_bps: float  # bits per second
    drops_per_s: float  # packets
    backlog_bytes: int


def rates(before: Iterable[BucketReading], after: Iterable[BucketReading]) -> dict[int, Rate]:
    """Return the rates by interface, for buckets that were read twice; ifindexes are unique in a lab.

    Counters never decrease: a bucket that was recreated in between counts as having sent nothing since.
    """
    first = {reading.ifindex: reading for reading in before}
    found = {}
    for reading in after:
        since = first.get(reading.ifindex)
        if since is not None and reading.at_ns > since.at_ns:
            seconds = (reading.at_ns - since.at_ns) / 1e9
            sent, lost = reading.sent_bytes - since.sent_bytes, reading.drops - since.drops
            found[reading.ifindex] = Rate(8 * max(0, sent) / seconds, max(0, lost) / seconds, reading.backlog_bytes)
    return found


@dataclass(frozen=True, slots=True)
class Queues:
    """Queues at the ports of a namespace: token buckets at the root; by ifindex the qdiscs below."""

    buckets: tuple[BucketReading, ...]
    delayed: frozenset[int]  # netem
    marked: Mapping[int, int]  # RED: packets marked since its creation
    controlled: frozenset[int]  # HTB: control frames have a queue that is served first
    divided: frozenset[int]  # data has two queues that share the port
    classes: Mapping[int, tuple[ClassCounters, ...]]  # mmu: counters of each class, by priority
    stuck: frozenset[int]  # mmu: a fault has them stop their neighbour all the time


def parse_kind(body: bytes) -> tuple[int, int, str]:
    """Return the interface of a queue, its parent, and its kind ('tbf', 'netem')."""
    _, ifindex, _, parent, _ = _TCMSG.unpack_from(body)
    return ifindex, parent, attributes(body[TCMSG_BYTES:])[_KIND].rstrip(b"\0").decode()


def parse_bucket(at_ns: int, body: bytes, ifindexes: Container[int]) -> BucketReading | None:
    """Decode a message if it is about a token bucket at the root of one of ``ifindexes``; None otherwise."""
    _, ifindex, _, parent, _ = _TCMSG.unpack_from(body)
    if parent != _ROOT or ifindex not in ifindexes:
        return None
    found = attributes(body[TCMSG_BYTES:])
    if found[_KIND] != b"tbf\0":
        return None
    options, stats = attributes(found[_OPTIONS]), attributes(found[_STATS2])
    sent_bytes, sent_packets = _BASIC_STATS.unpack_from(stats[_BASIC])
    if _PKT64 in stats:  # the count may exceed 32 bits
        sent_packets = _U64.unpack(stats[_PKT64])[0]
    waiting, backlog, drops = _QUEUE_STATS.unpack_from(stats[_QUEUE])
    wide = options.get(_TBF_RATE64)
    rate = _U64.unpack(wide)[0] if wide else _U32.unpack_from(options[_TBF_PARAMETERS], _RATE_AT)[0]
    return BucketReading(at_ns, ifindex, backlog, waiting, drops, sent_bytes, sent_packets, 8 * rate)
