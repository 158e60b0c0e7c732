"""Answer whether groups of runs differ: by tests and intervals if available, else by ranges. Pure.

Changes when the answer goes by another rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hpn.failover.analysis.phrases import many
from hpn.results.comparison.differences import Difference, Finding
from hpn.results.comparison.drills import Comparison
from hpn.results.comparison.groups import Group
from hpn.results.text.comparison import name_of

if TYPE_CHECKING:  # imports numpy
    from hpn.results.comparison.science import DifferenceEvidence

ONE_RUN = "One run only: the phase of a timer moves times."
_MOST_NAMES, _MOST_OF_SIDE = 6, 2
_TOLD = frozenset({Finding.MORE, Finding.LESS, Finding.NONE_SEEN})


def answer(groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[DifferenceEvidence]) -> str:
    """Return the answer in sentences; jobs that died come first.

    A figure differs if both its test and its interval say so. Ranges decide only for runs without a test.
    """
    return " ".join(_sentences(groups, found, evidence))


def _sentences(
    groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[DifferenceEvidence]
) -> list[str]:
    return [each for each in (survival(groups), *_of_figures(groups, found, evidence)) if each]


def answer_of(of: Comparison) -> str:
    """Return the answer; of single runs of a fault that is drawn, that they decide nothing."""
    return " ".join(_sentences_of(of))


def _sentences_of(of: Comparison) -> list[str]:
    if of.draw:
        return [each for each in (survival(of.groups), f"Not determined by one run: {of.draw}.") if each]
    return _sentences(of.groups, of.found, of.evidence)


def answers(found: Sequence[Comparison]) -> tuple[Sequence[str], str]:
    """Return the answer of each drill, and what holds for several of them: '' or ONE_RUN, which they then leave out."""
    told = [_sentences_of(of) for of in found]
    note = ONE_RUN if len(found) > 1 and any(ONE_RUN in each for each in told) else ""
    return [" ".join(sentence for sentence in each if sentence != note) for each in told], note


def _of_figures(
    groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[DifferenceEvidence]
) -> Iterator[str]:
    told = [each for each in found if each.finding in _TOLD]
    if not told:
        yield "They have no figure in common."
        return
    yield from _by_tests(groups, told, evidence) if evidence else _by_ranges(groups, told)
    if lacking := sum(each.finding is Finding.MISSING for each in found):
        yield f"{many(lacking, 'more figure')} {'was' if lacking == 1 else 'were'} not measured by all."
    if moved := sum(each.finding is Finding.START_MOVED for each in found):
        yield f"{moved} more cannot be compared: they count from detect, which differs."


def survival(groups: Sequence[Group]) -> str:
    """Return the groups whose jobs died without a restart; '' if none did. The text precedes the figures."""
    jobs = [(group.label, [run.metrics.job for run in group.runs if run.metrics.job]) for group in groups]
    counted = [(label, [job.stays_dead for job in of]) for label, of in jobs]
    if not any(any(dead) for _, dead in counted):
        return ""
    of = (f"{label}: in {sum(dead)} of {many(len(dead), 'run')}" for label, dead in counted if dead)
    return f"The job dies for good, {'; '.join(of)}."


def _by_tests(
    groups: Sequence[Group], told: Sequence[Difference], evidence: Sequence[DifferenceEvidence]
) -> Iterator[str]:
    sure = sorted((each for each in evidence if each.differs), key=lambda each: bool(each.key.where))
    unsure = [each for each in evidence if each.significant and not each.differs]
    open_ones = [each for each in evidence if each.holm is None]
    several, counted = len(groups) > 2, sum(each.is_tested for each in evidence)
    if sure:
        sides = "; ".join(_sides(groups, [(each.group, name_of(each.key), each.is_worse) for each in sure]))
        yield f"The difference is beyond chance (Holm) in {len(sure)} of {many(counted, 'tested figure')}: {sides}."
    elif not unsure:
        yield _none_told(counted, len(evidence) - len(open_ones))
    if unsure:
        names = _names([_of(name_of(each.key), each.group, several) for each in unsure])
        yield f"By test alone (p (Holm) below 0.05), while the 95 % interval has 0 in it: {names}."
    if open_ones:
        yield f"Not determined: {_names([_of(name_of(each.key), each.group, several) for each in open_ones])}."
    tested = {(key, each.group) for each in (*sure, *unsure) for key in each.keys}
    apart = [each for each in told if each.finding is not Finding.NONE_SEEN and (each.key, each.group) not in tested]
    if apart:
        yield f"By ranges alone, which do not overlap: {'; '.join(_sides(groups, _of_differences(apart)))}."


def _none_told(tested: int, known: int) -> str:
    """Return that no figure differs: of those tested, else of those known, which no run resolves."""
    if tested:
        return f"No test tells a difference in any of {many(tested, 'tested figure')}."
    return "No figure differs by more than a run resolves." if known else "Whether they differ is not known."


def _by_ranges(groups: Sequence[Group], told: Sequence[Difference]) -> Iterator[str]:
    apart = [each for each in told if each.finding is not Finding.NONE_SEEN]
    if apart:
        yield f"{'; '.join(_sides(groups, _of_differences(apart)))}."
        if any(len(group.runs) == 1 for group in groups):
            yield ONE_RUN
    else:
        yield f"Not determined: the ranges of all {len(told)} figures overlap."


def _of_differences(apart: Sequence[Difference]) -> list[tuple[str, str, bool]]:
    """Return group, figure and whether it is worse; figures that an expectation limits come first."""
    ordered = sorted(apart, key=lambda each: bool(each.key.where))
    return [(each.group, name_of(each.key), each.is_worse) for each in ordered]


def _sides(groups: Sequence[Group], apart: Sequence[tuple[str, str, bool]]) -> Iterator[str]:
    """Yield for each other group in which figures it is worse or better than the first; nothing if in none."""
    for group in groups[1:]:
        worse, better = ([name for label, name, is_worse in apart if label == group.label and is_worse is side]
                         for side in (True, False))  # fmt: skip
        first, then = ("worse", worse), ("better", better)
        if better and not worse:
            first, then = then, first
        if worse or better:
            also = f", {then[0]} in {_few(then[1])}" if then[1] else ""
            yield f"{group.label} is {first[0]} than {groups[0].label} in {_few(first[1])}{also}"


def _few(names: Sequence[str]) -> str:
    """Return 'a, b and 3 more figures'; one more is named."""
    shown = names if len(names) <= _MOST_OF_SIDE + 1 else names[:_MOST_OF_SIDE]
    if len(shown) < len(names):
        return f"{', '.join(shown)} and {len(names) - len(shown)} more figures"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _of(name: str, group: str, several: bool) -> str:
    return f"{name} of {group}" if several else name


def _names(found: Sequence[str]) -> str:
    more = [f"and {len(found) - _MOST_NAMES} more"] if len(found) > _MOST_NAMES else []
    return ", ".join([*found[:_MOST_NAMES], *more])
