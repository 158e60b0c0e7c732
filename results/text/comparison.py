"""Terminal output of a comparison of runs. Pure.

Changes when a comparison has another column.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from hpn.results.comparison.baseline import BaselineComparison
from hpn.results.comparison.differences import Difference, Finding
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import Across, Group, apart_in, asked_otherwise, shortened
from hpn.results.text.bounds import at_least
from hpn.results.text.printable import printable
from hpn.results.text.tables import table
from hpn.results.text.values import rounded_up, span_text, value_text
from hpn.testbed.files.units import format_percent

ONE_RUN_EACH = "one run each: the phase of a timer alone can make this difference; save and hold five (repeats: 5)"
_MEDIAN = "median outage"
_LONGEST_HEAD = 12
_PERCENT, _MS = "%", "ms"
Figures = Collection[tuple[Key, str]]


class Sheet(NamedTuple):
    """A table as text, for a terminal or a page; a column whose title begins with '>' holds numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def keys(self) -> int:
        """Number of columns that name the rows: those before the first numeric one."""
        return next((at for at, column in enumerate(self.columns) if column.startswith(">")), 1)


def comparison_parts(
    groups: Sequence[Group], found: Sequence[Difference], told_apart: Figures = ()
) -> list[RenderableType]:
    """Return the groups, every figure side by side, and the causes of differences; for a single group its figures."""
    sheets = [groups_sheet(groups)]
    if len(groups) == 1:
        sheets.append(own_sheet(groups[0]))
    if found:
        others = f": {groups[1].label}" if len(groups) == 2 else ""
        caption = f"held against {groups[0].label}{others}; medians, ranges over all runs"
        sheets += [figures_sheet(caption, groups, found), causes_sheet(groups, found, told_apart)]
    return [table(*sheet, sheet.keys) for sheet in sheets if sheet.rows]


def held_lines(held: BaselineComparison) -> Iterator[Text]:
    """Yield the changes since a baseline, the figures that are worse, missing, tolerated and better."""
    if changed := changed_line(held):
        yield Text(changed)
    yield from map(Text, worse_lines(held, held.worse))
    if held.worse and all(each.is_of_single_runs for each in held.worse):
        yield Text(ONE_RUN_EACH)
    for key in held.missing:
        yield Text(printable(f"no longer measured: {name_of(key)}"))
    within = f"within the tolerance of {format_percent(held.tolerance)}"
    yield from (Text(f"{within}: {line}") for line in figure_lines(held.tolerated))
    yield from map(Text, figure_lines(held.better))
    if held.by_name:
        yield Text(f"told to be the same by name only: {', '.join(held.by_name)}; --save keeps digests of newer runs")
    if not held.differences:
        yield Text("no figure differs: each interval overlaps that of the baseline")


def limited_rows(held: BaselineComparison) -> Iterator[tuple[str, str, str]]:
    """Yield each figure that an expectation limits: name, baseline and now, medians with their intervals."""
    for each in held.limited:
        yield name_of(each.key), _with_interval(each.reference, each.key), _with_interval(each.other, each.key)


def _with_interval(found: Summary | None, key: Key) -> str:
    """Return '20.0 ms (19.2 to 20.8 ms)'; an outage that was not seen is its bound alone."""
    if found is not None and found.median == found.low == 0 < found.high < math.inf:
        return f"< {value_text(found.high, key.unit)}"
    exact = found is None or found.open_ended or found.low == found.high
    return value_of(found, key) + ("" if exact else f" ({_interval(found, key)})")


def changed_line(held: BaselineComparison) -> str:
    """Return the timers, policies, kernel and hpn that differ from the baseline; '' if none does."""
    changed = (
        ("timers or policies of the fabric", held.run_otherwise),
        ("kernel or hpn", held.measured_with),
    )
    return printable("; ".join(f"{what} changed since the baseline: {how}" for what, how in changed if how))


def worse_lines(held: BaselineComparison, found: Sequence[Difference]) -> Iterator[str]:
    """Return the lines of ``figure_lines``, each with the tolerance that it exceeds."""
    tolerance = f" (tolerance {format_percent(held.tolerance)})" if held.tolerance else ""
    return (f"{line}{tolerance}" for line in figure_lines(found))


def figure_lines(found: Sequence[Difference]) -> Iterator[str]:
    """Yield a line for each figure that has a limit, then one for each edge with all its figures."""
    edges: dict[str, list[Difference]] = {}
    for each in found:
        edges.setdefault(each.key.where, []).append(each)
    for each in edges.pop("", []):
        yield printable(_worse_or_better(each))
    for first, *others in edges.values():
        more = ", ".join(f"{figure_of(each.key)} {_now(each)} ({_before(each)} before)" for each in others)
        yield printable(_worse_or_better(first) + (f"; and {more}" if more else ""))


def _worse_or_better(each: Difference) -> str:
    word = "worse" if each.is_worse else "better"
    apart = value_text(each.apart, each.key.unit)
    if each.key.unit == _PERCENT:
        apart = f"{apart.removesuffix(_PERCENT)}points"  # 40 % is 20 points less than 60 %, and not 20 % less
    return f"{word}: {name_of(each.key)}: {_both(each)}: {word} by at least {apart}"


def _both(each: Difference) -> str:
    """Return '171 ms, 143 ms before (median of 5)'; if run counts differ, each median has its own."""
    now, before = (0 if each.other is None else each.other.count), each.reference.count
    if now == before:
        return f"{_now(each)}, {_before(each)} before" + (_of_runs(now) if now > 1 else "")
    return f"{_now(each)}{_of_runs(now)}, {_before(each)} before{_of_runs(before)}"


def _of_runs(count: int) -> str:
    return f" (median of {count})" if count > 1 else " (one run)"


def _now(each: Difference) -> str:
    return value_of(each.other, each.key)


def _before(each: Difference) -> str:
    return value_of(each.reference, each.key)


def name_of(key: Key) -> str:
    """Return the full name: 'cut failure 0: worst outage'."""
    name = figure_of(key)
    return f"{key.where}: {name}" if key.where else name


def figure_of(key: Key) -> str:
    """Return the figure's name. Medians of an edge and of an expectation cover different flows; the name says which."""
    return key.name.replace(_MEDIAN, f"{_MEDIAN} of {'flows with loss' if key.where else 'all flows chosen'}", 1)


def groups_sheet(groups: Sequence[Group]) -> Sheet:
    """Return a row for each group; settings that several groups share are in the caption only."""
    told = (Across.DRILL, Across.FABRIC, Across.ENGINE, Across.KERNEL, Across.SETTINGS, Across.VERSION)
    common = [what for what in told if len(groups) > 1 and len({group.setting[what] for group in groups}) == 1]
    apart = [what for what in told if what not in common]
    own = apart_in(groups) if len(groups) > 1 else [group.setting[Across.SETTINGS] for group in groups]
    rows = tuple(
        (
            group.label,
            str(len(group.runs)),
            str(group.left_out),
            *((settings or "-") if what is Across.SETTINGS else group.setting[what] for what in apart),
        )
        for group, settings in zip(groups, own, strict=True)
    )
    columns = ("group", ">runs", ">left out", *map(str, apart))
    named = dict.fromkeys(str(what) for group in groups for what in group.by_name)
    by_name = f"; {' and '.join(named)} by name: not all folders tell what was asked" if named else ""
    shared = [shortened(groups[0].setting[what]) for what in common if groups[0].setting[what]]
    of = f" of {', '.join(shared)}" if shared else ""
    return Sheet(f"groups{of}; runs that cannot be trusted are left out{by_name}", columns, rows)


def figures_sheet(caption: str, groups: Sequence[Group], found: Sequence[Difference]) -> Sheet:
    """Return the figures of the first group next to the others', with group names if there are several others."""
    several = len(groups) > 2
    one, other = _short(groups[0], "first"), "other" if several else _short(groups[-1], "other")
    columns = (
        *(["group"] if several else []),
        *("edge", "figure", f">{one}", f">{other}", f">{one}: range", f">{other}: range", "difference"),
    )
    rows = tuple(
        (
            *([each.group] if several else []),
            each.key.where or "expectation",
            figure_of(each.key),
            value_of(each.reference, each.key),
            value_of(each.other, each.key),
            _interval(each.reference, each.key),
            _interval(each.other, each.key),
            _finding(each),
        )
        for each in found
    )
    return Sheet(caption, columns, rows)


def _short(group: Group, else_: str) -> str:
    """Return the heading of the group's columns: its label if short enough, else ``else_``."""
    return group.label if len(group.label) <= _LONGEST_HEAD else else_


def own_sheet(group: Group) -> Sheet:
    """Return the figures of a single group, with the range over its runs."""
    rows = tuple(
        (
            key.where or "expectation",
            figure_of(key),
            str(summary.count),
            value_of(summary, key),
            _interval(summary, key),
        )
        for key, summary in summaries(group).items()
    )
    return Sheet("medians, ranges over all runs", ("edge", "figure", ">runs", ">median", ">range"), rows)


def causes_sheet(groups: Sequence[Group], found: Sequence[Difference], told_apart: Figures = ()) -> Sheet:
    """Return each changed setting with the figures that differ, then each known cause once, with its own figures.

    If no figure differs, nothing is called a cause. ``told_apart``: figures that differ by test, with their group
    labels.
    """
    several = len(groups) > 2
    rows = tuple(
        (*([group] if several else []), why, figures) for group, why, figures in _causes(groups, found, told_apart)
    )
    if not any(figures for *_, figures in rows):
        asked = f"{_short(groups[0], 'first')} | {'other' if several else _short(groups[-1], 'other')}"
        return Sheet("what was asked otherwise", (*(["group"] if several else []), asked), tuple(r[:-1] for r in rows))
    return Sheet("why they differ", (*(["group"] if several else []), "because", "figures"), rows)


def value_of(found: Summary | None, key: Key) -> str:
    """Return the median, '>= 1999 ms' for a lower bound; a time that no run could see is '< 1.05 ms'."""
    if found is None:
        return "-"
    if found.unseen and key.unit == _MS:
        return f"< {value_text(rounded_up(found.high), key.unit)}"
    return at_least(value_text(found.median, key.unit), open_ended=found.open_ended)


def _interval(found: Summary | None, key: Key) -> str:
    if found is None:
        return "-"
    if not math.isfinite(found.high):
        return at_least(value_text(found.low, key.unit))
    return span_text(found.low, found.high, key.unit)


def _finding(each: Difference) -> str:
    if each.finding is not Finding.NONE_SEEN:
        return each.finding.value
    if not each.seen_from:
        return "the same in all runs"
    if not math.isfinite(each.seen_from):
        return "ranges overlap"
    return f"ranges overlap; they would not if more than {value_text(each.seen_from, each.key.unit)} apart"


def _causes(
    groups: Sequence[Group], found: Sequence[Difference], told_apart: Figures
) -> Iterator[tuple[str, str, str]]:
    told: dict[tuple[str, str], list[str]] = {}
    for other in groups[1:]:
        if asked := asked_otherwise(groups[0], other):
            apart = (
                each
                for each in found
                if each.group == other.label and (each.why or (each.key, each.group) in told_apart)
            )
            told[other.label, asked] = [name_of(each.key) for each in apart]
    for each in found:
        if each.why and name_of(each.key) not in (of := told.setdefault((each.group, each.why), [])):
            of.append(name_of(each.key))
    for (group, why), figures in told.items():
        yield group, why, ", ".join(figures)
