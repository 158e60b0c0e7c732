"""Charts over time of one run per compared group, side by side on common axes.

Changes when charts of groups are arranged in another way. The run shown is that of the lowest phase that all groups
have, so that faults come at the same time; else the group's first. Reads run folders; imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.results.comparison.groups import Compared, Group
from hpn.results.page.chart import Chart
from hpn.results.page.page import charts_of
from hpn.results.run.reading import read
from hpn.testbed.errors import InputError, MachineError

_MOST_GROUPS = 4
_OF_THE_MACHINE = "host"
"""The machine's chart, which says nothing about the comparison."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """One chart of each group that has it."""

    title: str
    charts: Sequence[Chart]


def beside(groups: Sequence[Group]) -> tuple[SideBySide, ...]:
    """Return a row for each chart of the first groups; nothing for a single group, or if folders lack the data."""
    shown = [group for group in groups[:_MOST_GROUPS] if group.runs]
    if len(shown) < 2:
        return ()
    runs = _alike(shown)
    found = [_charts(run) for run in runs]
    alike = len({run.manifest.phase for run in runs}) == 1
    names = [
        group.label if alike else f"{group.label}, phase {run.manifest.phase}"
        for group, run in zip(shown, runs, strict=True)
    ]
    rows = []
    for id_ in dict.fromkeys(chart.id for charts in found for chart in charts):
        of = [(at, chart) for at, charts in enumerate(found) for chart in charts if chart.id == id_]
        made = [replace(chart, id=f"{id_}-{at}", title=names[at]) for at, chart in of]
        rows.append(SideBySide(of[0][1].title, tuple(_on_one(made))))
    return tuple(rows)


def _alike(groups: Sequence[Group]) -> list[Compared]:
    """Return one run of each group, of the same phase if they share any."""
    phases = set.intersection(*({run.manifest.phase for run in group.runs} for group in groups))
    least = min(phases, default=None)
    return [next((run for run in group.runs if run.manifest.phase == least), group.runs[0]) for group in groups]


def _charts(run: Compared) -> Sequence[Chart]:
    try:
        return [chart for chart in charts_of(read(Path(run.folder))) if chart.id != _OF_THE_MACHINE]
    except (InputError, MachineError):  # its figures are shown without charts
        return ()


def _on_one(charts: Sequence[Chart]) -> Iterator[Chart]:
    """Yield the charts with one x axis, and with one y axis if they share the unit."""
    x_axes = [chart.x_axis for chart in charts]
    ends = min(axis.low for axis in x_axes), max(axis.high for axis in x_axes)
    for chart in charts:
        reach = [each.reach for each in charts if each.y_label == chart.y_label]
        yield replace(chart, x_ends=ends, y_ends=(min(low for low, _ in reach), max(high for _, high in reach)))
