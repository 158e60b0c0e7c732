"""Queues of a lab's ports for the terminal: of the 24 counters of a class, those that people look at. Pure.

Changes when ``testbed.lab.service.inspect`` tells something else of a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.table import Table

from hpn.failover.analysis.phrases import plain
from hpn.results.text.tables import table

_Row = Mapping[str, object]
_KEYS = {"node": "node", "port": "port", "class": "priority"}
_FIGURES: Sequence[tuple[str, Callable[[_Row], float | None]]] = (
    ("queue", lambda row: _of(row, "queue")),
    ("most", lambda row: _of(row, "queue_max")),
    ("headroom", lambda row: _of(row, "headroom_max")),
    ("sent", lambda row: _of(row, "sent_packets")),
    ("drops", lambda row: _of(row, "drops", "headroom_drops", "storm_drops")),
    ("trims", lambda row: _of(row, "trims")),
    ("marks", lambda row: _of(row, "marks")),
    ("XOFF in", lambda row: _of(row, "rx_xoff")),
    ("paused ms", lambda row: _ms(row, "paused_ns")),
    ("XOFF out", lambda row: _of(row, "tx_xoff")),
    ("pausing ms", lambda row: _ms(row, "pausing_ns")),
    ("storms", lambda row: _of(row, "storms")),
)
"""Columns; one without a figure, or with zeros alone, is left out."""


def queues_table(title: str, rows: object, empty: str) -> Table:
    """Return one line for each queue of ``hpn inspect queues``, since its port was made.

    Queue, its most and the most in headroom are bytes; the other columns without a unit count packets and events.
    """
    found = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, Sequence) else []
    told = [(name, of) for name, of in _FIGURES if any(of(row) for row in found)]
    cells = [(*(_key(row, key) for key in _KEYS.values()), *(_cell(of(row)) for _, of in told)) for row in found]
    unit = " (queue, most, headroom: bytes; paused: stopped by the neighbour; pausing: stops it)" if found else ""
    return table(title + unit, (*_KEYS, *(f">{name}" for name, _ in told)), cells, len(_KEYS), empty=empty)


def _key(row: _Row, key: str) -> str:
    found = row.get(key)
    return "-" if found is None else str(found)


def _of(row: _Row, *names: str) -> float | None:
    """Return the sum of counters; None if the row has none of them."""
    found = [value for name in names if isinstance(value := row.get(name), int)]
    return sum(found) if found else None


def _ms(row: _Row, name: str) -> float | None:
    found = _of(row, name)
    return None if found is None else found / 1e6


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else plain(value, 4)
