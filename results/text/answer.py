"""Whether groups of runs differ, as one answer: by tests and intervals where there are any, else by ranges. Pure.

Changes when the answer goes by another rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from results.comparison.differences import Difference, Finding
from results.text.comparison import name_of

if TYPE_CHECKING:  # imports numpy
    from results.comparison.science import Evidence

_MOST_NAMES = 6
_TOLD = frozenset({Finding.MORE, Finding.LESS, Finding.NONE_SEEN})


def answer(found: Sequence[Difference], evidence: Sequence[Evidence]) -> str:
    """Sentences. A figure differs by its test and its interval together; ranges say so only where runs have no test."""
    told = [each for each in found if each.finding in _TOLD]
    if not told:
        return "They have no figure in common."
    lacking = len(found) - len(told)
    said = [*(_by_tests(evidence) if evidence else ()), _by_ranges(told, tested=bool(evidence))]
    said += [f"{lacking} more were not measured by all."] if lacking else []
    return " ".join(said)


def _by_tests(evidence: Sequence[Evidence]) -> Iterator[str]:
    several = len({each.group for each in evidence}) > 1
    sure = [each for each in evidence if each.differs]
    unsure = [each for each in evidence if each.significant and not each.differs]
    open_ones = [each for each in evidence if each.holm is None]
    if sure:
        names = _names([f"{_name(each, several)} ({'worse' if each.is_worse else 'better'})" for each in sure])
        yield f"{len(sure)} of {len(evidence)} figures differ, by test and 95 % interval: {names}."
    elif not unsure:
        known = len(evidence) - len(open_ones)
        yield f"No test tells a difference in any of {known} figures." if known else "Whether they differ is not known."
    if unsure:
        names = _names([_name(each, several) for each in unsure])
        yield f"By test alone (p (Holm) below 0.05), while the 95 % interval has 0 in it: {names}."
    if open_ones:
        yield f"Not determined: {_names([_name(each, several) for each in open_ones])}."


def _by_ranges(told: Sequence[Difference], *, tested: bool) -> str:
    apart = [each for each in told if each.finding is not Finding.NONE_SEEN]
    worse = sum(each.is_worse for each in apart)
    sides = f"{worse} worse, {len(apart) - worse} better than the first"
    if tested:
        return f"Ranges do not overlap in {len(apart)} of {len(told)}: {sides}." if apart else "All ranges overlap."
    if apart:
        return f"{len(apart)} of {len(told)} figures differ: {sides}. Their ranges do not overlap."
    return f"Not determined: the ranges of all {len(told)} figures overlap."


def _name(of: Evidence, several: bool) -> str:
    return f"{name_of(of.key)} of {of.group}" if several else name_of(of.key)


def _names(found: Sequence[str]) -> str:
    more = [f"and {len(found) - _MOST_NAMES} more"] if len(found) > _MOST_NAMES else []
    return ", ".join([*found[:_MOST_NAMES], *more])
