"""Expectations of a run: a table for the terminal, and their figures, margins and intervals as text. Pure.

Changes when an expectation is shown otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from hpn.results.judge.verdict import Check
from hpn.results.text.bounds import BELOW_ZERO, NEVER, at_least, at_most
from hpn.results.text.tables import table
from hpn.results.text.values import NONE, rounded_up, span_text, value_text

MEASUREMENT_ERROR = "measurement error"
"""Name of the interval of one run, which is not the spread over runs."""
INTERVAL = f"interval: {MEASUREMENT_ERROR} of this run"


def describe(check: Check) -> str:
    """Return one line: measured, limit, margin, evidence."""
    said = []
    if (measured := measured_text(check)) != NONE:
        said.append(f"measured {measured}")
    if check.limit is not None:
        said.append(f"limit {value_text(check.limit, check.unit)}")
    if (room := margin_text(check)) != NONE:
        said.append(f"margin {room}")
    if within := interval_text(check):
        said.append(f"interval {within}")
    if check.evidence:
        said.append(check.evidence)
    return ", ".join(said) or check.outcome.value


def checks_table(checks: Iterable[Check], how: str = "measured", *, margins: bool = True) -> Table:
    """Return every expectation with figure, interval, limit, margin and evidence.

    ``how``: how the figures came about; ``margins``: of a run, whose intervals are named.
    """
    rows = [
        (
            check.outcome.value,
            check.text,
            measured_text(check),
            interval_text(check),
            NONE if check.limit is None else value_text(check.limit, check.unit),
            *([margin_text(check)] if margins else []),
            check.evidence,
        )
        for check in checks
    ]
    columns = ("", "expectation", f">{how}", ">interval", ">limit", *([">margin"] if margins else []), "evidence")
    caption = f"expectations; {INTERVAL}" if margins and any(row[3] for row in rows) else "expectations"
    return table(caption, columns, rows, keys=2)


def measured_text(check: Check) -> str:
    """Return '20.0 ms', '45' or '-'; a figure below the resolution is an upper bound: '< 0.83 ms'.

    A lower bound is '>= 4428 ms'; an event that never came, without a bound, is 'never'.
    """
    if check.never and not check.measured:
        return NEVER
    if check.measured is None:
        return NONE
    if check.open_ended:
        return at_least(value_text(check.measured, check.unit))
    if check.measured == 0 and check.low == 0 and check.high:
        return f"< {value_text(rounded_up(check.high), check.unit)}"
    return value_text(check.measured, check.unit)


def margin_text(check: Check) -> str:
    """Return '30.0 ms' or '-4'; for a lower bound '<= -4328 ms', or '< 0 ms' if its size is unknown."""
    if check.margin is not None:
        room = value_text(check.margin, check.unit)
        return (at_most if check.is_upper else at_least)(room, open_ended=check.open_ended)
    return f"{BELOW_ZERO} {check.unit}".rstrip() if check.never else NONE


def interval_text(check: Check) -> str:
    """Return the interval of the measured figure, '19.2 to 20.8 ms'; '' if the figure itself has the bound."""
    if not check.uncertainty or check.measured == 0 == check.low or check.low is None or check.high is None:
        return ""
    return span_text(check.low, check.high, check.unit)
