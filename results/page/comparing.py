"""Page of a comparison of runs: settings that differ, figures that differ, and every run. Pure.

Changes when a comparison shows something else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.results.comparison.differences import Difference, Finding
from hpn.results.comparison.drills import Comparison, DrillGroups
from hpn.results.comparison.figures import Key, Value, values_of
from hpn.results.comparison.groups import Across, Compared, Group, merged
from hpn.results.page.hardware import on_real_hardware
from hpn.results.page.listing import Link, Listing, Mark, href
from hpn.results.page.render import rendered
from hpn.results.page.runs import PAGE
from hpn.results.page.sections import Table
from hpn.results.page.side_by_side import SideBySide
from hpn.results.page.strip import Figure, Reading, Strips, Track, charts
from hpn.results.run.filewords import key_in_file, value_in_file
from hpn.results.text.answer import answers
from hpn.results.text.bounds import at_least
from hpn.results.text.compared import why_no_tests
from hpn.results.text.comparison import causes_sheet, groups_sheet, name_of, own_sheet, value_of
from hpn.results.text.costs import COLUMNS, costs, costs_caption, without_fault
from hpn.results.text.difference_table import differing_sheet, not_shown, other_sheet
from hpn.results.text.evidence import evidence_sheet
from hpn.results.text.values import NONE, value_text

_MOST_FIGURES, _MOST_SETTINGS, _MOST_COLUMNS = 60, 60, 3
_LONE = "There is one group: runs of one drill, fabric, engine, settings and version."
_BY_KEY = frozenset({Across.SETTINGS})
"""Shown key by key, and in the table of groups."""
_NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class DrillView:
    """One drill of the template, all of it text.

    ``name``: '' if the page has no other drill. ``settings``, ``groups``: empty if the page has them once for all
    drills. ``tables``: those that are open; ``more``: those behind a click, which are not printed. ``apart`` and
    ``alike``: strips of figures that differ, and of the others.
    """

    name: str
    anchor: str
    answer: str
    settings: Listing | None
    groups: Table | None
    notes: Sequence[str]
    tables: Sequence[Listing]
    not_shown: str
    apart: Sequence[Strips]
    left_out: int
    beside: Sequence[SideBySide]
    alike: Sequence[Strips]
    more: Sequence[Listing]


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Content of the template. ``costs``: a row for each drill, or for each group of each drill."""

    title: str
    settings: Listing | None
    groups: Table | None
    costs: Listing
    drills: Sequence[DrillView]
    note: str  # what holds for the answers of all drills
    lone: str  # drills that only one group ran; '' if there are none
    why_no_evidence: Sequence[str]
    hardware: Sequence[str]  # what real hardware would do otherwise


def comparison_page(
    found: Sequence[Comparison],
    over_time: Sequence[Sequence[SideBySide]] = (),
    page: Path | None = None,
    lone: Sequence[DrillGroups] = (),
) -> str:
    """Return the page as text, to be written in UTF-8; with a path ``page`` it links to the pages of its runs.

    ``over_time``: charts of each comparison. MachineError when this installation is incomplete.
    """
    view = comparison_view(found, over_time, page, lone)
    return rendered("comparison.html", view, has_charts=any(over_time))


def comparison_view(
    found: Sequence[Comparison],
    over_time: Sequence[Sequence[SideBySide]] = (),
    page: Path | None = None,
    lone: Sequence[DrillGroups] = (),
) -> ComparisonView:
    """Return the content of the page."""
    charts_of = [*over_time, *([()] * (len(found) - len(over_time)))]
    labels = dict.fromkeys(group.label for each in found for group in each.groups)
    anchors = {each.drill: f"drill-{at}" for at, each in enumerate(found, start=1)}
    several = len(found) > 1
    told, note = answers(found)
    shared = merged([each.groups for each in found]) if several else ()
    return ComparisonView(
        title=" against ".join(labels),
        settings=_settings(shared) if shared else None,
        groups=Table(*groups_sheet(shared)) if shared else None,
        costs=_by_drill(found, labels, anchors, page)
        if several and len(labels) <= _MOST_COLUMNS
        else _costs(found, page),
        drills=[
            _drill(each, anchors[each.drill], answer, row, page, is_only=not several)
            for each, answer, row in zip(found, told, charts_of, strict=True)
        ],
        note=note,
        lone=", ".join(f"{of.drill} ({of.groups[0].label})" for of in lone),
        why_no_evidence=why_no_tests(found),
        hardware=on_real_hardware(run.manifest for each in found for group in each.groups for run in group.runs),
    )


def _costs(found: Sequence[Comparison], page: Path | None) -> Listing:
    """Return a row for each group of each drill."""
    rows = [
        (of.drill, Link(of.group, _address(Path(of.folder), page)), Mark(of.outcome), of.cost) for of in costs(found)
    ]
    return Listing(costs_caption(found), COLUMNS, rows)


def _by_drill(
    found: Sequence[Comparison], labels: Iterable[str], anchors: Mapping[str, str], page: Path | None
) -> Listing:
    """Return a row for each drill, with its fault, and a column for each group."""
    rows = []
    for each in found:
        fault, of_groups = without_fault(costs([each]))
        cells = {of.group: Mark(of.outcome, of.cost, _address(Path(of.folder), page)) for of in of_groups}
        rows.append((Link(each.drill, f"#{anchors[each.drill]}"), fault, *(cells.get(label, NONE) for label in labels)))
    return Listing(costs_caption(found), ("drill", "fault", *labels), rows)


def _drill(
    of: Comparison, anchor: str, answer: str, over_time: Sequence[SideBySide], page: Path | None, *, is_only: bool
) -> DrillView:
    groups, apart = of.groups, of.apart
    alike = [each for each in of.found if each.finding is Finding.NONE_SEEN and each not in apart]
    if len(groups) == 1:
        shown, more = [own_sheet(groups[0])], []
    else:
        causes = [] if of.draw else [causes_sheet(groups, apart)]
        shown, more = [differing_sheet(of), *causes], [other_sheet(of), evidence_sheet(of.evidence)]
    return DrillView(
        name=of.drill,
        anchor=anchor,
        answer=_LONE if len(groups) == 1 else answer,
        settings=_settings(groups) if is_only else None,
        groups=Table(*groups_sheet(groups)) if is_only else None,
        notes=of.notes,
        tables=[Listing(*sheet) for sheet in shown if sheet.rows],
        not_shown="" if len(groups) == 1 else not_shown(of),
        apart=_strips(groups, apart, page),
        left_out=max(len(apart) - _MOST_FIGURES, 0),
        beside=[_named_apart(each, anchor) for each in over_time],
        alike=_strips(groups, alike, page),
        more=[Listing(*sheet) for sheet in more if sheet.rows],
    )


def _named_apart(row: SideBySide, anchor: str) -> SideBySide:
    """Return the charts with IDs that no other drill of the page has."""
    return replace(row, charts=tuple(replace(chart, id=f"{anchor}-{chart.id}") for chart in row.charts))


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
        tracks = [_track(groups[0], each.key, value_of(each.reference, each.key), "first", page)]
        if other is not None:
            tracks.append(_track(other, each.key, value_of(each.other, each.key), "other", page))
        figures.append(Figure(name, each.key.unit, tracks))
    return charts(figures)


def _track(group: Group, key: Key, text: str, side: str, page: Path | None) -> Track:
    return Track(group.label, text, list(_readings(group.runs, key, side, page)))


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
    return Reading(
        run.folder, _address(Path(run.folder), page), side, text, None if is_bound else value.measured, value.low, high
    )


def _address(folder: Path, page: Path | None) -> str:
    """Return the address of a run's page, or of its folder if it has none; '' for a page without a path."""
    if page is None:
        return ""
    return href(folder / PAGE if os.path.isfile(folder / PAGE) else folder, page)
