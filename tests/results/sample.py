"""One drill's results, made from synthetic records, for everything that renders them."""

from __future__ import annotations

from dataclasses import replace

from pydantic import TypeAdapter

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, Settings
from hpn.failover.analysis.port_sampling import Ports
from hpn.failover.analysis.ports import NicBalance, PortMetrics, PortResult
from hpn.results.judge.repeats.repeated import Repeated
from hpn.results.judge.verdict import Verdict, at_least, at_most, decide, holds
from hpn.results.run.manifest import Manifest
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import MS, Dead, S, edge, flow, record

AT = 4 * S
HOST, TOR = "p0.s0.h0", "p0.s0.t0.0"

MANIFEST = Manifest(
    drill="link-down",
    fabric="tiny",
    architecture="hpn",
    command=("hpn", "drill", "run", "link-down"),
    engine="host",
    datapath="nft",
    kernel="6.18.0",
    started_at="2025-01-02T03:04:05+00:00",
    started_ns=S,
    profile="quick",
    duration_s=12.5,
    versions={"hpn": "0.1.0", "bird": "2.0.12"},
    seeds={"fabric": 1},
    doctor={"bonding": "no: nft datapath is used"},
)


def repeats_from(content: bytes) -> tuple[Repeated, ...]:
    """What ``repeats.json`` holds. pydantic.ValidationError when it is something else."""
    return TypeAdapter(tuple[Repeated, ...]).validate_json(content)


LOAD = HostLoad(120, 12, 2, 48, 40, 0, 0, 2, 8, 1.5, 15, 3, 5, 6, 1)

EVENTS = (
    Event(AT, EventKind.FAULT, "", "link", "inject", {"skew_ns": 100_000}),
    Event(AT + MS // 2, EventKind.LINK, HOST, "r0.0", "carrier-down"),
    Event(AT + 2 * MS, EventKind.LAG, HOST, "bond0", "active", {"ports": "r0.1"}),
    Event(AT + 5 * MS, EventKind.ROUTE, TOR, "10.0.0.1/32", "host-route-removed"),
    Event(6 * S + MS, EventKind.LINK, HOST, "r0.0", "carrier-up"),
)


def metrics(outage_ms: int = 20) -> DrillMetrics:
    """Two flows that are hit, one of which loses ``outage_ms``, and one that is not; failure at 4 s, repair at 6 s."""
    flows = [flow(0), flow(1, src="p0.s0.h1.r0", dst="p0.s0.h0.r0"), flow(2, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")]
    records = record(flows[0], 9 * S, [Dead(AT, AT + outage_ms * MS)], jitter_ns=2 * MS)
    records = records + record(flows[1], 9 * S) + record(flows[2], 9 * S)
    edges = [edge(AT, 6 * S), edge(6 * S, 10 * S, EdgeKind.REPAIR)]
    return analyse(flows, *records.tables, EVENTS, edges, (S, 3 * S), Settings(validation_s=1), LOAD)


def ports() -> PortMetrics:
    """A ToR's port towards a NIC that drops, one that does not, and an uplink."""
    tor, nic, rate = "p0.s0.t0.0", "p0.s0.h0.r0", 200_000_000
    full = PortResult(
        f"{tor}:h0r0", f"{nic}.0", "tor down", nic, rate, 500, 0.99, 25_000_000, 6000, 42,
        400_000.0, 498_480, 498_480, 16.0, 19.94, 19.94, 0.5,
    )  # fmt: skip
    calm = replace(
        full,
        port="p0.s0.t0.1:h0r0",
        link=f"{nic}.1",
        load=0.4,
        drops=0,
        queue_mean_ms=0.01,
        queue_p99_ms=0.2,
        queue_max_ms=0.5,
    )
    uplink = replace(calm, port=f"{tor}:up0", link=f"{tor}-p0.a0.0", tier="tor up", nic=None)
    balance = (NicBalance(nic, (198e6, 80e6), (6000, 2400)), NicBalance("p0.s1.h0.r0", (90e6, 90e6), (2700, 2700)))
    return PortMetrics(2.0, Ports.SWITCHES, 3.24, 0.8, (full, calm, uplink), balance)


_IDLE = ClassUse("", False, "", "", 3, *(0,) * 19, *(False,) * 3)


def class_use(port: str, priority: int = 3, **counted: int | str) -> ClassUse:
    """A class at a port, a switch's if its name says ToR, that sent 100 packets, and counted that."""
    node = port.partition(":")[0]
    found = replace(_IDLE, node=node, is_switch="t" in node, port=port, priority=priority, sent_packets=100)
    return replace(found, **counted)  # type: ignore[arg-type]  # fields


def buffers() -> tuple[ClassUse, ...]:
    """A ToR stops two neighbours, one of which drops what headroom had no room for; a host is stopped."""
    tor = "p0.s0.t0.0"
    return (
        class_use(f"{tor}:h0r0", sent_bytes=420_000, queue_max_bytes=361_398, xoff_received=1),
        class_use(
            f"{tor}:h1r0",
            pausing_ns=4_500_000_000,
            xoff_sent=321,
            xon_sent=320,
            held_max_bytes=180_000,
            headroom_max_bytes=12_600,
        ),
        class_use(f"{tor}:up0", pausing_ns=1_500_000, xoff_sent=12, headroom_drops=7, headroom_max_bytes=16_800),
        class_use(f"{tor}:h1r0", 1, marked=2, trimmed=3, drops=5, queue_max_bytes=1_000_000),
        class_use("p0.s0.h1:r0.0", paused_ns=4_400_000_000, xoff_received=321, xon_received=320, paused=True),
        class_use("p0.s0.h1:r0.0", 7),
    )


def verdict(found: DrillMetrics, *reasons: str) -> Verdict:
    """Expectations of each outcome, held against ``found``."""
    worst = found.edges[0]
    hit = next(nic.goodput for nic in worst.nics if (nic.nic, nic.direction) == ("p0.s0.h0.r0", "up"))
    share = 100 * hit.during_bps / hit.before_bps
    return decide(
        (
            at_most(
                "worst outage at failure below 50 ms",
                worst.worst_outage_plbm_ms,
                50,
                unit="ms",
                low=worst.worst_outage_interval_ms.low,
                high=worst.worst_outage_interval_ms.high,
                evidence=f"{worst.worst_flow}",
            ),
            at_least("goodput during at least 45 % of before", share, 45, unit="%", evidence="p0.s0.h0.r0 up"),
            at_most("queue pair deaths at most 0", 0, 0),
            holds("state restored", True, evidence="links, LACP, BGP and routes as before"),
        ),
        reasons,
    )


def other_run(found: DrillMetrics, worst_ms: float) -> DrillMetrics:
    """The same run with another worst outage at its first edge."""
    first = found.edges[0]
    within = around(worst_ms, found.noise.noise_floor_ms)
    other = replace(first, worst_outage_plbm_ms=worst_ms, worst_outage_interval_ms=within)
    return replace(found, edges=(other, *found.edges[1:]))
