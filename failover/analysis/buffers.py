"""Classes of traffic at the ports of a lab with ``switch:``: what each did in a run, by the kernel's counters. Pure.

Changes when a counter of a class is recorded, or a figure is made of them. ``testbed.kernel.rtnetlink.mmu`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LAST_NS = 500_000_000
"""End of the traffic in which a queue must send to count as moving: three times the longest pause at 200 Mbit/s."""

_CONTROL = (6, 7)
"""Priorities of routing protocols and of frames that are not IP: these are sent in an idle lab too."""


@dataclass(frozen=True, slots=True)
class ClassUse:
    """One class at one port. Maxima and states are those at the end; everything else was counted during the traffic.

    ``queue`` is where packets leave; ``held`` and ``headroom`` are where they came in.
    """

    node: str
    is_switch: bool
    port: str  # 'p0.s0.t0.0:h0r0'
    link: str
    priority: int
    queue_bytes: int  # at the end
    queue_max_bytes: int
    held_max_bytes: int  # in the shared buffer
    headroom_max_bytes: int
    sent_packets: int
    sent_bytes: int
    drops: int  # packets without room in the queue or the buffer
    headroom_drops: int  # packets without room in the headroom of the port that they came in by
    trimmed: int  # packets cut to their headers
    marked: int  # packets, ECN
    xoff_received: int  # PFC frames, refreshes included
    xon_received: int
    xoff_sent: int
    xon_sent: int
    paused_ns: int  # the neighbour stopped this port
    pausing_ns: int  # this port stopped its neighbour
    storms: int  # the PFC watchdog fired
    storms_ended: int
    storm_drops: int  # packets
    paused: bool  # at the end
    pausing: bool
    storming: bool
    last_packets: int = 0  # sent in the last LAST_NS of the traffic

    @property
    def lost(self) -> int:
        """Packets that it dropped for any reason."""
        return self.drops + self.headroom_drops + self.storm_drops

    @property
    def carries_data(self) -> bool:
        """True if packets other than those of control protocols were sent or dropped."""
        return self.priority not in _CONTROL and bool(self.sent_packets or self.lost)

    @property
    def label(self) -> str:
        """Port and priority."""
        return f"{self.port} priority {self.priority}"


def of_note(found: Iterable[ClassUse]) -> Sequence[ClassUse]:
    """Return the classes that dropped, trimmed or stopped a neighbour: most packets first, then the longest stop."""
    noted = [each for each in found if each.lost or each.trimmed or each.pausing_ns or each.xoff_sent]
    return sorted(noted, key=lambda each: (-each.lost - each.trimmed, -each.pausing_ns, each.port, each.priority))
