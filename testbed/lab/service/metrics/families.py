"""Every metric that a running lab exports: name, kind, labels and help text. Pure.

Changes when a lab exports another metric. Names and units follow Prometheus' conventions; Prometheus ignores a label
with an empty value. ``direction`` is that in which a port sends: 'up' from the hosts, 'down' towards them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hpn.testbed.entries import Registry


class Kind(StrEnum):
    """Prometheus' type of a metric."""

    COUNTER = "counter"  # since the lab began; never decreases
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric; ``name`` is the one used in queries."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]


_PORT = ("lab", "node", "port", "tier", "direction", "plane", "rail")
_CLASS = (*_PORT, "priority")  # of labs with lossless switches; a class counts once it was used
_ACCESS = ("lab", "node", "port", "plane", "rail")
_SESSION = ("lab", "node", "port", "neighbour", "plane")

LAB_INFO = Family("hpn_lab_info", Kind.GAUGE, "Always 1; the labels say what the lab is.", ("lab", "fabric", "bgp"))
LAB_START = Family("hpn_lab_start_time_seconds", Kind.GAUGE, "When the lab was started, Unix time.", ("lab",))
BROKEN = Family("hpn_lab_broken_parts", Kind.GAUGE, "Links and switches that were broken by hand.", ("lab",))
SUSPECT = Family(
    *("hpn_locate_suspect", Kind.GAUGE, "1 for each part that hpn locate accuses of loss; 0, of no part, for none."),
    ("lab", "part"),
)
EVENTS = Family(
    *("hpn_events_total", Kind.COUNTER, "What has happened in the lab: its timeline, counted."),
    ("lab", "kind", "event", "plane"),
)
SWITCH_UP = Family(
    *("hpn_switch_up", Kind.GAUGE, "1 while the switch's BGP daemon runs."), ("lab", "node", "role", "plane", "rail")
)
ROUTES = Family(
    *("hpn_switch_routes_complete", Kind.GAUGE, "1 while the switch has every route to NICs with all next hops."),
    ("lab", "node", "role", "plane", "rail"),
)
CARRIER = Family("hpn_port_carrier", Kind.GAUGE, "1 while the port is up and has carrier.", _PORT)
SPEED = Family("hpn_port_speed_bytes_per_second", Kind.GAUGE, "What the port's token bucket lets through.", _PORT)
SENT_BYTES = Family(
    *("hpn_port_transmit_bytes_total", Kind.COUNTER, "Bytes that left by the port, Ethernet headers included."), _PORT
)
SENT_PACKETS = Family("hpn_port_transmit_packets_total", Kind.COUNTER, "Packets that left by the port.", _PORT)
DROPS = Family("hpn_port_transmit_drops_total", Kind.COUNTER, "Packets that the port's queue dropped.", _PORT)
MARKED = Family(
    *("hpn_port_transmit_marked_packets_total", Kind.COUNTER, "Packets that the port's queue marked (ECN)."), _PORT
)
QUEUE = Family("hpn_port_queue_bytes", Kind.GAUGE, "Bytes that wait at the port.", _PORT)
CLASS_QUEUE = Family("hpn_class_queue_bytes", Kind.GAUGE, "Bytes of one priority that wait at the port.", _CLASS)
CLASS_PACKETS = Family(
    *("hpn_class_transmit_packets_total", Kind.COUNTER, "Packets of one priority that left by the port."), _CLASS
)
CLASS_DROPS = Family(
    *("hpn_class_drops_total", Kind.COUNTER, "Packets of one priority dropped: buffer, headroom or watchdog."),
    (*_CLASS, "cause"),
)
CLASS_TRIMMED = Family(
    *("hpn_class_trimmed_packets_total", Kind.COUNTER, "Packets of one priority cut to their headers."), _CLASS
)
CLASS_MARKED = Family(
    *("hpn_class_marked_packets_total", Kind.COUNTER, "Packets of one priority marked (ECN)."), _CLASS
)
PFC_FRAMES = Family(
    *("hpn_pfc_frames_total", Kind.COUNTER, "PFC frames for one priority: xoff or xon, sent or received."),
    (*_CLASS, "frame", "way"),
)
PFC_PAUSE = Family(
    *("hpn_pfc_pause_seconds_total", Kind.COUNTER, "Time of pauses: received, the port stood; sent, its neighbour."),
    (*_CLASS, "way"),
)
PFC_STORMS = Family("hpn_pfc_storms_total", Kind.COUNTER, "Times that the PFC watchdog fired.", _CLASS)
DISTRIBUTING = Family("hpn_lacp_port_distributing", Kind.GAUGE, "1 while LACP uses this end of the link.", _ACCESS)
LACP_PORTS = Family(
    *("hpn_lacp_ports", Kind.GAUGE, "LACP ports by the state of their Mux machine, both ends counted."),
    ("lab", "plane", "state"),
)
LAG_PORTS = Family(
    *("hpn_lag_active_ports", Kind.GAUGE, "Ports that the NIC's LAG uses."), ("lab", "node", "nic", "rail")
)
BGP = Family("hpn_bgp_session_established", Kind.GAUGE, "1 while this end has the BGP session established.", _SESSION)
BFD = Family("hpn_bfd_session_up", Kind.GAUGE, "1 while this end has the BFD session up; where BFD runs.", _SESSION)
SCRAPE = Family(
    *("hpn_scrape_seconds", Kind.GAUGE, "What this scrape took: of the lab's supervisor, of reading all counters."),
    ("lab", "part"),
)

FAMILIES: Registry[Family] = Registry(
    "metric of a lab",
    lambda family: family.name,
    (found for found in tuple(globals().values()) if isinstance(found, Family)),
    of=Family,
)
"""Every family by name."""
