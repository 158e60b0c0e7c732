"""Figures about ports: queues and the balance of the ports towards a NIC. Pure."""

from __future__ import annotations

from collections.abc import Callable

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import packets, plain
from hpn.failover.analysis.ports import NicBalance, PortMetrics
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure, longest_of, lower_bound
from hpn.scenarios.expect.metric import (
    QUEUES_ONLY,
    WHOLE_RECORD,
    Lack,
    Larger,
    Metric,
    Needs,
    Slowed,
    Takes,
    Traffic,
    Unit,
)
from hpn.scenarios.expect.selection import Selection

_NO_SAMPLES = Figure(None, "no port was sampled")
_NOTHING_SENT = Figure(None, "no sampled port sent anything")


def _of_ports(measure: Callable[[PortMetrics], Figure]) -> Callable[[Selection, DrillMetrics], Figure]:
    """Return a measurement that requires sampled ports with traffic."""

    def measured(_expectation: Selection, metrics: DrillMetrics) -> Figure:
        found = metrics.ports
        if found is None or not found.ports:
            return _NO_SAMPLES
        busy = any(port.sent_packets or port.drops or port.queue_max_bytes for port in found.ports)
        return measure(found) if busy else _NOTHING_SENT

    return measured


def _queue_p99(found: PortMetrics) -> Figure:
    """Return the 99th percentile of queue readings in ms at the port's rate, for the port with the longest queue."""
    worst = max(found.ports, key=lambda port: port.queue_p99_ms)
    within = around(worst.queue_p99_ms, worst.p99_uncertainty_ms)
    return Figure(worst.queue_p99_ms, f"{worst.port}: {worst.readings:,} readings", *within)


def _queue_worst(found: PortMetrics) -> Figure:
    """Return the longest queue reading in ms at its port's rate; between two readings it may have been longer.

    A queue drains by 1 ms in 1 ms. So before a reading it was shorter than the reading plus the time up to it.
    """
    worst = max(found.ports, key=lambda port: port.queue_max_ms)
    dropped = f", {packets(worst.drops)} dropped" if worst.drops else ""
    evidence = f"{worst.port}: {worst.queue_max_bytes:,} bytes{dropped}"
    return Figure(worst.queue_max_ms, evidence, worst.queue_max_ms, worst.queue_max_ms + found.longest_pause_ms)


def _port_imbalance(found: PortMetrics) -> Figure:
    """Return the load of the busiest port towards a NIC over the least busy one, for the NIC with the largest ratio."""
    balance = found.balance
    carrying = [nic for nic in balance if nic.bps[0]]
    if not carrying:
        return _NOTHING_SENT if balance else _NO_SAMPLES
    return longest_of([_imbalance(nic) for nic in carrying])


def _imbalance(nic: NicBalance) -> Figure:
    if nic.ratio is None:
        return lower_bound(1.0, f"{nic.nic}: a port sent nothing", never=True)
    loads = " and ".join(f"{plain(bps / 1e6, 4)} Mbit/s" for bps in nic.bps)
    return Figure(nic.ratio, f"{nic.nic}: {loads}", *around(nic.ratio, nic.uncertainty))


def _port_load(found: PortMetrics) -> Figure:
    """Return the load of the busiest sampled port, in % of its rate, from the first reading to the last."""
    busiest = max(found.ports, key=lambda port: port.load)
    return Figure(100 * busiest.load, f"{busiest.port}: {packets(busiest.sent_packets)}")


def _tail_drops(found: PortMetrics) -> Figure:
    """Return the number of packets dropped because the queue of a sampled port was full."""
    worst = max(found.ports, key=lambda port: port.drops)
    return Figure(sum(port.drops for port in found.ports), f"{worst.port}: {worst.drops:,}")


def _packets_marked(found: PortMetrics) -> Figure:
    """Return the number of packets marked by sampled ports."""
    counting = [port for port in found.ports if port.marked is not None]
    if not counting:
        return Figure(None, "nothing marks at the sampled ports; write ecn in the topology")
    worst = max(counting, key=lambda port: port.marked or 0)
    return Figure(sum(port.marked or 0 for port in counting), f"{worst.port}: {worst.marked:,}")


METRICS = (
    Metric(
        "queue_p99",
        Unit.MS,
        Takes.NOTHING,
        Slowed.STRETCHED,
        Needs(Traffic.EITHER, samples=True),
        "99th percentile of the readings of a port's queue, whole record, at the sampled port where it is longest",
        from_metrics(_of_ports(_queue_p99)),
        larger=Larger.WORSE,
        tells=WHOLE_RECORD,
        unmodelled=QUEUES_ONLY,
    ),
    Metric(
        "queue_worst",
        Unit.MS,
        Takes.NOTHING,
        Slowed.STRETCHED,
        Needs(Traffic.EITHER, samples=True),
        "the longest queue that was read at any sampled port",
        from_metrics(_of_ports(_queue_worst)),
        larger=Larger.WORSE,
        tells=WHOLE_RECORD,
        unmodelled=QUEUES_ONLY,
    ),
    Metric(
        "port_load",
        Unit.SHARE,
        Takes.NOTHING,
        Slowed.NOT,
        Needs(Traffic.EITHER, samples=True),
        "what the busiest sampled port carried of its rate, whole record",
        from_metrics(_of_ports(_port_load)),
        larger=Larger.AS_LIMITED,
        tells=WHOLE_RECORD,
    ),
    Metric(
        "tail_drops",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.PER_PACKET,
        Needs(Traffic.EITHER, samples=True),
        "packets for which the queues of the sampled ports had no room",
        from_metrics(_of_ports(_tail_drops)),
        larger=Larger.WORSE,
        tells=WHOLE_RECORD,
        unmodelled=QUEUES_ONLY,
    ),
    Metric(
        "packets_marked",
        Unit.COUNT,
        Takes.NOTHING,
        Slowed.PER_PACKET,
        Needs(Traffic.EITHER, samples=True),
        "packets that the sampled ports marked (ECN)",
        from_metrics(_of_ports(_packets_marked)),
        larger=Larger.AS_LIMITED,
        tells=WHOLE_RECORD,
        unmodelled=QUEUES_ONLY,
    ),
    Metric(
        "port_imbalance",
        Unit.RATIO,
        Takes.NOTHING,
        Slowed.NOT,
        Needs(Traffic.EITHER, samples=True, two_ports=True),
        "load of a NIC's ports as the switches send to them, the busiest over the least busy, before the first fault;"
        " the NIC where it is largest",
        from_metrics(_of_ports(_port_imbalance)),
        larger=Larger.WORSE,
        tells=dict.fromkeys((Lack.CUT_OFF, Lack.AFTER), "it is of the time before the first fault"),
    ),
)
