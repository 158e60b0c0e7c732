"""Repeats of a drill: each expectation over all runs, the verdict over them, and their figures as text. Pure.

Changes when a summary of repeats has another figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import TypeAdapter

from hpn.failover.analysis.phrases import many
from hpn.results.judge.repeats.statistic import Statistic
from hpn.results.judge.verdict import Check, Outcome, Verdict
from hpn.results.text.bounds import NEVER
from hpn.results.text.bounds import at_least as at_least_text
from hpn.results.text.values import rounded_up, span_text, value_text

UPPER = {"below", "at_most"}
_SAYS_NOTHING = 0.99


@dataclass(frozen=True, slots=True)
class Estimate:
    """One expectation over all runs. None means 'never recovered' in a figure, and 'no figure' if it is in all of them.

    ``low`` and ``high``: ends of the median's 95 % bootstrap interval, with each run represented by its own interval. A
    fact (state restored) has no limit and no figures.
    """

    text: str
    outcome: Outcome
    runs: int  # that the outcome is based on
    left_out: int  # runs without a result
    kept: int  # number of ``runs`` that kept it by themselves
    unit: str = ""
    bound: str = ""
    over: Statistic = Statistic.EVERY
    limit: float | None = None
    worst: float | None = None
    worst_run: int | None = None  # number of the worst run
    median: float | None = None
    p95: float | None = None  # 95 % of the runs are no worse; the low tail if higher is better
    low: float | None = None
    high: float | None = None
    worst_low: float | None = None  # interval of the worst run's figure
    worst_high: float | None = None
    unseen: float | None = None  # largest upper bound of runs that measured 0
    median_unseen: float | None = None  # median of the runs' upper bounds; None in files of an older hpn
    p95_unseen: float | None = None
    interval: bool = False  # True if there is one, which needs enough runs
    open_from: float | None = None  # smallest lower bound of a run; larger figures are lower bounds, too
    median_open: bool = False  # ``median`` is a lower bound, though it may be below ``open_from``
    too_few: str = ""  # why a statistic could not be judged on so few runs
    subject: str = ""  # ``text`` without its limit, as ``Check.subject``; '' in files of an older hpn


@dataclass(frozen=True, slots=True)
class Repeated:
    """Repeats of one drill. ``left_out``: number of untrusted runs; ``answers``: outcomes of the single runs.

    ``rate_below``: upper bound of the failure rate, at 95 % confidence; 1.0 if unknown.
    """

    drill: str
    answers: tuple[Outcome, ...]
    left_out: int
    unstable: bool  # some runs pass and some fail
    outcome: Outcome
    reasons: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    rate_below: float = 1.0
    note: str = ""  # what the runs share and a reader could take for a draw

    @property
    def name(self) -> str:
        """Name: 'link-down over 5 repeats'."""
        return f"{self.drill} over {len(self.answers)} repeats"

    @property
    def verdict(self) -> Verdict:
        """Result in the form of a run's verdict; its exit code is that of all repeats.

        A limit that a trusted run broke stays broken, whatever the others say. So a fail has no reasons for doubt.
        """
        reasons = () if self.outcome is Outcome.FAIL else self.reasons
        return Verdict(self.outcome, tuple(_as_check(each) for each in self.estimates), reasons)

    @property
    def proof(self) -> str:
        """Proof: '10 of 10 trusted runs pass: failure rate below 26 % at 95 % confidence'; '' if nothing is proved."""
        trusted, passed = len(self.answers) - self.left_out, self.answers.count(Outcome.PASS)
        if self.rate_below > _SAYS_NOTHING:
            return ""
        return (
            f"{passed} of {trusted} trusted runs pass: failure rate below {percent(self.rate_below)} at 95 % confidence"
        )


_REPEATED = TypeAdapter(tuple[Repeated, ...])


def _as_check(estimate: Estimate) -> Check:
    """Return a check for reports; its measured value is the worst run, or the median if that is judged."""
    is_median = estimate.over is Statistic.MEDIAN
    measured = estimate.median if is_median else estimate.worst
    told = estimate.limit is not None and estimate.runs > 0
    margin = None
    if measured is not None and estimate.limit is not None:
        room = estimate.limit - measured
        margin = room if estimate.bound in UPPER else -room
    return Check(
        text=estimate.text,
        outcome=estimate.outcome,
        measured=measured,
        limit=estimate.limit,
        margin=margin,
        unit=estimate.unit,
        low=estimate.low if is_median else estimate.worst_low,
        high=estimate.high if is_median else estimate.worst_high,
        evidence=_evidence(estimate),
        bound=estimate.bound,
        open_ended=_is_open(measured, estimate) or (is_median and estimate.median_open),
        over=estimate.over,
        never=told and measured is None and estimate.outcome is Outcome.FAIL,
    )


def _is_open(value: float | None, of: Estimate) -> bool:
    """Return True if a figure is a lower bound."""
    return value is not None and of.open_from is not None and value >= of.open_from


def _evidence(estimate: Estimate) -> str:
    said = [f"kept in {estimate.kept} of {many(estimate.runs, 'run')}"]
    if estimate.worst_run is not None:
        worst, middle, _ = figures(estimate)
        said = [f"worst {worst} in run {estimate.worst_run}", f"median {middle}", *said]
    if estimate.interval:
        said.insert(2, f"its 95 % bootstrap interval {' '.join(median_ends(estimate))}")
    said += [f"{estimate.left_out} left out"] if estimate.left_out else []
    return ", ".join([*said, estimate.too_few] if estimate.too_few else said)


def figures(of: Estimate) -> tuple[str, str, str]:
    """Return worst, median and p95 as text; 'never' without recovery, '< 0.84 ms' below the resolution."""
    bounds = (of.unseen if bound is None else bound for bound in (of.median_unseen, of.p95_unseen))
    middle, p95 = (_shown(*each, of) for each in zip((of.median, of.p95), bounds, strict=True))
    middle = at_least_text(middle, open_ended=of.median_open and not _is_open(of.median, of))
    return _shown(of.worst, of.unseen, of), middle, p95


def _shown(value: float | None, unseen: float | None, of: Estimate) -> str:
    if value is None:
        return NEVER
    if value == 0 and unseen:
        return f"< {value_text(rounded_up(unseen), of.unit)}"
    return at_least_text(value_text(value, of.unit), open_ended=_is_open(value, of))


def median_ends(of: Estimate) -> tuple[str, str]:
    """Return the interval of the median as text, '0.00' and 'to 0.83 ms'; its ends are bounds, even 0."""
    if of.low is None or of.high is None:
        low, high = (NEVER if end is None else value_text(end, of.unit) for end in (of.low, of.high))
        return low, f"to {high}"
    low, _, high = span_text(of.low, of.high, of.unit).partition(" to ")
    return low, f"to {high or low}"


def percent(rate: float) -> str:
    """Return a bound on a rate, rounded up so that it still holds: '26 %', '2.96 %'."""
    digits = 0 if rate >= 0.1 else 2
    return f"{math.ceil(rate * 100 * 10**digits) / 10**digits:.{digits}f} %"


def repeats_json(found: Iterable[Repeated]) -> bytes:
    """Return the content of ``repeats.json``: one object per drill."""
    return _REPEATED.dump_json(tuple(found), indent=2)
