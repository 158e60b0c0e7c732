"""Two queues inside a port's token bucket that share it by weight: the kernel's HTB with its rates out of reach. Pure.

Layouts: linux/pkt_sched.h (tc_htb_glob, tc_htb_opt, TCA_HTB_*), linux/pkt_cls.h (tc_u32_sel); behaviour:
net/sched/sch_htb.c. Every kernel that the lab runs on has HTB; ETS, DRR and PRIO few have.

* A class below its rate has its turn by deficit round robin with its ``quantum`` (htb_dequeue_tree). No class is ever
  above its rate here, as the bucket outside is far slower; so quanta alone share the port, and a queue that is
  empty leaves its turn to the other.
* What no filter knows goes to the first class: LACP, ARP, BGP and all packets without the DSCP.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from testbed.kernel import rtnl
from testbed.kernel.red import INSIDE_THE_BUCKET
from testbed.kernel.rtnl import RTM_NEWQDISC

_RTM_NEWTCLASS, _RTM_NEWTFILTER = 40, 44
_NLM_F_REPLACE, _NLM_F_EXCL, _NLM_F_CREATE = 0x100, 0x200, 0x400
_KIND, _OPTIONS = 1, 2  # TCA_*
_PARAMETERS, _INIT, _RATE64, _CEIL64 = 1, 2, 6, 7  # TCA_HTB_*
_VERSION, _RATE_TO_QUANTUM = 3, 10  # of HTB's messages; its default
_U32_CLASSID, _U32_SEL = 1, 5
_U32_TERMINAL = 1
_ETH_P_IP, _PRIORITY = 0x0800, 1
_HANDLE = 0x20000
_FIRST, _SECOND = 1, 2  # minor numbers
_OUT_OF_REACH = 10**11  # bytes/s: 800 Gbit/s, while emulated links are 1:1000
_BURST_TICKS = 100_000_000 >> 6  # 100 ms at that rate, in the kernel's ticks of 64 ns
_DSCP_SHIFT, _DSCP_MASK = 18, 0x00FC0000  # in the first word of an IPv4 header


def two_queues(
    ifindex: int, dscp: int, quanta: tuple[int, int], inner: Callable[[int], bytes], parent: int = INSIDE_THE_BUCKET
) -> Iterator[bytes]:
    """Put them under ``parent`` of an interface: one for packets with that DSCP (1 to 63), one before it for the rest.

    ``quanta``: bytes that each sends in its turn while both have something; at least a frame. ``inner`` makes the
    queue itself, of the class with that handle.
    """
    init = struct.pack("=IIIII", _VERSION, _RATE_TO_QUANTUM, _FIRST, 0, 0)
    body = _about(ifindex, _HANDLE, parent) + rtnl.attribute(_KIND, b"htb\0")
    yield rtnl.message(
        RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body + rtnl.attribute(_OPTIONS, rtnl.attribute(_INIT, init))
    )
    for minor, quantum in zip((_FIRST, _SECOND), quanta, strict=True):
        yield _class(ifindex, _HANDLE | minor, quantum)
        yield inner(_HANDLE | minor)
    yield _by_dscp(ifindex, dscp)


def add_fifo(ifindex: int, limit_bytes: int, parent: int = INSIDE_THE_BUCKET) -> bytes:
    """A plain queue of so many bytes under ``parent`` of an interface; what comes beyond is dropped."""
    body = _about(ifindex, 0, parent) + rtnl.attribute(_KIND, b"bfifo\0")
    body += rtnl.attribute(_OPTIONS, struct.pack("=I", limit_bytes))
    return rtnl.message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body)


def _class(ifindex: int, handle: int, quantum: int) -> bytes:
    rate = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, 0xFFFFFFFF)  # linklayer Ethernet: the kernel needs no rate table
    parameters = rate + rate + struct.pack("=IIIII", _BURST_TICKS, _BURST_TICKS, quantum, 0, 0)
    wide = struct.pack("=Q", _OUT_OF_REACH)
    options = rtnl.attribute(_PARAMETERS, parameters) + rtnl.attribute(_RATE64, wide) + rtnl.attribute(_CEIL64, wide)
    body = _about(ifindex, handle, _HANDLE) + rtnl.attribute(_KIND, b"htb\0") + rtnl.attribute(_OPTIONS, options)
    return rtnl.message(_RTM_NEWTCLASS, _NLM_F_CREATE | _NLM_F_EXCL, body)


def _by_dscp(ifindex: int, dscp: int) -> bytes:
    key = struct.pack("!II", _DSCP_MASK, dscp << _DSCP_SHIFT) + struct.pack("=ii", 0, 0)
    selector = struct.pack("=BBBxHHhhI", _U32_TERMINAL, 0, 1, 0, 0, 0, 0, 0) + key
    options = rtnl.attribute(_U32_CLASSID, struct.pack("=I", _HANDLE | _SECOND)) + rtnl.attribute(_U32_SEL, selector)
    in_network_order = int.from_bytes(_ETH_P_IP.to_bytes(2, "big"), "little")
    body = _about(ifindex, 0, _HANDLE, _PRIORITY << 16 | in_network_order) + rtnl.attribute(_KIND, b"u32\0")
    return rtnl.message(_RTM_NEWTFILTER, _NLM_F_CREATE | _NLM_F_EXCL, body + rtnl.attribute(_OPTIONS, options))


def _about(ifindex: int, handle: int, parent: int, info: int = 0) -> bytes:
    return struct.pack("=BxxxiIII", 0, ifindex, handle, parent, info)
