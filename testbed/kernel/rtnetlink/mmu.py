"""The queue discipline ``mmu`` of our guest kernel (testbed/vm/sch_mmu.c): its options and its counters. Pure."""

from __future__ import annotations

import struct
from dataclasses import astuple, dataclass

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.nlmsg import attributes
from hpn.testbed.kernel.rtnetlink.red import INSIDE_THE_BUCKET
from hpn.testbed.kernel.rtnetlink.rtnl import RTM_NEWQDISC, TCMSG_BYTES

CLASSES = 8
KIND = "mmu"

_NLM_F_REPLACE, _NLM_F_CREATE = 0x100, 0x400
_KIND, _OPTIONS, _STATS2, _STATS_APP = 1, 2, 7, 4  # TCA_*, TCA_STATS_APP
_LOSSLESS, _TRIM, _WATCHDOG, _FORWARDS = 1, 2, 4, 8  # enum class_flags
_PORT = struct.Struct("=9I" + "HH" + "7Bx" + "64s")  # struct mmu_options, without its classes
_STUCK_AT = 16  # in _PORT
_PAUSE_QUANTA = 65535
_CLASS = struct.Struct("=9I")  # struct mmu_class
_COUNTERS = struct.Struct("=24Q")  # struct mmu_counters


@dataclass(frozen=True, slots=True)
class PortClass:
    """A class at a port, in bytes of frames from the Ethernet header on.

    A lossless class is limited where packets came in, a lossy one where they leave: by ``limit``, by ``alpha`` times
    the free buffer, or by the lower of both (0: none). ``quantum`` is sent per round; 0: strict priority.
    """

    lossless: bool = False
    trim: bool = False
    watchdog: bool = False
    forwards: bool = False  # a watchdog that fired sends on in place of dropping
    quantum: int = 0
    limit: int = 0
    alpha: float = 0.0
    xon_offset: int = 0
    headroom: int = 0
    kmin: int = 0
    kmax: int = 0  # 0: no ECN
    pmax: float = 0.0

    def packed(self) -> bytes:
        """Return it as struct mmu_class."""
        flags = self.lossless * _LOSSLESS | self.trim * _TRIM | self.watchdog * _WATCHDOG | self.forwards * _FORWARDS
        share = min(round(self.pmax * 2**32), 2**32 - 1)
        alpha = round(self.alpha * 1024)
        return _CLASS.pack(
            flags, self.quantum, self.limit, alpha, self.xon_offset, self.headroom, self.kmin, self.kmax, share
        )


@dataclass(frozen=True, slots=True)
class Stuck:
    """A fault: priorities (a bit mask) whose neighbour the port stops by PFC.

    Each pause lasts ``quanta``, and the next begins ``every`` quanta after it began.
    """

    priorities: int = 0
    quanta: int = _PAUSE_QUANTA
    every: int = _PAUSE_QUANTA // 2


@dataclass(frozen=True, slots=True)
class PortOptions:
    """Options of a port. Times in ns unless named otherwise."""

    buffer: int  # bytes that all ports of the switch share, headroom apart
    quantum_ns: int  # 512 bit times of the port
    react_ns: int  # from a PFC frame's arrival to its effect
    classes: tuple[PortClass, ...]  # eight, by priority
    class_of: bytes  # 64, the priority by DSCP
    is_switch: bool = True
    rdma_dscp: int = 0  # hosts: DSCP of RoCEv2 packets that have none; 0: leave them
    cnp_dscp: int = 0
    rate_kbps: int = 0  # that it writes into packets that ask for telemetry
    balance: int = 0  # enum balance_by: how a switch chooses among next hops
    gap_us: int = 0  # a flow that was idle so long may take another next hop; 0: each packet may
    seed: int = 0  # for the hash of flows
    stuck: Stuck = Stuck()
    detect_us: int = 0
    restore_us: int = 0
    trim_bytes: int = 0
    trim_class: int = 0
    trim_dscp: int = 0

    def packed(self) -> bytes:
        """Return them as struct mmu_options."""
        times = (self.quantum_ns, self.react_ns, self.detect_us, self.restore_us)
        numbers = (self.trim_bytes, self.rate_kbps, self.gap_us, self.seed, self.stuck.quanta, self.stuck.every)
        marking = (self.trim_class, self.trim_dscp, self.is_switch, self.rdma_dscp, self.cnp_dscp)
        head = _PORT.pack(self.buffer, *times, *numbers, *marking, self.stuck.priorities, self.balance, self.class_of)
        return head + b"".join(each.packed() for each in self.classes)


@dataclass(frozen=True, slots=True)
class ClassCounters:
    """Counters of a class at a port since the port was made: bytes, packets, PFC frames, ns.

    ``queue`` counts where packets leave, ``held`` and ``headroom`` where they came in.
    """

    queue: int  # bytes now
    queue_max: int
    held: int  # bytes now, in the shared buffer
    held_max: int
    headroom: int  # bytes now
    headroom_max: int
    sent_packets: int
    sent_bytes: int
    drops: int  # packets that found no room
    headroom_drops: int  # packets that found no room in the headroom of the port that they came in by
    trims: int
    marks: int
    rx_xoff: int  # PFC frames, refreshes included
    rx_xon: int
    tx_xoff: int
    tx_xon: int
    paused_ns: int  # the neighbour stopped this port
    pausing_ns: int  # this port stopped its neighbour
    storms: int  # the watchdog fired
    restored: int
    storm_drops: int
    paused: int  # now: 0 or 1
    pausing: int
    storming: int

    @property
    def idle(self) -> bool:
        """True if nothing was ever counted."""
        return not any(astuple(self))


def add_mmu(ifindex: int, options: PortOptions, parent: int = INSIDE_THE_BUCKET) -> bytes:
    """Return a request that adds the discipline under ``parent`` of an interface, or changes the one that is there."""
    body = struct.pack("=BxxxiIII", 0, ifindex, 0, parent, 0) + rtnl.attribute(_KIND, KIND.encode() + b"\0")
    body += rtnl.attribute(_OPTIONS, options.packed())
    return rtnl.message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_REPLACE, body)


def parse_counters(body: bytes) -> tuple[ClassCounters, ...]:
    """Return the counters of each class, by priority, from the discipline's RTM_NEWQDISC."""
    stats = attributes(attributes(body[TCMSG_BYTES:])[_STATS2])[_STATS_APP]
    return tuple(ClassCounters(*row) for row in _COUNTERS.iter_unpack(stats[: CLASSES * _COUNTERS.size]))


def parse_stuck(body: bytes) -> int:
    """Return the bit mask of stuck priorities, from the discipline's RTM_NEWQDISC."""
    return int(_PORT.unpack_from(attributes(body[TCMSG_BYTES:])[_OPTIONS])[_STUCK_AT])


def parse_marked(body: bytes) -> int:
    """Return the packets that the port has marked, from the discipline's RTM_NEWQDISC."""
    return sum(each.marks for each in parse_counters(body))
