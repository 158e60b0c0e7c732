"""What the terminal shows of runs that were held against each other. Pure.

Changes when a comparison has another column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from results.comparison.baseline import Held
from results.comparison.differences import Difference, Finding
from results.comparison.figures import Key, Summary
from results.comparison.groups import Across, Group
from results.text.tables import table
from results.text.terminal import value_text


def comparison_parts(groups: Sequence[Group], found: Sequence[Difference]) -> list[RenderableType]:
    """The groups, every figure side by side, and why they differ."""
    parts: list[RenderableType] = [_groups_table(groups)]
    if not found:
        return parts
    columns = ("edge", "figure", ">first", ">interval", "group", ">its", ">interval", "")
    rows = ((*_figure(each.key), *_shown(each), _finding(each)) for each in found)
    parts.append(table(f"held against {groups[0].label}; medians, intervals over all runs", columns, rows))
    if causes := list(_causes(found)):
        parts.append(table("why they differ", ("group", "because", "figures"), causes))
    return parts


def held_lines(held: Held) -> Iterator[Text]:
    """What is worse or better than a baseline, and what it has that these runs have not."""
    for each in held.differences:
        word = "worse" if each.is_worse else "better"
        yield Text(
            f"{word}: {name_of(each.key)}: {_value(each.other, each.key)}, {_value(each.reference, each.key)} before"
        )
    for key in held.missing:
        yield Text(f"not measured: {name_of(key)}")
    if not held.differences:
        yield Text("no figure is worse or better than the baseline by more than the intervals of both")


def name_of(key: Key) -> str:
    """'cut failure 0: worst outage'."""
    return f"{key.where}: {key.name}" if key.where else key.name


def _groups_table(groups: Sequence[Group]) -> RenderableType:
    told = (Across.DRILL, Across.FABRIC, Across.ENGINE, Across.KERNEL)
    rows = (
        (group.label, str(len(group.runs)), str(group.left_out), *(group.setting[what] for what in told))
        for group in groups
    )
    columns = ("group", ">runs", ">left out", *map(str, told))
    return table("groups; runs that cannot be trusted are left out", columns, rows)


def _figure(key: Key) -> tuple[str, str]:
    return key.where or "expectation", key.name


def _shown(each: Difference) -> tuple[str, str, str, str, str]:
    return (
        _value(each.reference, each.key),
        _interval(each.reference, each.key),
        each.group,
        _value(each.other, each.key),
        _interval(each.other, each.key),
    )


def _value(found: Summary | None, key: Key) -> str:
    if found is None:
        return "-"
    return f"{'>= ' if found.open_ended else ''}{value_text(found.median, key.unit)}"


def _interval(found: Summary | None, key: Key) -> str:
    if found is None:
        return "-"
    if not math.isfinite(found.high):
        return f">= {value_text(found.low, key.unit)}"
    return f"{found.low:.4g} to {value_text(found.high, key.unit)}"


def _finding(each: Difference) -> str:
    if each.finding is not Finding.NONE_SEEN:
        return each.finding.value
    if not math.isfinite(each.seen_from):
        return f"{each.finding}"
    least = f"more than {value_text(each.seen_from, each.key.unit)}" if each.seen_from else "any"
    return f"{each.finding}; {least} would have been"


def _causes(found: Sequence[Difference]) -> Iterator[tuple[str, str, str]]:
    told: dict[tuple[str, str], list[str]] = {}
    for each in found:
        if each.why:
            told.setdefault((each.group, each.why), []).append(name_of(each.key))
    for (group, why), figures in told.items():
        yield group, why, ", ".join(figures)
