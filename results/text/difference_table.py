"""Table of compared groups: a row for each figure, with medians, ranges, the difference, and what a test says. Pure.

Changes when a compared figure is shown in another way. A cell has several lines; where there is room they are one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hpn.failover.analysis.phrases import many
from hpn.results.comparison.differences import Difference, Finding
from hpn.results.comparison.drills import Comparison
from hpn.results.comparison.figures import Key, Summary
from hpn.results.text.checks import MEASUREMENT_ERROR
from hpn.results.text.comparison import Sheet, figure_of, heads_of, interval_of, name_of, value_of
from hpn.results.text.evidence import NOT_TESTED, interval_text, p_text, span_of
from hpn.results.text.values import value_text

if TYPE_CHECKING:  # imports numpy
    from hpn.results.comparison.science import DifferenceEvidence

_LEFT = (
    (frozenset({Finding.MORE, Finding.LESS, Finding.NONE_SEEN}), "without a difference"),
    (frozenset({Finding.START_MOVED}), "not comparable"),
    (frozenset({Finding.MISSING}), "not measured by all"),
)
Tested = Mapping[tuple[Key, str], "DifferenceEvidence"]


def differing_sheet(of: Comparison) -> Sheet:
    """Return the figures that differ by ranges or tests."""
    which = "figures of one draw each" if of.draw else "figures that differ"
    return difference_sheet(of, of.apart, which)


def other_sheet(of: Comparison) -> Sheet:
    """Return all other figures."""
    apart = {each.key for each in of.apart}
    return difference_sheet(of, [each for each in of.found if each.key not in apart], "other figures")


def difference_sheet(of: Comparison, found: Sequence[Difference], which: str) -> Sheet:
    """Return a row for each of these figures; those of one place with equal cells share a row.

    Of several other groups each has its difference in its own cell.
    """
    first, *others = of.groups
    tested = {(key, each.group): each for each in of.evidence for key in each.keys}
    keys = {each.key for each in found}
    cells: dict[Key, list[str]] = {}
    for each in of.found:
        if each.key in keys:
            row = cells.setdefault(each.key, [_cell(each.reference, each.key)])
            two = _cell(each.other, each.key), "\n".join(_said(each, tested, is_draw=bool(of.draw)))
            row += two if len(others) == 1 else ["\n".join(two)]
    last = ["difference"] if len(others) == 1 else []
    columns = ("figure", *(f">{head}" for head in heads_of(of.groups)), *last)
    told = "; difference with 95 % interval, Cliff's delta, p (Holm)" if of.evidence else ""
    against = f"{others[0].label} against {first.label}" if len(others) == 1 else f"against {first.label}"
    return Sheet(f"{against}: {which}; {_shown_of(of)}{told}", columns, tuple(_rows(cells)))


def _shown_of(of: Comparison) -> str:
    """Return what a cell has: the spread of several runs, or the measurement error of one."""
    counts = {len(group.runs) == 1 for group in of.groups}
    if counts == {True}:
        return f"one run each, {MEASUREMENT_ERROR}"
    return f"median, range (of one run its {MEASUREMENT_ERROR})" if True in counts else "median, range"


def _rows(cells: Mapping[Key, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows, of expectations first."""
    shared: dict[tuple[str, ...], list[Key]] = {}
    for key in sorted(cells, key=lambda key: bool(key.where)):
        shared.setdefault((key.where, *cells[key]), []).append(key)
    for (_, *row), keys in shared.items():
        yield ", also ".join([name_of(keys[0]), *map(figure_of, keys[1:])]), *row


def not_shown(of: Comparison) -> str:
    """Return how many figures the table of differences lacks; '' if it has all."""
    apart = {each.key for each in of.apart}
    left = {each.key: each.finding for each in of.found if each.key not in apart}
    counts = [(many(sum(finding in which for finding in left.values()), "more figure"), why) for which, why in _LEFT]
    return ", ".join(f"{count} {why}" for count, why in counts if not count.startswith("0 "))


def _cell(found: Summary | None, key: Key) -> str:
    """Return the median, and below it the range unless the median says it all."""
    if found is None or found.unseen == found.high or found.open_ended or found.low == found.high:
        return value_of(found, key)
    median = value_of(found, key)
    return f"{median}\n{_without(_unit_of(median), interval_of(found, key))}"


def _unit_of(shown: str) -> str:
    """Return the unit of a shown figure, with the blank before it; '' for a count."""
    _, blank, unit = shown.rpartition(" ")
    return blank + unit


def _without(unit: str, shown: str) -> str:
    return shown.removesuffix(unit) if unit else shown


def _said(each: Difference, tested: Tested, *, is_draw: bool) -> Iterator[str]:
    """Yield the lines of a difference: its size and side, interval, effect size and p."""
    evidence = tested.get((each.key, each.group))
    if each.other is None or each.finding is Finding.START_MOVED:
        yield each.finding.value
        return
    if evidence is None and each.finding is Finding.NONE_SEEN:
        yield _unseen(each)
        return
    ends = each.apart_by if evidence is None else (evidence.median.low, evidence.median.high)
    side = "" if is_draw else _side(each, evidence)
    size = span_of(*ends, each.key.unit)
    yield " ".join(filter(None, (size, side)))
    if evidence is not None:
        yield f"95 %: {_without(_unit_of(size), interval_text(evidence))}"
        p = f"p {p_text(evidence.holm)}" if evidence.resolved else NOT_TESTED
        yield f"delta {span_of(evidence.delta.low, evidence.delta.high, '')}, {p}"


def _side(each: Difference, evidence: DifferenceEvidence | None) -> str:
    if each.finding is not Finding.NONE_SEEN:
        return "worse" if each.is_worse else "better"
    if evidence is None or not evidence.differs:
        return ""
    return "worse" if evidence.is_worse else "better"


def _unseen(each: Difference) -> str:
    if not each.seen_from:
        return "the same"
    if not math.isfinite(each.seen_from):
        return "ranges overlap"
    return f"not seen if\nbelow {value_text(each.seen_from, each.key.unit)}"
