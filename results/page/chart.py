"""Line charts of the page: geometry for SVG, numbers for uPlot, rows for a table. Pure.

Changes when a chart shows something else. The SVG needs no script. Where scripts may run, uPlot replaces it with the
same numbers, so that readers can zoom.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hpn.results.page.axis import Linear, Tick, linear, number_text

MOST_POINTS = 600
"""Maximum points of a line: pages stay small, and screens have few more columns."""
_LABEL_ROWS, _LABEL_PCT = 4, 1.3
"""Text rows above a chart for names of moments; width of a character on a narrow screen, in per cent of the chart."""
_LONGEST = 200  # characters of a name
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "1 4", "12 4")
"""Dash patterns distinguish lines without colours."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line; None in ``ys`` is a gap."""

    name: str
    ys: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Moment:
    """A vertical mark, such as a fault."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A moment on the x axis; ``row``: text row above the chart, None if there is no room."""

    at_pct: float
    text: str
    row: int | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A line in SVG: points in a box of 1000 x 1000, y downwards."""

    name: str
    path: str
    dash: str
    number: int  # of its colour, from 1


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of lines; ``xs`` ascend.

    ``group``: charts of one group are zoomed together; ``aligned`` gives them one x axis. ``y_ends``: further values
    that the y axis must contain, such as those of adjacent charts.
    """

    id: str
    title: str
    x_label: str
    y_label: str
    xs: Sequence[float]
    lines: tuple[Line, ...]
    moments: tuple[Moment, ...] = ()
    steps: bool = False  # a value holds until the next
    group: str = ""
    x_ends: tuple[float, float] | None = None  # None: where the data end
    y_ends: tuple[float, float] = (0.0, 0.0)

    @property
    def x_axis(self) -> Linear:
        """Horizontal axis: it ends with the data, or with those of charts that it is aligned with."""
        ends = self.x_ends or ((self.xs[0], self.xs[-1]) if self.xs else (0.0, 1.0))
        return Linear(*ends) if ends[1] > ends[0] else linear(*ends)

    @property
    def y_axis(self) -> Linear:
        """Vertical axis: it starts at 0, or lower for negative values."""
        low, high = self.reach
        return linear(low, high) if low < high else linear(0.0, 1.0)

    @property
    def reach(self) -> tuple[float, float]:
        """Minimum and maximum of the y axis."""
        values = [y for line in self.lines for y in line.ys if y is not None and math.isfinite(y)]
        return min(0.0, self.y_ends[0], *values), max(0.0, self.y_ends[1], *values)

    @property
    def x_ticks(self) -> tuple[Tick, ...]:
        """Values labelled below the chart."""
        return self.x_axis.ticks(7)

    @property
    def y_ticks(self) -> tuple[Tick, ...]:
        """Values labelled at the left of the chart."""
        return self.y_axis.ticks(5)

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """Lines in SVG."""
        return tuple(
            Drawn(line.name, self._path(line), _DASHES[at % len(_DASHES)], at % len(_DASHES) + 1)
            for at, line in enumerate(self.lines)
        )

    @property
    def placed(self) -> tuple[Placed, ...]:
        """Moments within the x axis, each with the lowest text row above the chart that has room."""
        taken, found, axis = [0.0] * _LABEL_ROWS, [], self.x_axis
        for each in self.moments:
            if not axis.low <= each.at <= axis.high:
                continue
            at_pct = axis.at(each.at)
            wide = _LABEL_PCT * (len(each.text) + 1)
            left = min(at_pct, 100 - wide)
            row = next((row for row, end in enumerate(taken) if end <= left), None)
            if row is not None:
                taken[row] = left + wide
            found.append(Placed(at_pct, each.text, row))
        return tuple(found)

    @property
    def label_rows(self) -> int:
        """Number of text rows above the chart."""
        return max((each.row + 1 for each in self.placed if each.row is not None), default=0)

    @property
    def data(self) -> str:
        """Input of uPlot, as JSON that no HTML parser can mistake for markup."""
        columns = [self.xs, *(line.ys for line in self.lines)]
        told = {
            "lines": [line.name[:_LONGEST] for line in self.lines],
            "dashes": [each.dash for each in self.drawn],
            "x": self.x_label,
            "y": self.y_label,
            "steps": self.steps,
            "group": self.group,
            "moments": [[each.at, each.text[:_LONGEST]] for each in self.moments],
            "ends": [self.x_axis.low, self.x_axis.high],
            "reach": [_short(each) for each in self.reach],
            "columns": [[None if y is None else _short(y) for y in column] for column in columns],
        }
        return json.dumps(told, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

    def rows(self, most: int = 60) -> tuple[tuple[str, ...], ...]:
        """Return the rows of the chart's table: every value if there are few, else evenly spaced ones."""
        every = max(math.ceil(len(self.xs) / most), 1)
        return tuple(
            (number_text(self.xs[at]), *("" if (y := line.ys[at]) is None else number_text(y) for line in self.lines))
            for at in range(0, len(self.xs), every)
        )

    def _path(self, line: Line) -> str:
        """Return the SVG path in whole units of the box; a constant stretch is one line."""
        x_axis, y_axis, said, pen, last = self.x_axis, self.y_axis, [], "M", 0
        level = ""  # the end of a level stretch that is not drawn yet
        for x, y in zip(self.xs, line.ys, strict=True):
            if y is None:
                said.append(level)
                pen, level = "M", ""
                continue
            right, down = round(10 * x_axis.at(x)), 1000 - round(10 * y_axis.at(y))
            if pen == "L" and down == last:
                level = f"L{right} {down}"
                continue
            said.append(level)
            if self.steps and pen == "L":
                said.append(f"L{right} {last}")
            said.append(f"{pen}{right} {down}")
            pen, last, level = "L", down, ""
        said.append(level)
        return "".join(said)


def _short(value: float) -> float | int:
    """Round to five digits: more cannot be read off a chart."""
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded


def aligned(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """Return the charts, those of each group with one x axis that contains the data of all of them."""
    ends = {
        group: (min(each.xs[0] for each in of), max(each.xs[-1] for each in of))
        for group in {each.group for each in charts if each.group}
        if (of := [each for each in charts if each.group == group and each.xs])
    }
    return tuple(replace(each, x_ends=ends.get(each.group)) for each in charts)


def thinned(xs: Sequence[float], lines: Sequence[Line]) -> tuple[Sequence[float], tuple[Line, ...]]:
    """Return as many points as a screen can show: the mean of each stretch if there are more."""
    every = math.ceil(len(xs) / MOST_POINTS)
    if every <= 1:
        return xs, tuple(lines)
    starts = range(0, len(xs), every)
    return [xs[at] for at in starts], tuple(
        Line(line.name, [_mean(line.ys[at : at + every]) for at in starts]) for line in lines
    )


def _mean(ys: Sequence[float | None]) -> float | None:
    there = [y for y in ys if y is not None]
    return sum(there) / len(there) if there else None
