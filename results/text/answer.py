"""Answer whether groups of runs differ: by tests and intervals if available, else by ranges. Pure.

Changes when the answer goes by another rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.phrases import many
from hpn.results.comparison.differences import Difference, Finding
from hpn.results.comparison.drills import Comparison
from hpn.results.comparison.groups import Group
from hpn.results.text.comparison import name_of

if TYPE_CHECKING:  # imports numpy
    from hpn.results.comparison.science import DifferenceEvidence

_MOST_NAMES = 6
_TOLD = frozenset({Finding.MORE, Finding.LESS, Finding.NONE_SEEN})


def answer(groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[DifferenceEvidence]) -> str:
    """Return the answer in sentences; jobs that died come first.

    A figure differs if both its test and its interval say so. Ranges decide only for runs without a test.
    """
    return " ".join(filter(None, (survival(groups), *_of_figures(found, evidence))))


def answer_of(of: Comparison) -> str:
    """Return the answer; of single runs of a fault that is drawn, that they decide nothing."""
    if of.draw:
        return " ".join(filter(None, (survival(of.groups), f"Not determined by one run: {of.draw}.")))
    return answer(of.groups, of.found, of.evidence)


def _of_figures(found: Sequence[Difference], evidence: Sequence[DifferenceEvidence]) -> Iterator[str]:
    told = [each for each in found if each.finding in _TOLD]
    if not told:
        yield "They have no figure in common."
        return
    if evidence:
        yield from _by_tests(evidence)
    yield _by_ranges(told, tested=bool(evidence))
    if lacking := sum(each.finding is Finding.MISSING for each in found):
        yield f"{lacking} more were not measured by all."
    if moved := sum(each.finding is Finding.START_MOVED for each in found):
        yield f"{moved} more cannot be compared: they count from detect, which differs."


def survival(groups: Sequence[Group]) -> str:
    """Return the groups whose jobs died without a restart; '' if none did. The text precedes the figures."""
    jobs = [(group.label, [run.metrics.job for run in group.runs if run.metrics.job]) for group in groups]
    counted = [(label, [*map(_stays_dead, of)]) for label, of in jobs]
    if not any(any(dead) for _, dead in counted):
        return ""
    of = (f"{label}: in {sum(dead)} of {many(len(dead), 'run')}" for label, dead in counted if dead)
    return f"The job dies for good, {'; '.join(of)}."


def _stays_dead(job: JobMetrics) -> bool:
    return bool(job.deaths) and job.deaths[-1].restarted_at_ns is None


def _by_tests(evidence: Sequence[DifferenceEvidence]) -> Iterator[str]:
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


def _name(of: DifferenceEvidence, several: bool) -> str:
    return f"{name_of(of.key)} of {of.group}" if several else name_of(of.key)


def _names(found: Sequence[str]) -> str:
    more = [f"and {len(found) - _MOST_NAMES} more"] if len(found) > _MOST_NAMES else []
    return ", ".join([*found[:_MOST_NAMES], *more])
