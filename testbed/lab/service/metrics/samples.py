"""Values of every metric of a lab, computed from its condition and one reading of its ports. Pure.

Changes when a lab exports another metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hpn.testbed.condition import Condition
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Port
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.testbed.lab.service.metrics import families as f
from hpn.testbed.lab.service.metrics.families import Family
from hpn.testbed.lag.states import Mux
from hpn.testbed.routing.neighbours import bfd_ends

Sample = tuple[tuple[str, ...], float]
"""Label values of a family, in their order, and the sample's value."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """Data of one scrape. ``started_at`` is Unix time; ``ports_s`` is the time spent reading the ports."""

    lab: str
    fabric: Fabric
    started_at: float
    condition: Condition
    readings: Mapping[int, BucketReading]  # by interface number
    ports_s: float


def samples(scrape: Scrape) -> Iterator[tuple[Family, list[Sample]]]:
    """Yield every family that this lab has, each with its samples."""
    for part in (_lab, _switches, _ports, _classes, _lacp, _sessions):
        yield from part(scrape)


def _lab(scrape: Scrape) -> Iterator[tuple[Family, list[Sample]]]:
    lab, found, fabric = scrape.lab, scrape.condition, scrape.fabric
    yield f.LAB_INFO, [((lab, fabric.spec.architecture, fabric.spec.bgp.daemon), 1)]
    yield f.LAB_START, [((lab,), scrape.started_at)]
    parts = {*fabric.node_by_name, *fabric.link_by_name}
    yield f.BROKEN, [((lab,), len(parts & set(found.broken)))]
    yield f.SUSPECT, [((lab, part), 1) for part in found.suspects or ()] or [((lab, ""), 0)]
    yield (
        f.EVENTS,
        [
            ((lab, kind, what, plane), times)
            for kind, by_what in found.events.items()
            for what, by_plane in by_what.items()
            for plane, times in by_plane.items()
        ],
    )
    yield f.SCRAPE, [((lab, "supervisor"), found.busy_ns / 1e9), ((lab, "ports"), scrape.ports_s)]


def _switches(scrape: Scrape) -> Iterator[tuple[Family, list[Sample]]]:
    dead, short = set(scrape.condition.dead), set(scrape.condition.routes)
    nodes = scrape.fabric.switches
    labels = {n.name: (scrape.lab, n.name, n.role.value, _number(n.plane), _number(n.rail)) for n in nodes}
    yield f.SWITCH_UP, [(labels[node.name], node.name not in dead) for node in nodes]
    yield f.ROUTES, [(labels[node.name], node.name not in short) for node in nodes]


def _ports(scrape: Scrape) -> Iterator[tuple[Family, list[Sample]]]:
    dark = set(scrape.condition.dark)
    labels = {end.ifindex: _port(scrape, link, end) for link, end in _ends(scrape.fabric.links)}
    yield f.CARRIER, [(labels[end.ifindex], end.label not in dark) for _, end in _ends(scrape.fabric.links)]
    read = [(labels[ifindex], reading) for ifindex, reading in scrape.readings.items() if ifindex in labels]
    yield f.SPEED, [(port, reading.rate_bps / 8) for port, reading in read]
    yield f.SENT_BYTES, [(port, reading.sent_bytes) for port, reading in read]
    yield f.SENT_PACKETS, [(port, reading.sent_packets) for port, reading in read]
    yield f.DROPS, [(port, reading.drops) for port, reading in read]
    yield f.QUEUE, [(port, reading.backlog_bytes) for port, reading in read]
    if marked := [(port, float(reading.marked)) for port, reading in read if reading.marked is not None]:
        yield f.MARKED, marked


def _classes(scrape: Scrape) -> Iterator[tuple[Family, list[Sample]]]:
    """Yield the counters of every class that was ever used, in labs with ``switch:``."""
    if not any(reading.classes for reading in scrape.readings.values()):
        return
    labels = {end.ifindex: _port(scrape, link, end) for link, end in _ends(scrape.fabric.links)}
    used = [
        ((*labels[ifindex], str(priority)), each)
        for ifindex, reading in scrape.readings.items()
        if ifindex in labels
        for priority, each in enumerate(reading.classes)
        if not each.idle
    ]
    yield f.CLASS_QUEUE, [(to, each.queue) for to, each in used]
    yield f.CLASS_PACKETS, [(to, each.sent_packets) for to, each in used]
    yield f.CLASS_TRIMMED, [(to, each.trims) for to, each in used]
    yield f.CLASS_MARKED, [(to, each.marks) for to, each in used]
    yield f.PFC_STORMS, [(to, each.storms) for to, each in used]
    yield f.CLASS_DROPS, [((*to, cause), count) for to, each in used for cause, count in _drops(each)]
    yield f.PFC_FRAMES, [((*to, frame, way), count) for to, each in used for frame, way, count in _pfc_frames(each)]
    yield (
        f.PFC_PAUSE,
        [((*to, "received"), each.paused_ns / 1e9) for to, each in used]
        + [((*to, "sent"), each.pausing_ns / 1e9) for to, each in used],
    )


def _drops(of: ClassCounters) -> tuple[tuple[str, int], ...]:
    return ("buffer", of.drops), ("headroom", of.headroom_drops), ("watchdog", of.storm_drops)


def _pfc_frames(of: ClassCounters) -> tuple[tuple[str, str, int], ...]:
    received = ("xoff", "received", of.rx_xoff), ("xon", "received", of.rx_xon)
    return (*received, ("xoff", "sent", of.tx_xoff), ("xon", "sent", of.tx_xon))


def _lacp(scrape: Scrape) -> Iterator[tuple[Family, list[Sample]]]:
    idle, fabric = scrape.condition.idle, scrape.fabric
    access = [(link, end) for link, end in _ends(fabric.links) if link.kind is LinkKind.ACCESS]
    labels = {end.label: (scrape.lab, end.node, end.name, str(link.plane), _rail(fabric, link)) for link, end in access}
    yield f.DISTRIBUTING, [(told, label not in idle) for label, told in labels.items()]
    states = Counter((link.plane, idle[end.label][0] if end.label in idle else _WELL) for link, end in access)
    planes = sorted({link.plane for link, _ in access})
    every = [(plane, state.value) for plane in planes for state in Mux]
    yield f.LACP_PORTS, [((scrape.lab, str(plane), state), states[plane, state]) for plane, state in every]
    active = scrape.condition.active
    yield (
        f.LAG_PORTS,
        [
            ((scrape.lab, nic.host, nic.name, str(nic.rail)), active.get(nic.name, len(nic.links)))
            for nic in fabric.nics
        ],
    )


def _sessions(scrape: Scrape) -> Iterator[tuple[Family, list[Sample]]]:
    down, dead = set(scrape.condition.sessions_down), set(scrape.condition.bfd_down)
    ends = [(link, end) for link, end in _ends(scrape.fabric.links) if link.is_routed]
    labels = {
        end.label: (scrape.lab, end.node, end.name, link.far_end(end.node).node, str(link.plane)) for link, end in ends
    }
    yield f.BGP, [(told, label not in down) for label, told in labels.items()]
    if beside := bfd_ends(scrape.fabric):
        yield f.BFD, [(told, label not in dead) for label, told in labels.items() if label in beside]


_WELL = Mux.COLLECTING_DISTRIBUTING.value


def _ends(links: Iterable[Link]) -> Iterator[tuple[Link, Port]]:
    for link in links:
        yield from ((link, link.lower), (link, link.upper))


def _port(scrape: Scrape, link: Link, end: Port) -> tuple[str, ...]:
    direction = "up" if end is link.lower else "down"
    return scrape.lab, end.node, end.name, link.kind.value, direction, str(link.plane), _rail(scrape.fabric, link)


def _rail(fabric: Fabric, link: Link) -> str:
    """Return the rail of the link's NIC, or of its ToR if that serves one rail only; else ''."""
    if link.kind is LinkKind.ACCESS:
        return str(fabric.nic_of_link(link.name).rail)
    return _number(fabric.node(link.lower.node).rail)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
