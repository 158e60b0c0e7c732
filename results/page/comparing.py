"""The page of runs held against each other: what differs, first as a sentence, then as bars, then as figures. Pure.

Changes when a comparison shows something else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.comparison.differences import Difference, Finding
from results.comparison.figures import Summary
from results.comparison.groups import Group
from results.page.axis import Linear, Logarithmic, Tick, linear, logarithmic_ms
from results.page.render import rendered
from results.page.sections import Table
from results.text.comparison import causes_sheet, figures_sheet, groups_sheet, name_of, own_sheet, value_of
from results.text.evidence import evidence_sheet

if TYPE_CHECKING:
    from results.comparison.science import Evidence

_MOST_PAIRS, _TICKS = 60, 6
_MS = "ms"
Axis = Linear | Logarithmic
_LONE = "There is one group: runs of one drill, fabric, engine, settings and version."


@dataclass(frozen=True, slots=True)
class Span:
    """All that a figure may be in one group, per cent of the axis."""

    side: str  # 'first' or 'other', as the style sheet has it
    text: str
    low_pct: float
    high_pct: float
    open_ended: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure that differs: of the first group and of another."""

    name: str
    spans: tuple[Span, Span]


@dataclass(frozen=True, slots=True)
class Chart:
    """Figures of one unit that differ, on one axis; ``of`` says which."""

    of: str
    pairs: Sequence[Pair]
    left_out: int
    ticks: Sequence[Tick]


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """What the template prints, all of it text."""

    title: str
    answer: str
    groups: Table
    charts: Sequence[Chart]
    labels: Sequence[str]
    tables: Sequence[Table]


def comparison_page(groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[Evidence] = ()) -> str:
    """The page as text, UTF-8 when written. MachineError when this installation is not whole."""
    return rendered("comparison.html", comparison_view(groups, found, evidence), has_charts=False)


def comparison_view(
    groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[Evidence] = ()
) -> ComparisonView:
    """Everything that the page says; ``found``: what ``results.comparison.differences`` says of the groups."""
    apart = [each for each in found if each.finding in {Finding.MORE, Finding.LESS}]
    alike = [each for each in found if each.finding is Finding.NONE_SEEN]
    lacking = [each for each in found if each.finding is Finding.MISSING]
    units = sorted({each.key.unit for each in apart}, key=lambda unit: (unit != _MS, unit))
    sheets = (
        *([own_sheet(groups[0])] if len(groups) == 1 else []),
        figures_sheet("What differs; medians, intervals over all runs", groups, apart),
        causes_sheet(groups, apart),
        evidence_sheet(evidence),
        figures_sheet("No difference seen, and what would have been", groups, alike),
        figures_sheet(f"Not measured by all, but by {groups[0].label}", groups, lacking),
    )
    return ComparisonView(
        title=" against ".join(group.label for group in groups),
        answer=_LONE if len(groups) == 1 else _answer(apart, alike, lacking),
        groups=Table(*groups_sheet(groups)),
        charts=[_chart(unit, apart, several=len(groups) > 2) for unit in units],
        labels=(groups[0].label, " or ".join(group.label for group in groups[1:])),
        tables=[Table(*sheet) for sheet in sheets if sheet.rows],
    )


def _answer(apart: Sequence[Difference], alike: Sequence[Difference], lacking: Sequence[Difference]) -> str:
    worse = sum(each.is_worse for each in apart)
    told = len(apart) + len(alike)
    if not told:
        return "They have no figure in common."
    lacks = f" {len(lacking)} more were not measured by all." if lacking else ""
    if not apart:
        return f"No difference was seen in any of {told} figures.{lacks}"
    return f"{len(apart)} of {told} figures differ: {worse} worse, {len(apart) - worse} better than the first.{lacks}"


def _chart(unit: str, apart: Sequence[Difference], *, several: bool) -> Chart:
    """Times on a logarithmic axis, as they may be a thousand times apart; all else on a linear one."""
    of_unit = [(each, each.other) for each in apart if each.key.unit == unit and each.other is not None]
    shown = of_unit[:_MOST_PAIRS]
    ends = [end for each, other in shown for end in (*_ends(each.reference), *_ends(other))]
    axis = logarithmic_ms(ends) if unit == _MS else linear(min(ends), max(ends))
    pairs = [_pair(each, other, axis, several=several) for each, other in shown]
    ticks = axis.ticks() if isinstance(axis, Logarithmic) else axis.ticks(_TICKS)
    of = "times" if unit == _MS else f"figures in {unit}" if unit else "counts"
    return Chart(of, pairs, len(of_unit) - len(shown), ticks)


def _ends(found: Summary) -> tuple[float, ...]:
    return tuple(end for end in (found.low, found.median, found.high) if math.isfinite(end))


def _pair(each: Difference, other: Summary, axis: Axis, several: bool) -> Pair:
    name = name_of(each.key) + (f" ({each.group})" if several else "")
    return Pair(
        name,
        (
            _span("first", each.reference, value_of(each.reference, each.key), axis),
            _span("other", other, value_of(other, each.key), axis),
        ),
    )


def _span(side: str, found: Summary, text: str, axis: Axis) -> Span:
    high_pct = axis.at(found.high) if math.isfinite(found.high) else 100.0
    return Span(side, text, axis.at(found.low), high_pct, not math.isfinite(found.high))
