"""Port sampling during a drill: selected ports, period, and the readings, packed. Pure.

Changes when more data of a port is read. ``failover.analysis.ports`` interprets the readings.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hpn.testbed.fabric.model import Fabric, LinkKind, Role
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading

_ROW = 7


class Ports(StrEnum):
    """Set of ports that are sampled; the value is its name in a drill file."""

    TOR_DOWN = "tor-down"  # of ToRs, towards NICs
    SWITCHES = "switches"  # every port of every switch


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling that a drill requests: one reading in every ``period_ns``."""

    period_ns: int
    ports: Ports = Ports.TOR_DOWN

    def slowed(self, times: int) -> Sampling:
        """Return the sampling for a kernel on which a reading costs ``times`` as much."""
        return replace(self, period_ns=self.period_ns * max(times, 1))


@dataclass(frozen=True, slots=True)
class Watched:
    """A port that is sampled."""

    node: str
    ifindex: int
    port: str  # 'p0.s0.t0.0:h0r0'
    link: str
    tier: str  # 'tor down', 'agg up'
    nic: str | None  # that it leads to


def watched(fabric: Fabric, ports: Ports) -> tuple[Watched, ...]:
    """Return the sampled ports of a fabric, switch by switch."""
    return tuple(
        Watched(
            node.name,
            link.end_at(node.name).ifindex,
            link.end_at(node.name).label,
            link.name,
            f"{node.role} {_side(link.kind, link.upper.node == node.name)}",
            fabric.nic_of_link(link.name).name if link.kind is LinkKind.ACCESS else None,
        )
        for node in fabric.switches
        if ports is Ports.SWITCHES or node.role is Role.TOR
        for link in fabric.links_of(node.name)
        if ports is Ports.SWITCHES or link.kind is LinkKind.ACCESS
    )


def _side(kind: LinkKind, upper: bool) -> str:
    if kind in (LinkKind.PEER, LinkKind.MESH):
        return kind.value
    return "down" if upper else "up"


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a port, as ``testbed.kernel.rtnetlink.qdisc`` takes it."""

    at_ns: int
    backlog_bytes: int
    drops: int  # packets
    sent_bytes: int
    sent_packets: int
    rate_bps: int  # of the port as it was read
    marked: int | None  # packets, by the port's RED or phantom queue; None: it has neither

    @property
    def backlog_ms(self) -> float:
        """Time that the queue takes to drain."""
        return self.backlog_bytes * 8e3 / self.rate_bps


class Series:
    """The readings of one port, packed: there may be a hundred thousand."""

    def __init__(self, port: Watched) -> None:
        self.port = port
        self._rows = array("Q")

    def __len__(self) -> int:
        return len(self._rows) // _ROW

    def append(self, found: BucketReading) -> None:
        """Add a reading, later than all before."""
        sent = (found.sent_bytes, found.sent_packets)
        marked = 0 if found.marked is None else found.marked + 1
        self._rows.extend((found.at_ns, found.backlog_bytes, found.drops, *sent, found.rate_bps, marked))

    def packed(self) -> bytes:
        """Return all readings: seven unsigned 64-bit numbers each, in the order of ``Reading``.

        The last is the number of marked packets plus one, or 0 where nothing marks.
        """
        return self._rows.tobytes()

    @classmethod
    def unpacked(cls, port: Watched, content: bytes) -> Series:
        """Return the series from ``packed`` content. ValueError when its size is no multiple of a reading's."""
        if len(content) % (_ROW * array("Q").itemsize):
            raise ValueError(f"{len(content)} bytes are no whole number of readings")
        series = cls(port)
        series._rows.frombytes(content)
        return series

    def until(self, end_ns: int) -> Iterator[Reading]:
        """Yield the readings not later than ``end_ns``."""
        for at in range(0, len(self._rows), _ROW):
            if self._rows[at] > end_ns:
                return
            at_ns, backlog, drops, sent_bytes, packets, rate_bps, marked = self._rows[at : at + _ROW]
            yield Reading(at_ns, backlog, drops, sent_bytes, packets, rate_bps, marked - 1 if marked else None)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Readings of one run."""

    sampling: Sampling
    series: Sequence[Series]
    cpu_ns: int  # that the sampler itself took
