"""Sheets and lines of a comparison: its groups, the settings that differ, known causes, changes since a baseline. Pure.

Changes when a comparison has another column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from hpn.results.comparison.baseline import BaselineComparison
from hpn.results.comparison.differences import Difference
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import Across, Group, apart_in, asked_otherwise, shortened
from hpn.results.text.bounds import at_least
from hpn.results.text.printable import printable
from hpn.results.text.values import rounded_up, span_text, value_text
from hpn.testbed.files.units import format_percent

ONE_RUN_EACH = "one run each: the phase of a timer alone can make this difference; save and hold five (repeats: 5)"
_MEDIAN = "median outage"
_LONGEST_HEAD = 16
_HEADS = ("first", "second", "third", "fourth", "fifth", "sixth")
_PERCENT, _MS = "%", "ms"


class Sheet(NamedTuple):
    """A table as text, for a terminal or a page; a column whose title begins with '>' holds numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def keys(self) -> int:
        """Number of columns that name the rows: those before the first numeric one."""
        return next((at for at, column in enumerate(self.columns) if column.startswith(">")), 1)


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
        yield name_of(each.key), _withinterval_of(each.reference, each.key), _withinterval_of(each.other, each.key)


def _withinterval_of(found: Summary | None, key: Key) -> str:
    """Return '20.0 ms (19.2 to 20.8 ms)'; an outage that was not seen is its bound alone."""
    if found is not None and found.median == found.low == 0 < found.high < math.inf:
        return f"< {value_text(found.high, key.unit)}"
    exact = found is None or found.open_ended or found.low == found.high
    return value_of(found, key) + ("" if exact else f" ({interval_of(found, key)})")


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
    lacks = any(group.left_out for group in groups)
    rows = tuple(
        (
            group.label,
            str(len(group.runs)),
            *([str(group.left_out)] if lacks else []),
            *((settings or "-") if what is Across.SETTINGS else group.setting[what] for what in apart),
        )
        for group, settings in zip(groups, own, strict=True)
    )
    columns = ("group", ">runs", *([">left out"] if lacks else []), *map(str, apart))
    named = dict.fromkeys(str(what) for group in groups for what in group.by_name)
    by_name = f"; {' and '.join(named)} compared by name, as folders lack digests" if named else ""
    shared = [shortened(groups[0].setting[what]) for what in common if groups[0].setting[what]]
    of = f" of {', '.join(shared)}" if shared else ""
    left_out = "; runs that cannot be trusted are left out" if lacks else ""
    return Sheet(f"groups{of}{left_out}{by_name}", columns, rows)


def heads_of(groups: Sequence[Group]) -> Sequence[str]:
    """Return the columns' heads: labels, or numbers if one is long."""
    labels = [group.label for group in groups]
    if max(map(len, labels)) <= _LONGEST_HEAD:
        return labels
    names = ("first", "other") if len(labels) == 2 else _HEADS
    return [names[at] if at < len(names) else f"group {at + 1}" for at in range(len(labels))]


def own_sheet(group: Group) -> Sheet:
    """Return the figures of a single group, with the range over its runs."""
    rows = tuple(
        (
            key.where or "expectation",
            figure_of(key),
            str(summary.count),
            value_of(summary, key),
            interval_of(summary, key),
        )
        for key, summary in summaries(group).items()
    )
    return Sheet("medians, ranges over all runs", ("edge", "figure", ">runs", ">median", ">range"), rows)


def causes_sheet(groups: Sequence[Group], found: Sequence[Difference]) -> Sheet:
    """Return each known cause of a difference once, with its figures; the settings that differ are no row."""
    several = len(groups) > 2
    asked = {other.label: asked_otherwise(groups[0], other) for other in groups[1:]}
    told: dict[tuple[str, str], dict[str, None]] = {}
    for each in found:
        if each.why and each.why != asked.get(each.group):
            told.setdefault((each.group, each.why), {})[name_of(each.key)] = None
    rows = tuple((*([group] if several else []), why, ", ".join(figures)) for (group, why), figures in told.items())
    return Sheet("known causes", (*(["group"] if several else []), "because", "figures"), rows)


def asked_sheet(groups: Sequence[Group]) -> Sheet:
    """Return the settings of each other group that differ from the first's: 'job.queue_pairs: 1 | 8'."""
    first, *others = groups
    several = len(others) > 1
    asked = ((other.label, asked_otherwise(first, other)) for other in others)
    rows = tuple((*([label] if several else []), text) for label, text in asked if text)
    one, *heads = heads_of(groups)
    against = f"{one} | {'other' if several else ''.join(heads)}"
    return Sheet("settings that differ", (*(["group"] if several else []), against), rows)


def value_of(found: Summary | None, key: Key) -> str:
    """Return the median, '>= 1999 ms' for a lower bound; a time that no run could see is '< 1.05 ms'."""
    if found is None:
        return "-"
    if found.unseen and key.unit == _MS:
        return f"< {value_text(rounded_up(found.unseen), key.unit)}"
    return at_least(value_text(found.median, key.unit), open_ended=found.open_ended)


def interval_of(found: Summary | None, key: Key) -> str:
    """Return the range of possible values."""
    if found is None:
        return "-"
    if not math.isfinite(found.high):
        return at_least(value_text(found.low, key.unit))
    return span_text(found.low, found.high, key.unit)
