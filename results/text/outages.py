"""Table of the outages of a run, edge by edge, and its notes. Pure.

Changes when an outage is shown otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from hpn.failover.analysis.budget import Interval
from hpn.failover.analysis.model import DrillMetrics, EdgeResult
from hpn.failover.analysis.phrases import flows, number
from hpn.failover.analysis.scattered import scattered
from hpn.failover.analysis.unended import is_median_open, median_or_least_ms, worst_ms
from hpn.results.text.bounds import NEVER, at_least
from hpn.results.text.tables import table
from hpn.results.text.values import NONE, milliseconds, rate, rounded_up

_MARK = "..."


def outages_table(metrics: DrillMetrics) -> Table:
    """Return outages and goodput of every edge."""
    columns = ("edge", ">flows hit", ">lossy", ">worst", ">TBM", ">interval", ">median", ">TBM", ">noise", ">lost")
    goodput = (">goodput before", ">during", ">after")
    rows = [_outage_row(metrics, result) for result in metrics.edges]
    return table("outage in ms = missing / rate (TBM: by time stamps); goodput in bit/s", columns + goodput, rows)


def outage_notes(metrics: DrillMetrics) -> Iterable[Text]:
    """Yield what a reader must know of these outages: which began before, and which are scattered loss."""
    for result in metrics.edges:
        dead = metrics.dead_before(result)
        if 0 < dead < result.flows_hit:
            label = result.edge.label
            yield Text(f"  {label}: {dead} of {flows(result.flows_hit)} that are hit had died before", style="dim")
    gone = [result.edge.label for result in metrics.edges if metrics.all_dead_before(result)]
    if gone:
        yield Text(f"  dead: every flow that is hit had died before: {', '.join(gone[:3])}", style="dim")
    labels = [result.edge.label for result in metrics.edges if metrics.worst_began_before(result)]
    if labels:
        yield Text(f"  {_MARK} the rest of an outage that began before: {', '.join(labels[:3])}", style="dim")
    spread = [result.edge.label for result in metrics.edges if scattered(metrics, (result,)) is not None]
    if spread:
        yield Text(f"  worst, median: all that a flow misses, in many holes: {', '.join(spread[:3])}", style="dim")


def _outage_row(metrics: DrillMetrics, result: EdgeResult) -> Sequence[str]:
    if metrics.all_dead_before(result):
        return _dead_row(metrics, result)
    median_open = is_median_open(result)
    median_ms = median_or_least_ms(metrics, result)
    mark = f"{_MARK} " if metrics.worst_began_before(result) else ""
    return (
        result.edge.label,
        number(result.flows_hit),
        number(result.flows_lossy),
        mark + _worst(result.worst_outage_plbm_ms, metrics, result),
        mark + _worst(result.worst_outage_tbm_ms, metrics, result) if result.flows_lossy else NONE,
        _outage_interval(metrics, result),
        at_least(outage_text(median_ms, result.median_outage_interval_ms), open_ended=median_open),
        at_least(milliseconds(result.median_outage_tbm_ms), open_ended=median_open) if result.flows_lossy else NONE,
        *_rest(metrics, result),
    )


def _dead_row(metrics: DrillMetrics, result: EdgeResult) -> Sequence[str]:
    """Return the row of an edge all of whose flows had died before: they lose nothing, as they send nothing."""
    hit = number(result.flows_hit)
    return (result.edge.label, hit, f"{hit} dead", *[NONE] * 5, *_rest(metrics, result))


def _rest(metrics: DrillMetrics, result: EdgeResult) -> Sequence[str]:
    return (
        milliseconds(metrics.noise.noise_floor_ms),
        number(result.lost),
        rate(result.goodput.before_bps),
        rate(result.goodput.during_bps),
        rate(result.goodput.after_bps),
    )


def _worst(ms: float, metrics: DrillMetrics, result: EdgeResult) -> str:
    """Return '3.32', '>= 5800' as in the expectation, or 'never' if the flow died when the window was over."""
    if result.never_over:
        least_ms = max(ms, worst_ms(metrics, result))
        return at_least(milliseconds(least_ms)) if least_ms else NEVER
    return outage_text(ms, result.worst_outage_interval_ms)


def _outage_interval(metrics: DrillMetrics, result: EdgeResult) -> str:
    """Return the interval of the worst outage.

    '-' for an outage without end, for scattered loss, which is no outage, and for one below the resolution, whose
    figure has the bound itself.
    """
    if result.never_over or metrics.worst_began_before(result) or not result.worst_outage_plbm_ms:
        return NONE
    if scattered(metrics, (result,)) is not None:
        return NONE
    return result.worst_outage_interval_ms.text


def outage_text(ms: float, interval: Interval) -> str:
    """Return '3.32'; an outage that was not seen is shorter than the resolution: '< 0.83'."""
    return f"< {milliseconds(rounded_up(interval.high))}" if ms == 0 and interval.high else milliseconds(ms)
