"""Counters of the classes at all ports of a lab with ``switch:``, read at the start and the end of a run's traffic.

Changes when something else is read of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace

from hpn.failover.analysis.buffers import LAST_NS, ClassUse
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.model import Fabric, Node, Port
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from hpn.testbed.lab.lab import Lab

_Counters = Mapping[str, tuple[ClassCounters, ...]]
"""By the port's label, then by priority."""
_NONE = ClassCounters(*[0] * 24)


class PortBuffers:
    """Classes of one run; nothing is read in a lab without ``switch:``.

    Use: ``before``, ``late``, ``after``, then ``used``.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._before: _Counters = {}
        self._late: _Counters = {}
        self._after: _Counters = {}

    def before(self) -> None:
        """Read the counters at the start of the traffic."""
        self._before = dict(self._read())

    async def late(self, until: Callable[[int], Awaitable[None]], end_ns: int) -> None:
        """Read them ``LAST_NS`` before the end, which ``until`` waits for; after that moment, as ``before`` did."""
        at_ns = end_ns - LAST_NS
        if self._lab.fabric.spec.switch is not None and at_ns > now_ns():
            await until(at_ns)
            self._late = dict(self._read())

    def after(self) -> None:
        """Read the counters at the end of the traffic."""
        self._after = dict(self._read())

    def used(self) -> tuple[ClassUse, ...] | None:
        """Return the classes with anything counted, in the order of the fabric; None without ``switch:``."""
        fabric, late = self._lab.fabric, self._late or self._before
        return None if fabric.spec.switch is None else tuple(_used(fabric, self._before, late, self._after))

    def _read(self) -> Iterator[tuple[str, tuple[ClassCounters, ...]]]:
        fabric = self._lab.fabric
        for node in fabric.nodes if fabric.spec.switch is not None else ():
            classes = self._lab.requests(node.name).queues().classes
            for _, port in _ports(fabric, node):
                if port.ifindex in classes:
                    yield port.label, classes[port.ifindex]


def _ports(fabric: Fabric, node: Node) -> Iterator[tuple[str, Port]]:
    """Yield each link of a node by name, and the node's end of it."""
    for link in fabric.links_of(node.name):
        yield link.name, link.end_at(node.name)


def _used(fabric: Fabric, before: _Counters, late: _Counters, after: _Counters) -> Iterator[ClassUse]:
    for node in fabric.nodes:
        for link, port in _ports(fabric, node):
            for priority, now in enumerate(after.get(port.label, ())):
                was, then = (each[port.label][priority] if port.label in each else _NONE for each in (before, late))
                found = class_use(node, port, link, priority, was, now)
                found = replace(found, last_packets=class_use(node, port, link, priority, then, now).sent_packets)
                if _counted(found):
                    yield found


def class_use(node: Node, port: Port, link: str, priority: int, was: ClassCounters, now: ClassCounters) -> ClassUse:
    """Return what a class did between two readings; a port that was made anew has counted from its making on."""
    if now.sent_packets < was.sent_packets:
        was = _NONE
    return ClassUse(
        node=node.name,
        is_switch=node.is_switch,
        port=port.label,
        link=link,
        priority=priority,
        queue_bytes=now.queue,
        queue_max_bytes=now.queue_max,
        held_max_bytes=now.held_max,
        headroom_max_bytes=now.headroom_max,
        sent_packets=now.sent_packets - was.sent_packets,
        sent_bytes=now.sent_bytes - was.sent_bytes,
        drops=now.drops - was.drops,
        headroom_drops=now.headroom_drops - was.headroom_drops,
        trimmed=now.trims - was.trims,
        marked=now.marks - was.marks,
        xoff_received=now.rx_xoff - was.rx_xoff,
        xon_received=now.rx_xon - was.rx_xon,
        xoff_sent=now.tx_xoff - was.tx_xoff,
        xon_sent=now.tx_xon - was.tx_xon,
        paused_ns=now.paused_ns - was.paused_ns,
        pausing_ns=now.pausing_ns - was.pausing_ns,
        storms=now.storms - was.storms,
        storms_ended=now.restored - was.restored,
        storm_drops=now.storm_drops - was.storm_drops,
        paused=bool(now.paused),
        pausing=bool(now.pausing),
        storming=bool(now.storming),
    )


def _counted(found: ClassUse) -> bool:
    """Return True if anything was counted or held, before the traffic or during it."""
    at_the_end = found.queue_max_bytes or found.held_max_bytes or found.headroom_max_bytes
    during = found.sent_packets or found.lost or found.trimmed or found.xoff_received or found.xoff_sent
    return bool(at_the_end or during or found.paused_ns or found.pausing_ns or found.storms)
