"""Verdict of a drill (DESIGN rule 8): checks of expectations against measurements, and their combination.

Changes when a measured figure is compared with a limit in another way. Exit codes 2 and 3 are raised as errors
(``testbed.errors``); a verdict is pass (0), fail (1) or inconclusive (4).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hpn.results.judge.repeats.statistic import Statistic

_LIMIT = re.compile(r"(.+) (?:below|at most|above|at least) -?[0-9.].*", re.DOTALL)
_UPPER, _STRICT = frozenset({"below", "at_most"}), frozenset({"below", "above"})
_LOWER = frozenset({"at_least", "above"})
_GAIN = re.compile(r"\b(goodput|busbw|iterations (during|after))\b")
_HARM = re.compile(
    r"\b(outage|impairment|gap|lost|loss|impaired|deaths|unrecovered|wrong|retransmitted|incomplete|detect|switch|converge|"
    r"converged|recover|downtime|time|queue|drops|pause|storms|deadlocks|imbalance|apart|fct|floor|located|alarms|drained|"
    r"bypass)\b"
)
"""Figures of which more is better, and worse, whatever the limit: for checks of an older hpn, which do not tell."""


class Outcome(StrEnum):
    """An outcome; ``exit_code`` is the command's."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> int:
        """Exit code: 0, 1 or 4."""
        return {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 4}[self]


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation, judged.

    ``margin`` is the room left: positive when kept, negative when broken. Of a lower bound on a time it is the most
    that is left; None where it is below zero and nobody knows how far.
    """

    text: str  # the expectation as written: 'worst outage < 50 ms'
    outcome: Outcome
    measured: float | None = None
    limit: float | None = None
    margin: float | None = None
    unit: str = ""
    low: float | None = None  # the ends of the interval that ``measured`` stands for; equal when told exactly
    high: float | None = None  # None beside ``low``: there is none, ``measured`` is a lower bound
    evidence: str = ""  # which flow, edge or event shows it, or why it could not be judged
    bound: str = ""  # how ``limit`` is meant: below, at_most, above, at_least; '' for a fact
    open_ended: bool = False  # ``measured`` is a lower bound: what it is of had not ended
    over: Statistic = Statistic.EVERY  # what the limit holds for when the drill is repeated
    never: bool = False  # what it is of will never end, or what was expected did not happen at all
    more_is_worse: bool | None = None  # whatever the limit; None for a fact, and in folders of an older hpn

    @property
    def worse_if_more(self) -> bool:
        """True if more of the figure is worse; where the folder does not tell, by its words, else by its limit."""
        if self.more_is_worse is not None:
            return self.more_is_worse
        if _GAIN.search(self.subject):
            return False
        return self.bound not in _LOWER or bool(_HARM.search(self.subject))

    @property
    def is_upper(self) -> bool:
        """True if its limit is an upper one."""
        return self.bound in _UPPER

    @property
    def subject(self) -> str:
        """Figure that the limit is on, in words: metric, flows, part of the fabric, fault and edge."""
        return without_limit(self.text)

    @property
    def uncertainty(self) -> float:
        """Distance from ``measured`` to the farther end of its interval."""
        if self.measured is None or self.low is None or self.high is None:
            return 0.0
        return max(self.measured - self.low, self.high - self.measured)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of one drill. ``reasons``, one line each, say why the run as a whole cannot be trusted.

    ``cost``: what its faults cost, in a sentence each; ``causes``: why, one line each, congestion first.
    ``notes``: what a reader must know to compare it with another network, one line each.
    """

    outcome: Outcome
    checks: tuple[Check, ...]
    reasons: tuple[str, ...] = ()
    cost: str = ""
    causes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code: 0, 1 or 4."""
        return self.outcome.exit_code

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why an inconclusive run could not be measured well; a figure too near to its limit is none."""
        if self.outcome is not Outcome.INCONCLUSIVE:
            return ()
        unmeasured = (c for c in self.checks if c.outcome is Outcome.INCONCLUSIVE and c.measured is None)
        return (*self.reasons, *(f"{check.text}: {check.evidence}" for check in unmeasured))


def without_limit(text: str) -> str:
    """Return 'worst outage of hit flows' for 'worst outage of hit flows below 50 ms'.

    A text without a limit is unchanged.
    """
    found = _LIMIT.fullmatch(text)
    return found[1] if found else text


def at_most(
    text: str,
    measured: float | None,
    limit: float,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    evidence: str = "",
    strict: bool = False,
) -> Check:
    """Expect ``measured <= limit``, ``<`` if ``strict``.

    Inconclusive if the interval from ``low`` to ``high`` (each ``measured`` itself if None) contains the limit, or if
    there is no figure.
    """
    bound = "below" if strict else "at_most"
    return held(Check(text, Outcome.INCONCLUSIVE, measured, limit, None, unit, low, high, evidence, bound))


def at_least(
    text: str,
    measured: float | None,
    limit: float,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    evidence: str = "",
    strict: bool = False,
) -> Check:
    """Expect ``measured >= limit``, ``>`` if ``strict``: the mirror image of ``at_most``."""
    bound = "above" if strict else "at_least"
    return held(Check(text, Outcome.INCONCLUSIVE, measured, limit, None, unit, low, high, evidence, bound))


def held(check: Check) -> Check:
    """Compare the measured value with the limit, as ``bound`` says.

    A lower bound breaks an upper limit if it is beyond it, or if the outage never ends; otherwise the result is
    unknown.
    """
    sign, strict = 1 if check.is_upper else -1, check.bound in _STRICT
    if check.measured is None or check.limit is None:
        outcome = Outcome.FAIL if check.never else Outcome.INCONCLUSIVE
        return replace(check, outcome=outcome, low=None, high=None)
    low = check.measured if check.low is None else check.low
    high = math.inf if check.open_ended else check.measured if check.high is None else check.high
    best, worst = sorted((sign * low, sign * high))
    limit = sign * check.limit
    kept = worst < limit if strict else worst <= limit
    broken = best >= limit if strict else best > limit
    margin: float | None = limit - sign * check.measured
    if check.never and sign > 0 and not broken:
        broken, margin = True, None
    outcome = Outcome.PASS if kept else Outcome.FAIL if broken else Outcome.INCONCLUSIVE
    return replace(check, outcome=outcome, margin=margin, low=low, high=None if check.open_ended else high)


def holds(text: str, true: bool | None, *, evidence: str = "") -> Check:
    """Expect a fact; None means unknown."""
    outcome = Outcome.INCONCLUSIVE if true is None else Outcome.PASS if true else Outcome.FAIL
    return Check(text, outcome, evidence=evidence)


def decide(checks: Sequence[Check], reasons: Sequence[str] = ()) -> Verdict:
    """Combine checks into a verdict.

    Any reason makes the run inconclusive; otherwise a failed check fails it. Otherwise an inconclusive check makes it
    inconclusive.

    ``reasons`` come from the measurement (``DrillMetrics.inconclusive``) and from the host if it was starved
    (``failover.analysis.hostload``): a starved run is never a pass or a fail.
    """
    found = tuple(reasons) if checks else (*reasons, "nothing was checked: the drill has no expectations")
    outcomes = {check.outcome for check in checks}
    if found:
        outcome = Outcome.INCONCLUSIVE
    elif Outcome.FAIL in outcomes:
        outcome = Outcome.FAIL
    else:
        outcome = Outcome.INCONCLUSIVE if Outcome.INCONCLUSIVE in outcomes else Outcome.PASS
    return Verdict(outcome, tuple(checks), found)


def worst_exit_code(verdicts: Iterable[Verdict]) -> int:
    """Return one exit code for several runs: a fail outweighs an inconclusive run, which outweighs a pass."""
    codes = {verdict.exit_code for verdict in verdicts}
    return next((code for code in (1, 4) if code in codes), 0)
