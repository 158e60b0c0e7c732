"""Evidence for differences, for terminal and page: interval, effect size, test, runs needed. Pure.

Changes when evidence has another column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType

from hpn.failover.analysis.phrases import plain
from hpn.results.text.bounds import at_least, at_most
from hpn.results.text.comparison import Sheet, name_of
from hpn.results.text.tables import table
from hpn.results.text.values import span_text

if TYPE_CHECKING:  # imports numpy
    from hpn.results.comparison.science import DifferenceEvidence

UNKNOWN, NOT_TESTED = "not determined", "not tested"
_RATIO, _LEAST_P, _PERCENT = "x", 0.001, "%"
_MOST_RUNS = 1000
"""Same as ``comparison.power.MOST_RUNS``."""


def evidence_parts(found: Sequence[DifferenceEvidence]) -> list[RenderableType]:
    """Return the table; nothing without evidence."""
    sheet = evidence_sheet(found)
    return [table(*sheet, sheet.keys)] if sheet.rows else []


def _test(of: DifferenceEvidence) -> str:
    """Return the test; for a difference that no run resolves, that its p says nothing."""
    told = of.test if of.exact else f"{of.test}, approximate"
    return told if of.resolved else f"{told}; below what a run resolves"


def evidence_sheet(found: Sequence[DifferenceEvidence]) -> Sheet:
    """Return a row for every figure, with the group if there are several."""
    several = len({each.group for each in found}) > 1
    rows = tuple(
        (
            *([each.group] if several else []),
            ", also ".join(map(name_of, each.keys)),
            f"{each.pairs} pairs" if each.pairs else f"{each.runs[0]}, {each.runs[1]}",
            span_of(each.median.low, each.median.high, each.key.unit),
            interval_text(each),
            span_of(each.delta.low, each.delta.high, ""),
            p_text(each.p),
            p_text(each.holm) if each.resolved else NOT_TESTED,
            _test(each),
            _more(each),
        )
        for each in found
    )
    columns = (
        *(["group"] if several else []),
        *("figure", ">runs", ">median difference", ">95 % interval", ">Cliff's delta"),
        *(">p", ">p (Holm)", "test", ">more runs for 80 % power"),
    )
    return Sheet("tests; pairs: by phase and seed; more runs: for the Hodges-Lehmann shift", columns, rows)


def interval_text(of: DifferenceEvidence) -> str:
    """Return the 95 % interval of the median difference, or the reason why there is none."""
    if of.median_interval is None:
        return "degenerate" if of.degenerate else "too few"
    return span_of(of.median_interval.low, of.median_interval.high, of.key.unit)


def span_of(low: float, high: float, unit: str) -> str:
    """Return a difference that lies between two values, each of which may be infinite.

    That of shares is in points, and that of ratios has no unit: '-1.75 x better' would be a factor.
    """
    if math.isinf(low):
        return UNKNOWN if math.isinf(high) else at_most(_signed(high, unit))
    if math.isinf(high):
        return at_least(_signed(low, unit))
    shown = span_text(low, high, "" if unit == _RATIO else unit, signed=True)
    return f"{shown.removesuffix(_PERCENT)}points" if unit == _PERCENT else shown


def _signed(value: float, unit: str) -> str:
    return span_of(value, value, unit)


def p_text(chance: float | None) -> str:
    """Return a probability with two digits."""
    if chance is None:
        return UNKNOWN
    return f"< {_LEAST_P}" if chance < _LEAST_P else plain(chance, 2)


def _more(of: DifferenceEvidence) -> str:
    if of.more_runs is None or of.to_tell is None:
        return ""
    if not of.more_runs:
        return "enough"
    runs = f"about {of.more_runs}" if of.more_runs <= _MOST_RUNS else f"more than {_MOST_RUNS:,}"
    asked = span_text(of.to_tell, of.to_tell, of.key.unit)
    return f"{runs} for {asked}" if asked.split()[0].strip("0.") else runs
