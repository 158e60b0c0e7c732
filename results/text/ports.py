"""Samples of ports for the terminal: loads, queues, and the NIC with the most uneven ports. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from rich.table import Table

from hpn.failover.analysis.phrases import plain
from hpn.failover.analysis.ports import PortMetrics, PortResult
from hpn.results.text.tables import table

_COLUMNS = ("ports", ">count", ">load", ">most", ">queue", ">p99", ">worst", ">bytes", "of port", ">marked", ">dropped")
_COURSE = ("port", ">marked", ">of all", ">dropped", ">from", ">to", "most at once")
_MOST = 8  # ports; the others are in ports.json


def ports_table(found: PortMetrics) -> Table:
    """Return one line per tier: mean and largest load, mean queue, and the p99 and longest queue of any port."""
    tiers: dict[str, list[PortResult]] = {}
    for port in found.ports:
        tiers.setdefault(port.tier, []).append(port)
    title = (
        f"ports (load of the port's rate; queue in ms at that rate, read every {found.period_ms:g} ms, pauses up to "
        f"{plain(found.longest_pause_ms)} ms)"
    )
    return table(title, _COLUMNS, (_row(tier, ports) for tier, ports in tiers.items()))


def _row(tier: str, ports: Sequence[PortResult]) -> Sequence[str]:
    worst = max(ports, key=lambda port: port.queue_max_ms)
    return (
        tier,
        str(len(ports)),
        f"{fmean(port.load for port in ports):.1%}",
        f"{max(port.load for port in ports):.1%}",
        f"{fmean(port.queue_mean_ms for port in ports):.2f}",
        f"{max(port.queue_p99_ms for port in ports):.2f}",
        f"{worst.queue_max_ms:.2f}",
        f"{worst.queue_max_bytes:,}",
        worst.port,
        _marked(ports),
        f"{sum(port.drops for port in ports):,}",
    )


def _marked(ports: Sequence[PortResult]) -> str:
    known = [port.marked for port in ports if port.marked is not None]
    return f"{sum(known):,}" if known else "-"


def course_table(found: PortMetrics) -> Table | None:
    """Return the ports that marked or dropped, the busiest first, with times; None if there are none."""
    busy = sorted((port for port in found.ports if port.course), key=lambda port: -(port.marked or 0) - port.drops)
    if not busy:
        return None
    start_ns = min(port.since_ns for port in busy)
    title = "ports that marked or dropped (s since sampling began; most of either in 100 ms)"
    return table(title, _COURSE, (_when(port, start_ns) for port in busy[:_MOST]))


def _when(port: PortResult, start_ns: int) -> Sequence[str]:
    first, last = port.course[0], port.course[-1]
    worst = max(port.course, key=lambda moment: (moment.marked + moment.drops, -moment.begin_ns))
    return (
        port.port,
        "-" if port.marked is None else f"{port.marked:,}",
        "-" if not port.marked else f"{port.marked / max(port.sent_packets + port.drops, 1):.1%}",
        f"{port.drops:,}",
        f"{(first.begin_ns - start_ns) / 1e9:.1f}",
        f"{(last.begin_ns - start_ns) / 1e9 + 0.1:.1f}",
        f"{worst.marked:,} + {worst.drops:,} at {(worst.begin_ns - start_ns) / 1e9:.1f}",
    )


def balance_lines(found: PortMetrics) -> Iterable[str]:
    """Yield the imbalance between the ports towards one NIC, and the cost of sampling."""
    ratios = [(nic.ratio, nic.nic) for nic in found.balance if nic.ratio is not None]
    if ratios:
        ratio, nic = max(ratios, key=lambda found: found[0])
        middle = median(ratio for ratio, _ in ratios)
        yield f"ports towards one NIC before the first fault: {ratio:.3f} x at most ({nic}), median {middle:.3f} x"
    if found.cpu_ms_per_sample:
        yield f"sampling: {plain(found.cpu_ms_per_sample)} ms of CPU for one reading of {len(found.ports)} ports"
