"""Location over time: what a method answers at regular moments of a run, and how it compares with the truth. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpn.failover.locating.methods import METHODS, Method
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.parts import Part, PartKind, Suspect, Suspects
from hpn.failover.locating.seen import HEALTHY_LOSS, Accused, Counts, Reals

STEP_NS = 100_000_000
WINDOWS_NS = (500_000_000, 3_000_000_000, 30_000_000_000)
"""Intervals that a round looks back over, if the method is not sure of all since the first loss in the longest."""

_OVER, _NEARLY_OVER = 9.0, 4.5
"""Natural logarithm of the odds that a fault has ended: with none of 9 expected losses, wrong in one case of 8,000."""


@dataclass(frozen=True, slots=True)
class Round:
    """Answer at ``at_ns`` (CLOCK_MONOTONIC), best first, from the packets of the ``window_ns`` before.

    ``doubt``: why the last of them do not count, or ''; the answer is then inconclusive.
    """

    at_ns: int
    window_ns: int
    accused: tuple[Accused, ...]
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """Comparison of the answers with a fault. Times are ns from the fault on; None: never.

    ``first_ns``: until the first answer whose first suspect holds the fault. ``stable_ns``: until the answer after
    which none was wrong before the repair. ``wrong``: answers, from the fault on, whose first suspect does not hold it.
    """

    first_ns: int | None
    stable_ns: int | None
    rounds: int
    wrong: int
    lost: int = 0  # packets lost meanwhile on known paths across it: without any nobody can tell


def rounds(seen: Observed, method: str, step_ns: int = STEP_NS) -> Iterator[Round]:
    """Yield the answers of a method, each ``step_ns`` one; see ``Answering``."""
    step = max(1, step_ns // seen.bins.width_ns)
    answering = Answering(method, step)
    for end in range(step, seen.bins.count + 1, step):
        yield answering.at(seen, end)


class Answering:
    """A method's answers one after the other, ``step`` bins apart.

    While nothing new is lost an answer stands, until what it accuses has carried packets well: when routes lead round a
    fault, nobody crosses it any more. What was lost before an answer was over is explained, and does not count again.
    """

    def __init__(self, method: str, step: int = 1) -> None:
        self._method = METHODS[method]
        self._step = step
        self._last: Round | None = None
        self._since = self._begin = 0

    def at(self, seen: Observed, end: int) -> Round:
        """Return the answer at bin ``end``."""
        last, step = self._last, self._step
        if last is not None and last.accused and not seen.between(end - step, end).lost.any():
            accused = still_there(seen, last.accused, range(self._begin, end, step))
            found = replace(last, at_ns=seen.at_ns(end), accused=accused)
            self._since = self._since if accused else end
        else:
            found = _round(seen, self._method, self._since, end, step)
            self._begin = max(self._since, end - found.window_ns // seen.bins.width_ns)
        self._last = found
        return found

    def forget(self, bins: int) -> None:
        """Count bins anew after the first ``bins`` were dropped."""
        self._since, self._begin = max(0, self._since - bins), max(0, self._begin - bins)

    def regroup(self, suspects: Suspects) -> None:
        """Name the accused anew after other paths became known; one that no path crosses is dropped."""
        if self._last is not None:
            anew = ((each, suspects.of(each.suspect.parts[0])) for each in self._last.accused)
            accused = tuple(replace(each, suspect=suspect) for each, suspect in anew if suspect is not None)
            self._last = replace(self._last, accused=accused)


def _round(seen: Observed, method: Method, since: int, end: int, step: int) -> Round:
    """Return the answer at a bin from the bins after ``since``."""
    locate, width_ns = method.load(), seen.bins.width_ns
    begin, accused = since, tuple[Accused, ...]()
    for begin in _begins(seen, since, end):
        found = still_there(seen, locate(seen.between(begin, end)), range(begin, end, step))
        if found and found[0].confidence >= method.sure:
            accused = found
            break
    return Round(seen.at_ns(end), (end - begin) * width_ns, accused)


def _begins(seen: Observed, since: int, end: int) -> Iterator[int]:
    """Yield the bins to look back to; none if nothing was lost: nobody is to be accused.

    From that of the first loss on a method is surest; those of the windows follow. Losses before a time in which as
    many again were due, and none came, are another matter. A bad observation of a healthy path may be the first; a
    fault just begun shows best in a short window then.
    """
    windows = [max(since, end - window_ns // seen.bins.width_ns) for window_ns in WINDOWS_NS]
    lost = seen.lost[:, windows[-1] : end + 1].sum(axis=0)
    lossy = np.flatnonzero(np.diff(lost))
    if not len(lossy):
        return
    rates = (lost[lossy[:-1] + 1] - lost[0]) / (lossy[:-1] - lossy[0] + 1)
    quiet = np.flatnonzero(rates * (np.diff(lossy) - 1) > _OVER)
    first = windows[-1] + int(lossy[quiet[-1] + 1 if len(quiet) else 0])
    yield from dict.fromkeys((first, *windows))


def still_there(seen: Observed, accused: Sequence[Accused], steps: range) -> tuple[Accused, ...]:
    """Return those that may still be at fault at the end of these steps of bins; what has most likely ended is last."""
    if not accused:
        return ()
    columns = [*steps, steps.stop]
    then = seen.between(steps.start, steps.stop)
    sent, lost = (np.diff(counts[:, columns], axis=1) for counts in (seen.sent, seen.lost))
    hit = [then.suspects.across(each.suspect) & (then.lost > 0) for each in accused]
    rates = np.array([each.loss for each in accused])
    all_rates = np.where(np.array(hit), rates[:, None], 0).sum(axis=0) + seen.healthy
    over = [_over(sent[rows], lost[rows], all_rates[rows], float(rate)) for rows, rate in zip(hit, rates, strict=True)]
    found = [(odds > _NEARLY_OVER, each) for odds, each in zip(over, accused, strict=True) if odds <= _OVER]
    return tuple(each for _, each in sorted(found, key=lambda pair: pair[0]))


def _over(sent: Counts, lost: Counts, all_rates: Reals, rate: float) -> float:
    """Return the odds (natural logarithm) that a suspect has stopped at one of these steps (Page's sums, 1954).

    Arrays: paths that it hit by steps. Losses of a step are Poisson, by the rates of all that is accused of a path. The
    rate is of all steps; a suspect that has stopped lost as much from its first to its last loss.
    """
    packets, lossy = sent.sum(axis=0), np.flatnonzero(lost.any(axis=0))
    meanwhile = int(packets[lossy[0] : lossy[-1] + 1].sum()) if len(lossy) else 0
    others = np.maximum(all_rates - rate, HEALTHY_LOSS)
    rate = min(rate * packets.sum() / meanwhile, 1.0) if meanwhile else rate
    gains = rate * packets + np.log(others / (others + rate)) @ lost
    return float(np.cumsum(gains[::-1]).max(initial=0.0))


def score(found: Sequence[Round], truth: Sequence[Suspect], from_ns: int, until_ns: int, at_once: int = 1) -> Score:
    """Compare the answers given from ``from_ns`` to ``until_ns`` with a fault in any of the suspects in ``truth``.

    While ``at_once`` faults stand, as many suspects of an answer may hold it.
    """
    told = [each for each in found if from_ns < each.at_ns <= until_ns and each.accused]
    right = [is_right(each, truth, at_once) for each in told]
    first = next((each.at_ns for each, fits in zip(told, right, strict=True) if fits), None)
    last_wrong = max((at for at, fits in enumerate(right) if not fits), default=-1)
    stable = told[last_wrong + 1].at_ns if last_wrong + 1 < len(told) else None
    return Score(
        None if first is None else first - from_ns,
        None if stable is None else stable - from_ns,
        len(told),
        right.count(False),
    )


def is_right(told: Round, truth: Sequence[Suspect], count: int = 1) -> bool:
    """Return True if one of the first ``count`` suspects of an answer is in ``truth``."""
    return any(each.suspect in truth for each in told.accused[:count])


def truths(seen: Observed, parts: Sequence[Part]) -> tuple[Suspect, ...]:
    """Return the suspects that hold one of these parts; none if no path crosses them.

    Of a fault in one direction its link is right as well, and of a fault in both either direction: the cable to look at
    is the same, 007 knows no directions, and few losses may all be of one.
    """
    found = (seen.suspects.of(each) for part in parts for each in _same_cable(part))
    return tuple(dict.fromkeys(suspect for suspect in found if suspect is not None))


def _same_cable(part: Part) -> Iterator[Part]:
    yield part
    if part.kind is PartKind.DIRECTION:
        yield Part(PartKind.LINK, part.name)
    if part.kind is PartKind.LINK:
        yield from (Part(PartKind.DIRECTION, part.name, upward) for upward in (True, False))
