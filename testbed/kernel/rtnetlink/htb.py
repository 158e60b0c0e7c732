"""A port's queues inside its token bucket: the kernel's HTB with rates that never limit. Pure.

Layouts: linux/pkt_sched.h (tc_htb_glob, tc_htb_opt, TCA_HTB_*), linux/pkt_cls.h (tc_u32_sel); behaviour:
net/sched/sch_htb.c. Every kernel that the lab runs on has HTB; few have ETS, DRR and PRIO.

* Control frames have a queue that is always served first: LACP, ARP, path control, and IP with DSCP CS6 (BGP, BFD).
  Switches do the same; otherwise a full port loses LACPDUs, and congestion takes links down. The queue is the
  class's default: as many frames as the device queues.
* A class below its rate is served by deficit round robin with its ``quantum`` (htb_dequeue_tree). No class ever
  exceeds its rate here, as the outer bucket is far slower. So only the quanta share the port, and an empty queue
  leaves its turn to the other.
* Frames that match no filter go to the first data class.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.red import INSIDE_THE_BUCKET
from hpn.testbed.kernel.rtnetlink.rtnl import RTM_NEWQDISC

_RTM_NEWTCLASS, _RTM_NEWTFILTER = 40, 44
_NLM_F_REPLACE, _NLM_F_EXCL, _NLM_F_CREATE = 0x100, 0x200, 0x400
_KIND, _OPTIONS = 1, 2  # TCA_*
_PARAMETERS, _INIT, _RATE64, _CEIL64 = 1, 2, 6, 7  # TCA_HTB_*
_VERSION, _RATE_TO_QUANTUM = 3, 10  # of HTB's messages; its default
_U32_CLASSID, _U32_SEL = 1, 5
_U32_TERMINAL = 1
_ETH_P_IP = 0x0800
_CONTROL_ETHERTYPES = (0x8809, 0x88B5, 0x0806)  # slow protocols (LACP), path control, ARP
_HANDLE = 0x20000
_CONTROL, _FIRST, _SECOND = 1, 2, 3  # minor numbers
SECOND_CLASS = _HANDLE | _SECOND
"""Parent handle of the queue of a second data class."""
_OUT_OF_REACH = 10**11  # bytes/s: 800 Gbit/s, while emulated links are 1:1000
_BURST_TICKS = 100_000_000 >> 6  # 100 ms at that rate, in the kernel's ticks of 64 ns
CS6 = 48
"""The DSCP of routing protocols (RFC 4594)."""
_ANY_QUANTUM = 10_000  # alone in its rank
_DSCP_SHIFT, _DSCP_MASK = 18, 0x00FC0000  # in the first word of an IPv4 header


@dataclass(frozen=True, slots=True)
class Second:
    """A second data class: its DSCP, and the bytes that the first and second class send per round, at least a frame."""

    dscp: int
    quanta: tuple[int, int]


def port_queues(
    ifindex: int, inner: Callable[[int], bytes], second: Second | None = None, parent: int = INSIDE_THE_BUCKET
) -> Iterator[bytes]:
    """Yield requests that add queues under ``parent``: control frames, data, and the second data class if there is one.

    ``inner`` returns the request for the data queue itself, under the class with that handle.
    """
    init = struct.pack("=IIIII", _VERSION, _RATE_TO_QUANTUM, _FIRST, 0, 0)
    body = _about(ifindex, _HANDLE, parent) + rtnl.attribute(_KIND, b"htb\0")
    yield rtnl.message(
        RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body + rtnl.attribute(_OPTIONS, rtnl.attribute(_INIT, init))
    )
    yield _class(ifindex, _CONTROL, _ANY_QUANTUM, rank=0)
    for minor, quantum in zip((_FIRST, _SECOND), second.quanta if second else (_ANY_QUANTUM,), strict=False):
        yield _class(ifindex, minor, quantum, rank=1)
        yield inner(_HANDLE | minor)
    yield _filter(ifindex, 1, _ETH_P_IP, _CONTROL, _DSCP_MASK, CS6 << _DSCP_SHIFT)
    if second is not None:
        yield _filter(ifindex, 1, _ETH_P_IP, _SECOND, _DSCP_MASK, second.dscp << _DSCP_SHIFT)
    for order, ethertype in enumerate(_CONTROL_ETHERTYPES, 2):
        yield _filter(ifindex, order, ethertype, _CONTROL)


def add_fifo(ifindex: int, limit_bytes: int, parent: int = INSIDE_THE_BUCKET) -> bytes:
    """Return a request for a plain queue of ``limit_bytes`` under ``parent`` of an interface; it tail-drops."""
    body = _about(ifindex, 0, parent) + rtnl.attribute(_KIND, b"bfifo\0")
    body += rtnl.attribute(_OPTIONS, struct.pack("=I", limit_bytes))
    return rtnl.message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body)


def _class(ifindex: int, minor: int, quantum: int, rank: int) -> bytes:
    """Return a request for a class. ``rank``: priority; classes of a lower rank are served first."""
    rate = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, 0xFFFFFFFF)  # linklayer Ethernet: the kernel needs no rate table
    parameters = rate + rate + struct.pack("=IIIII", _BURST_TICKS, _BURST_TICKS, quantum, 0, rank)
    wide = struct.pack("=Q", _OUT_OF_REACH)
    options = rtnl.attribute(_PARAMETERS, parameters) + rtnl.attribute(_RATE64, wide) + rtnl.attribute(_CEIL64, wide)
    body = _about(ifindex, _HANDLE | minor, _HANDLE) + rtnl.attribute(_KIND, b"htb\0")
    body += rtnl.attribute(_OPTIONS, options)
    return rtnl.message(_RTM_NEWTCLASS, _NLM_F_CREATE | _NLM_F_EXCL, body)


def _filter(ifindex: int, order: int, ethertype: int, minor: int, mask: int = 0, value: int = 0) -> bytes:
    """Direct frames with the ethertype, and ``value`` under ``mask`` in their header's first word, to that class."""
    key = struct.pack("!II", mask, value) + struct.pack("=ii", 0, 0)
    selector = struct.pack("=BBBxHHhhI", _U32_TERMINAL, 0, 1, 0, 0, 0, 0, 0) + key
    options = rtnl.attribute(_U32_CLASSID, struct.pack("=I", _HANDLE | minor)) + rtnl.attribute(_U32_SEL, selector)
    info = order << 16 | int.from_bytes(ethertype.to_bytes(2, "big"), "little")
    body = _about(ifindex, 0, _HANDLE, info) + rtnl.attribute(_KIND, b"u32\0")
    return rtnl.message(_RTM_NEWTFILTER, _NLM_F_CREATE | _NLM_F_EXCL, body + rtnl.attribute(_OPTIONS, options))


def _about(ifindex: int, handle: int, parent: int, info: int = 0) -> bytes:
    return struct.pack("=BxxxiIII", 0, ifindex, handle, parent, info)
