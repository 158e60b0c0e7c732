"""Figures about ports: queues and the balance of the ports towards a NIC. Pure."""

from __future__ import annotations

from failover.analysis.budget import around
from failover.analysis.model import DrillMetrics
from failover.analysis.ports import NicBalance
from scenarios.expect.asked import Asked
from scenarios.expect.evidence import from_metrics
from scenarios.expect.figure import Figure
from scenarios.expect.metric import Metric, Needs, Slowed, Takes, Traffic, Unit

_NO_SAMPLES = Figure(None, "no port was sampled")


def _queue_p99(_expectation: Asked, metrics: DrillMetrics) -> Figure:
    """The 99th percentile of the readings of a port's queue, ms at its rate, at the port where it is longest."""
    if metrics.ports is None or not metrics.ports.ports:
        return _NO_SAMPLES
    worst = max(metrics.ports.ports, key=lambda port: port.queue_p99_ms)
    within = around(worst.queue_p99_ms, worst.p99_uncertainty_ms)
    return Figure(worst.queue_p99_ms, f"{worst.port}: {worst.readings} readings", *within)


def _queue_worst(_expectation: Asked, metrics: DrillMetrics) -> Figure:
    """The longest queue that was read, ms at its port's rate; between two readings it may have been longer.

    A queue drains by 1 ms in 1 ms: what it was before a reading is less than the reading and the time up to it.
    """
    if metrics.ports is None or not metrics.ports.ports:
        return _NO_SAMPLES
    worst = max(metrics.ports.ports, key=lambda port: port.queue_max_ms)
    dropped = f", {worst.drops} packets dropped" if worst.drops else ""
    evidence = f"{worst.port}: {worst.queue_max_bytes} bytes{dropped}"
    return Figure(worst.queue_max_ms, evidence, worst.queue_max_ms, worst.queue_max_ms + metrics.ports.longest_pause_ms)


def _port_imbalance(_expectation: Asked, metrics: DrillMetrics) -> Figure:
    """The busiest port towards a NIC over the least busy one, for the NIC where they differ most."""
    balance = metrics.ports.balance if metrics.ports is not None else ()
    if not balance:
        return _NO_SAMPLES
    idle = [nic for nic in balance if nic.ratio is None]
    known: list[tuple[float, NicBalance]] = [(nic.ratio, nic) for nic in balance if nic.ratio is not None]
    ratio, worst = max(known, key=lambda found: found[0], default=(1.0, idle[0] if idle else balance[0]))
    if idle:
        return Figure(ratio, f"{idle[0].nic}: a port sent nothing", open_ended=True)
    loads = " and ".join(f"{bps / 1e6:.4g} Mbit/s" for bps in worst.bps)
    return Figure(ratio, f"{worst.nic}: {loads}", *around(ratio, worst.uncertainty))


def _port_load(_expectation: Asked, metrics: DrillMetrics) -> Figure:
    """What the busiest sampled port carried, % of its rate, from the first reading to the last."""
    if metrics.ports is None or not metrics.ports.ports:
        return _NO_SAMPLES
    busiest = max(metrics.ports.ports, key=lambda port: port.load)
    return Figure(100 * busiest.load, f"{busiest.port}: {busiest.sent_packets} packets")


def _tail_drops(_expectation: Asked, metrics: DrillMetrics) -> Figure:
    """Packets for which the queue of a sampled port had no room."""
    if metrics.ports is None or not metrics.ports.ports:
        return _NO_SAMPLES
    worst = max(metrics.ports.ports, key=lambda port: port.drops)
    return Figure(sum(port.drops for port in metrics.ports.ports), f"{worst.port}: {worst.drops}")


def _packets_marked(_expectation: Asked, metrics: DrillMetrics) -> Figure:
    """Packets that sampled ports marked."""
    counting = [port for port in metrics.ports.ports if port.marked is not None] if metrics.ports is not None else []
    if not counting:
        return Figure(None, "nothing marks at the sampled ports; write ecn in the topology")
    worst = max(counting, key=lambda port: port.marked or 0)
    return Figure(sum(port.marked or 0 for port in counting), f"{worst.port}: {worst.marked}")


METRICS = (
    Metric(
        "queue_p99",
        Unit.MS,
        Takes.NOTHING,
        Slowed.STRETCHED,
        Needs(Traffic.EITHER, samples=True),
        "99th percentile of the readings of a port's queue, whole record, at the sampled port where it is longest",
        from_metrics(_queue_p99),
    ),
    Metric(
        "queue_worst",
        Unit.MS,
        Takes.NOTHING,
        Slowed.STRETCHED,
        Needs(Traffic.EITHER, samples=True),
        "the longest queue that was read at any sampled port",
        from_metrics(_queue_worst),
    ),
    Metric(
        "port_load",
        Unit.SHARE,
        Takes.NOTHING,
        Slowed.NOT,
        Needs(Traffic.EITHER, samples=True),
        "what the busiest sampled port carried of its rate, whole record",
        from_metrics(_port_load),
    ),
    Metric(
        "tail_drops",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.PER_PACKET,
        Needs(Traffic.EITHER, samples=True),
        "packets for which the queues of the sampled ports had no room",
        from_metrics(_tail_drops),
    ),
    Metric(
        "packets_marked",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.PER_PACKET,
        Needs(Traffic.EITHER, samples=True),
        "packets that the sampled ports marked (ECN)",
        from_metrics(_packets_marked),
    ),
    Metric(
        "port_imbalance",
        Unit.RATIO,
        Takes.NOTHING,
        Slowed.NOT,
        Needs(Traffic.EITHER, samples=True, two_ports=True),
        "load of a NIC's ports as the switches send to them, the busiest over the least busy, before the first fault;"
        " the NIC where it is largest",
        from_metrics(_port_imbalance),
    ),
)
