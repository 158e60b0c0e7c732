"""The table case by method of location as Markdown. PURE."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.locating.methods import METHODS
from hpn.failover.locating.rounds import Score
from tests.product.location_cells import CASES, LOAD, LOW_LOAD, TOPOLOGIES, TRAFFIC, Case

TOLD = f"""\
# Which faults are located, by which method

Written by `make location-table`: faults drawn at random, in turn, in virtual time.
Probes ([`probes`, `covering`](drills.md#workload)) take {LOAD} of a NIC, and {LOW_LOAD} for losses below 1 %.
A fault is *located* if the last answers before its repair name its cable or node, and no wrong direction. Of two at
once, both are to be named first. *Precise*: of faults with an answer, those whose last one was
right. The first table has losses of 1 % and more. Faults that no observation met do not count. Shares are in %, in
brackets the 95 % interval (Wilson). Times are medians, to the first answer after which none was wrong.
Faults last {TRAFFIC["broken"].lasts_s} s, below 1 % {TRAFFIC["rare"].lasts_s} s, and {TRAFFIC["job"].lasts_s} s in
jobs and loaded networks. Healthy runs are asked for losses and for delays.

"""
PICTURES = """
![Answers that name the fault over the time since it began, by share of lost packets](pictures/location-time.svg)

![Faults located before their repair over the load of probes, by share of lost packets](pictures/location-rate.svg)

Slower probes are computed: packets of the same runs, left out at random.
"""
NOT_SHOWN = ": no wrong answer"


@dataclass(frozen=True, slots=True)
class Told:
    """A fault's case, and the score of what was told of it."""

    case: Case
    score: Score

    @property
    def counts(self) -> bool:
        """True if it could be told, or is to stay untold."""
        return self.score.lost > 0 or not self.case.is_shown

    @property
    def is_right(self) -> bool:
        """True if the last answers name it; of what is not shown, if none was wrong."""
        return self.score.stable_ns is not None if self.case.is_shown else not self.score.wrong


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method made of a source of a run; ``told``: nothing where nothing was broken."""

    run: str
    topology: str
    source: str
    method: str
    told: tuple[Told, ...]
    false_alarms: int


def page(answers: Sequence[Answer]) -> str:
    """Return the page."""
    by_case = (
        (case.name + ("" if case.is_shown else NOT_SHOWN), case.source, _of_case(case)) for case in CASES.values()
    )
    by_fabric = ((name, "loss", _of_fabric(name)) for name in TOPOLOGIES)
    lines = (
        *_summary(answers),
        "",
        *_rows(answers, "case", by_case),
        "",
        *_rows(answers, "fabric", by_fabric),
    )
    return TOLD + _extent(answers) + "\n\n" + "\n".join(lines) + "\n" + PICTURES


def _extent(answers: Sequence[Answer]) -> str:
    """Return how much the page is made of: faults that some observation met, runs, and healthy ones."""
    first = [each for each in answers if each.method == next(iter(METHODS))]
    faults = sum(told.counts for each in first for told in each.told)
    runs = {each.run for each in first}
    healthy = runs - {each.run for each in first if each.told}
    return f"{faults:,} faults in {len(runs)} runs, {len(healthy)} of which are healthy."


def _of_case(case: Case) -> Callable[[Answer, Told], bool]:
    return lambda _, told: told.case == case


def _of_fabric(name: str) -> Callable[[Answer, Told], bool]:
    return lambda answer, told: answer.topology == name and told.case.source == "loss" and told.case.is_shown


def _summary(answers: Sequence[Answer]) -> Iterator[str]:
    yield "| method | located | precise | answers while nothing was wrong | healthy runs with one |"
    yield "|---|---|---|---|---|"
    for method in METHODS:
        mine = [each for each in answers if each.method == method]
        found = [told for each in mine for told in each.told if told.counts and told.case.is_plain]
        answered = [told for told in found if told.score.rounds]
        healthy = {each.run for each in mine} - {each.run for each in mine if each.told}
        alarms = sum(each.false_alarms for each in mine)
        wrong = len({each.run for each in mine if each.run in healthy and each.false_alarms})
        yield (
            f"| {method} | {_share(sum(told.is_right for told in found), len(found))} |"
            f" {_share(sum(told.is_right for told in answered), len(answered))} | {alarms} |"
            f" {_share(wrong, len(healthy))} |"
        )


def _rows(
    answers: Sequence[Answer], what: str, names: Iterator[tuple[str, str, Callable[[Answer, Told], bool]]]
) -> Iterator[str]:
    yield f"| {what} | source | faults | {' | '.join(METHODS)} |"
    yield "|---|---|---|" + "---|" * len(METHODS)
    for name, source, is_of in names:
        found = {
            method: [
                told
                for each in answers
                if each.method == method
                for told in each.told
                if is_of(each, told) and told.counts
            ]
            for method in METHODS
        }
        count = max(map(len, found.values()))
        if count:
            yield f"| {name} | {source} | {count} | {' | '.join(map(_cell, found.values()))} |"


def _cell(found: Sequence[Told]) -> str:
    share = _share(sum(each.is_right for each in found), len(found))
    times = [each.score.stable_ns / 1e9 for each in found if each.case.is_shown and each.score.stable_ns is not None]
    return f"{share}, {statistics.median(times):.1f} s" if times else share


def _share(count: int, of: int, z: float = 1.959964) -> str:
    """Return a share with its Wilson interval."""
    if not of:
        return "-"
    share = count / of
    middle, scale = share + z * z / (2 * of), 1 + z * z / of
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = (middle - half) / scale, (middle + half) / scale
    return f"{_percent(share)} ({_percent(max(low, 0))}-{_percent(min(high, 1))})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0")
