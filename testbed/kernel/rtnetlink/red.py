"""The kernel's random early detection (RED) as a marker on the instantaneous queue, and its counters. Pure.

Layouts: linux/pkt_sched.h (tc_red_qopt, TCA_RED_*, tc_red_xstats); behaviour: net/sched/sch_red.c, include/net/red.h.

* RED's average is the queue itself with a weight of 1 (Wlog 0); tc(8) cannot express that, it begins at 1/2. While a
  queue is empty RED lets its average decay by a table of shifts: 31 in every place makes it 0 at once.
* Packets that cannot be marked pass (nodrop, Linux 5.7): otherwise RED drops them, LACP, ARP and BGP among them.
* RED spaces its marks evenly: with probability p the gaps between them are uniform from 1 to 1/p packets, which marks
  up to 2p of all packets, not p. So a lower probability is configured, such that the share is right at the upper
  threshold.
"""

from __future__ import annotations

import math
import struct

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.nlmsg import attributes
from hpn.testbed.kernel.rtnetlink.rtnl import RTM_NEWQDISC, TCMSG_BYTES

INSIDE_THE_BUCKET = 0x10001
"""Class 1:1 of the token bucket that wiring adds."""
ROOT = 0xFFFFFFFF
LOOPBACK = 1
"""The ifindex of lo, in every namespace."""

_NLM_F_REPLACE, _NLM_F_CREATE = 0x100, 0x400
_KIND, _OPTIONS, _STATS2 = 1, 2, 7  # TCA_*
_PARAMETERS, _TABLE, _MAX_P, _FLAGS = 1, 2, 3, 4  # TCA_RED_*
_ECN, _NODROP = 1, 8  # TC_RED_*
_STATS_APP = 4  # TCA_STATS_*
_STATS = struct.Struct("=IIII")  # tc_red_xstats: early, pdrop, other, marked


def add_red(
    ifindex: int, thresholds: tuple[int, int], share: float, limit_bytes: int, parent: int = INSIDE_THE_BUCKET
) -> bytes:
    """Return a request that adds RED under ``parent`` of an interface; it drops the tail beyond ``limit_bytes``.

    It marks nothing below the first of the ``thresholds`` (bytes), everything from the second on, and ``share`` (more
    than 0, at most 1) just below that.
    """
    parameters = struct.pack("=IIIBBBB", limit_bytes, *thresholds, 0, 0, 0, 0)
    options = rtnl.attribute(_PARAMETERS, parameters) + rtnl.attribute(_TABLE, bytes([31]) * 256)
    options += rtnl.attribute(_MAX_P, struct.pack("=I", asked_probability(share)))
    options += rtnl.attribute(_FLAGS, struct.pack("=II", _ECN | _NODROP, _ECN | _NODROP))  # nla_bitfield32
    body = struct.pack("=BxxxiIII", 0, ifindex, 0, parent, 0) + rtnl.attribute(_KIND, b"red\0")
    body += rtnl.attribute(_OPTIONS, options)
    return rtnl.message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body)


def asked_probability(share: float) -> int:
    """Return the probability, in 2^-32, to configure RED with so that it marks ``share`` of the packets.

    Gaps are ceil(u / p) packets, u uniform below 1: with k = floor(1 / p) that is k + 1 - p k (k + 1) / 2 on average.
    """
    gap = 1 / share
    k = math.floor(2 * gap - 1)
    asked = 2 * (k + 1 - gap) / (k * (k + 1))
    return min(max(round(asked * 2**32), 1), 2**32 - 1)  # with 0 the kernel would choose


def parse_marked(body: bytes) -> int:
    """Return the packets that a RED has marked since its creation, from its RTM_NEWQDISC."""
    stats = attributes(attributes(body[TCMSG_BYTES:])[_STATS2])
    return int(_STATS.unpack_from(stats[_STATS_APP])[3])
