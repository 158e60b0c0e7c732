"""Terminal output of the index: runs, and trends with a bar for each run. Pure.

Changes when a list has another column. A bar ends at the figure; '|' is the limit, '-' the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hpn.failover.analysis.phrases import many
from hpn.results.index.queries import Point, RunLine, Trend
from hpn.results.text.bounds import at_least
from hpn.results.text.printable import printable
from hpn.results.text.tables import table
from hpn.results.text.values import span_text, value_text

_NARROWEST, _WIDEST = 10, 40  # columns of a bar
_BESIDE = 48  # columns for a run's date, figure and outcome


def runs_table(found: Sequence[RunLine], empty: str = "") -> Table:
    """Return the table of runs. ``empty``: the text if there are none."""
    columns = ("started", "outcome", "drill", "fabric", "engine", ">s", "why not", "folder")
    rows = (
        (
            run.started_at[:19],
            run.outcome,
            run.drill,
            run.fabric,
            run.engine,
            f"{run.duration_s:.1f}",
            run.why,
            run.path,
        )
        for run in found
    )
    return table("", columns, rows, empty=empty)


def counts_table(found: Iterable[tuple[str, str, int]], empty: str = "") -> Table:
    """Return the number of runs with each outcome, by drill. ``empty``: the text if there are no runs."""
    outcomes = ("pass", "fail", "inconclusive", "none")
    by_drill: dict[str, dict[str, int]] = {}
    for drill, outcome, count in found:
        by_drill.setdefault(drill, {})[outcome] = count
    rows = ((drill, *(str(of.get(outcome, 0)) for outcome in outcomes)) for drill, of in by_drill.items())
    return table("", ("drill", *(f">{outcome}" for outcome in outcomes)), rows, empty=empty)


def trend_parts(trend: Trend, room: int) -> list[RenderableType]:
    """Return the common facts of a trend's runs, and a row with a bar for each run, the oldest first.

    ``room``: width of the terminal.
    """
    points = trend.points
    most = max((value for point in points for value in _values(point) if math.isfinite(value)), default=0.0)
    trusted = [point for point in points if point.trusted]
    values = [point.measured for point in trusted or points]
    unit = points[0].unit
    between = span_text(min(values), max(values), unit)
    left_out = f" ({len(points) - len(trusted)} that cannot be trusted left out)" if len(trusted) < len(points) else ""
    said = f"{many(len(points), 'run')}{left_out}, median {value_text(median(values), unit)}, {between}{_limits(trend)}"
    width = min(max(room - _BESIDE, _NARROWEST), _WIDEST)
    rows = ((point.started_at[:19], _bar(point, most, width), _measured(point), point.said) for point in points)
    shown = table("", ("started", "", ">measured", "the run"), rows)
    return [Text(printable(trend.expectation), style="bold"), *_experiment(trend), Text(f"  {said}"), shown]


def _experiment(trend: Trend) -> Iterable[Text]:
    """Yield the experiment's name if there are several."""
    if trend.apart:
        yield Text(printable(f"  {trend.apart}"))


def _limits(trend: Trend) -> str:
    """Return '; limit: at most 50.0 ms'; for several limits their range, '30.0 to 50.0 ms'."""
    found = sorted({point.limit for point in trend.points if point.limit is not None})
    if not found:
        return ""
    unit = trend.points[0].unit
    text = value_text(found[0], unit) if len(found) == 1 else span_text(found[0], found[-1], unit)
    return f"; limit: {'at most' if trend.is_upper else 'at least'} {text}"


def _measured(point: Point) -> str:
    return at_least(value_text(point.measured, point.unit), open_ended=bool(point.open_ended))


def _bar(point: Point, most: float, width: int) -> str:
    """Return the bar '====--  |   ': the figure, its interval, the limit."""

    def at(value: float) -> int:
        share = value / most if most > 0 and math.isfinite(value) else 0.0
        return round(min(max(share, 0.0), 1.0) * (width - 1))

    cells = [" "] * width
    cells[: at(point.measured) + 1] = "=" * (at(point.measured) + 1)
    if point.low is not None and point.high is not None:
        for place in range(at(point.low), at(point.high) + 1):
            cells[place] = "-"
    cells[at(point.measured)] = "*"
    if point.limit is not None:
        cells[at(point.limit)] = "|"
    return "".join(cells)


def _values(point: Point) -> Iterable[float]:
    return (value for value in (point.measured, point.high, point.limit) if value is not None)
