"""Page of a comparison of runs: settings that differ, figures that differ, and every run. Pure.

Changes when a comparison shows something else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.results.comparison.differences import Difference, Finding
from hpn.results.comparison.figures import Key, Summary, Value, values_of
from hpn.results.comparison.groups import Across, Compared, Group
from hpn.results.page.listing import Listing, href
from hpn.results.page.render import rendered
from hpn.results.page.runs import PAGE
from hpn.results.page.sections import Table
from hpn.results.page.side_by_side import SideBySide
from hpn.results.page.strip import Figure, Reading, Strips, Track, charts
from hpn.results.run.filewords import key_in_file, value_in_file
from hpn.results.text.answer import answer
from hpn.results.text.bounds import at_least
from hpn.results.text.comparison import causes_sheet, figures_sheet, groups_sheet, name_of, own_sheet, value_of
from hpn.results.text.evidence import evidence_sheet
from hpn.results.text.values import rounded_up, value_text

if TYPE_CHECKING:
    from hpn.results.comparison.science import DifferenceEvidence

_MOST_FIGURES, _MOST_SETTINGS = 60, 60
_LONE = "There is one group: runs of one drill, fabric, engine, settings and version."
_APART = frozenset({Finding.MORE, Finding.LESS})
_BY_KEY = frozenset({Across.SETTINGS})
"""Shown key by key, and in the table of groups."""
_NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Content of the template, all of it text. ``apart`` and ``alike``: figures that differ, and the others."""

    title: str
    answer: str
    settings: Listing
    groups: Table
    apart: Sequence[Strips]
    alike: Sequence[Strips]
    left_out: int
    beside: Sequence[SideBySide]
    tables: Sequence[Listing]


def comparison_page(
    groups: Sequence[Group],
    found: Sequence[Difference],
    evidence: Sequence[DifferenceEvidence] = (),
    over_time: Sequence[SideBySide] = (),
    page: Path | None = None,
) -> str:
    """Return the page as text, to be written in UTF-8; with a path ``page`` it links to the pages of its runs.

    MachineError when this installation is incomplete.
    """
    view = comparison_view(groups, found, evidence, over_time, page)
    return rendered("comparison.html", view, has_charts=bool(over_time))


def comparison_view(
    groups: Sequence[Group],
    found: Sequence[Difference],
    evidence: Sequence[DifferenceEvidence] = (),
    over_time: Sequence[SideBySide] = (),
    page: Path | None = None,
) -> ComparisonView:
    """Return the content of the page; ``found``: the groups' ``results.comparison.differences``."""
    tested = {(key, each.group) for each in evidence if each.significant for key in each.keys}
    apart = [each for each in found if each.finding in _APART or (each.key, each.group) in tested]
    alike = [each for each in found if each.finding is Finding.NONE_SEEN and each not in apart]
    lacking = [each for each in found if each.finding is Finding.MISSING]
    moved = [each for each in found if each.finding is Finding.START_MOVED]
    sheets = (
        *([own_sheet(groups[0])] if len(groups) == 1 else []),
        figures_sheet("What differs by ranges or tests; medians, ranges over all runs", groups, apart),
        *([causes_sheet(groups, apart, tested)] if apart else []),
        evidence_sheet(evidence),
        figures_sheet("Ranges overlap and no test tells a difference", groups, alike),
        figures_sheet("Not comparable: they count from detect, which differs", groups, moved),
        figures_sheet(f"Not measured by all, but by {groups[0].label}", groups, lacking),
    )
    return ComparisonView(
        title=" against ".join(group.label for group in groups),
        answer=_LONE if len(groups) == 1 else answer(groups, found, evidence),
        settings=_settings(groups),
        groups=Table(*groups_sheet(groups)),
        apart=_strips(groups, apart, page),
        alike=_strips(groups, alike, page),
        left_out=max(len(apart) - _MOST_FIGURES, 0),
        beside=over_time,
        tables=[Listing(*sheet) for sheet in sheets if sheet.rows],
    )


def _settings(groups: Sequence[Group]) -> Listing:
    """Return the settings that differ: one row each, one column per group, with keys as in the files."""
    told = [each.words for each in groups]
    rows = [(str(what), *(group.setting[what] or "-" for group in groups)) for what in Across if what not in _BY_KEY]
    keys = dict.fromkeys(key for each in told for key in each)
    rows += [(key_in_file(key), *(_value(each, key) for each in told)) for key in keys]
    differ = [row for row in rows if len(set(row[1:])) > 1]
    left_out = len(differ) - _MOST_SETTINGS
    more = f"; {left_out} more are left out" if left_out > 0 else ""
    columns = ("setting", *(group.label for group in groups))
    return Listing(f"Settings that differ{more}", columns, differ[:_MOST_SETTINGS], stacks=False)


def _value(told: Mapping[str, str], key: str) -> str:
    return value_in_file(key, told.get(key, "none")) if told else _NOT_TOLD


def _strips(groups: Sequence[Group], found: Sequence[Difference], page: Path | None) -> Sequence[Strips]:
    """Return a strip for each figure, with a track for each group that has it."""
    several = len(groups) > 2
    by_label = {group.label: group for group in groups[1:]}
    figures = []
    for each in found[:_MOST_FIGURES]:
        other, name = by_label.get(each.group), name_of(each.key) + (f" ({each.group})" if several else "")
        tracks = [_track(groups[0], each.key, _median(each.reference, each.key), "first", page)]
        if other is not None:
            tracks.append(_track(other, each.key, _median(each.other, each.key), "other", page))
        figures.append(Figure(name, each.key.unit, tracks))
    return charts(figures)


def _track(group: Group, key: Key, text: str, side: str, page: Path | None) -> Track:
    return Track(group.label, text, list(_readings(group.runs, key, side, page)))


def _median(found: Summary | None, key: Key) -> str:
    """Return the median; if no run could resolve the figure, the widest upper bound."""
    if found is not None and found.median == found.low == 0 < found.high < math.inf:
        return f"< {value_text(rounded_up(found.high), key.unit)}"
    return value_of(found, key)


def _readings(runs: Sequence[Compared], key: Key, side: str, page: Path | None) -> Iterator[Reading]:
    for run in runs:
        value = values_of(run).get(key)
        if value is not None:
            yield _reading(run, value, key, side, page)


def _reading(run: Compared, value: Value, key: Key, side: str, page: Path | None) -> Reading:
    """Return a run's reading; a bound if the outage had not ended or was below the resolution."""
    high = math.inf if value.open_ended else value.high
    is_bound = math.isinf(high) or (value.measured == value.low == 0 and high > 0)
    text = at_least(value_text(value.measured, key.unit), open_ended=value.open_ended)
    folder = Path(run.folder)
    address = "" if page is None else href(folder / PAGE if os.path.isfile(folder / PAGE) else folder, page)
    return Reading(run.folder, address, side, text, None if is_bound else value.measured, value.low, high)
