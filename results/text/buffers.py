"""Buffers of switches for the terminal and pages: the classes at ports that stopped others or dropped. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table

from hpn.failover.analysis.buffers import ClassUse, of_note
from hpn.failover.analysis.pause_cycles import deadlock
from hpn.failover.analysis.phrases import plain
from hpn.results.text.tables import table

_MOST = 8  # classes; the others are in buffers.json
_NOTHING = "no port stopped its neighbour, dropped or trimmed"
_FIGURES: Sequence[tuple[str, Callable[[ClassUse], int], float]] = (
    (">stopped others, ms", lambda each: each.pausing_ns, 1e6),
    (">was stopped, ms", lambda each: each.paused_ns, 1e6),
    (">XOFF sent", lambda each: each.xoff_sent, 1),
    (">storms", lambda each: each.storms, 1),
    (">dropped", lambda each: each.drops, 1),
    (">by headroom", lambda each: each.headroom_drops, 1),
    (">by watchdog", lambda each: each.storm_drops, 1),
    (">trimmed", lambda each: each.trimmed, 1),
    (">marked", lambda each: each.marked, 1),
    (">held, KB", lambda each: each.held_max_bytes, 1e3),
    (">headroom, KB", lambda each: each.headroom_max_bytes, 1e3),
    (">queue, KB", lambda each: each.queue_max_bytes, 1e3),
)
"""Columns, each with its counter and what that is divided by; one that is zero in all rows is left out."""


def buffer_rows(found: Sequence[ClassUse]) -> tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return title, columns and rows of the classes that stopped others or dropped, at most eight."""
    noted = of_note(found)
    shown = noted[:_MOST]
    told = [figure for figure in _FIGURES if any(figure[1](each) for each in shown)]
    ring = deadlock(found)
    stands = f"; deadlock at the end: {' waits for '.join((*ring, ring[0]))}" if ring else ""
    others = len(noted) - len(shown)
    more = f"; {others} more {'is' if others == 1 else 'are'} in buffers.json" if others else ""
    what = "ports that stopped others, dropped or trimmed, most first; sizes are the most at a time"
    title = f"buffers ({what}{more}{stands})"
    rows = ((each.port, str(each.priority), *(_cell(count(each), unit) for _, count, unit in told)) for each in shown)
    return title, ("port", "priority", *(name for name, _, _ in told)), tuple(rows)


def _cell(count: int, unit: float) -> str:
    return f"{count:,}" if unit == 1 else plain(count / unit, 4)


def buffers_table(found: Sequence[ClassUse]) -> Table:
    """Return these rows as a table for the terminal."""
    title, columns, rows = buffer_rows(found)
    return table(title, columns, rows, 2) if rows else table("buffers", ("port",), (), empty=f"buffers: {_NOTHING}")
