"""Verdict over repeats of one drill: every run must keep every limit, unless a statistic is requested. Pure.

Changes when the rule of judging repeats changes. A limit that one trusted run breaks is broken; if a run's interval
contains it, the result is inconclusive. An expectation with a statistic is judged by it. The median counts by both ends
of its interval, the p95 by the number of runs that keep the limit. Runs that cannot be trusted, or lack a figure, are
left out and counted. If more than a third is left out, nothing passes. Imports numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pydantic import TypeAdapter

from hpn.failover.analysis.phrases import many
from hpn.results.judge.repeats.binomial import rate_at_least, rate_at_most
from hpn.results.judge.repeats.bootstrap import median_interval
from hpn.results.judge.repeats.spread import nearest_rank
from hpn.results.judge.repeats.statistic import LEAST_RUNS, Statistic
from hpn.results.judge.verdict import Check, Outcome, Verdict, at_least, at_most, decide
from hpn.results.text.bounds import NEVER
from hpn.results.text.bounds import at_least as at_least_text
from hpn.results.text.values import rounded_up, span_text, value_text

_UPPER, _STRICT = {"below", "at_most"}, {"below", "above"}
_BEYOND_P95 = 0.05
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


def judge_repeats(drill: str, verdicts: Sequence[Verdict], numbers: Sequence[int] = ()) -> Repeated:
    """Return the verdict over all runs of one drill; every run's own verdict is unchanged.

    ``numbers`` are those of the runs, by default from 1.
    """
    called = numbers or range(1, len(verdicts) + 1)
    trusted = [(number, verdict) for number, verdict in zip(called, verdicts, strict=True) if not verdict.reasons]
    left_out = len(verdicts) - len(trusted)
    texts = dict.fromkeys(check.text for _, verdict in trusted for check in verdict.checks)
    estimates = tuple(_estimate(text, trusted, len(verdicts)) for text in texts)
    reasons = []
    if 3 * left_out > len(verdicts):
        first = next(verdict.reasons[0] for verdict in verdicts if verdict.reasons)
        reasons.append(
            f"{left_out} of {many(len(verdicts), 'run')} cannot be trusted, more than a third; first: {first}"
        )
    elif not verdicts:
        reasons.append("no run was made")
    answers = tuple(verdict.outcome for verdict in verdicts)
    outcome = decide([Check(each.text, each.outcome) for each in estimates], reasons).outcome
    if any(each.outcome is Outcome.FAIL for each in estimates):
        outcome = Outcome.FAIL
    return Repeated(
        drill=drill,
        answers=answers,
        left_out=left_out,
        unstable={Outcome.PASS, Outcome.FAIL} <= set(answers),
        outcome=outcome,
        reasons=tuple(reasons),
        estimates=estimates,
        rate_below=rate_at_most(len(trusted) - answers.count(Outcome.PASS), len(trusted)),
    )


def _estimate(text: str, trusted: Sequence[tuple[int, Verdict]], total: int) -> Estimate:
    stated = [(number, check) for number, verdict in trusted for check in verdict.checks if check.text == text]
    unstated = len(trusted) - len(stated)  # a verdict contains some checks only if they are broken
    told = [(number, check) for number, check in stated if _tells(check)]
    first = stated[0][1]
    runs = len(told) + unstated
    answers = [check.outcome for _, check in told] + [Outcome.PASS] * unstated
    limit = first.limit
    if limit is None:
        kept = answers.count(Outcome.PASS)
        return Estimate(text, _gate(answers, total), runs, total - runs, kept, subject=first.subject)
    found = Estimate(
        text=text,
        outcome=_gate(answers, total),
        runs=runs,
        left_out=total - runs,
        kept=answers.count(Outcome.PASS),
        unit=first.unit,
        bound=first.bound,
        over=first.over,
        limit=limit,
        subject=first.subject,
    )
    values = [_value(check) for _, check in told] + [limit] * unstated
    return _over_statistic(_with_figures(found, told, values), limit, told, total) if values else found


def _tells(check: Check) -> bool:
    """Return True if a run has a figure, however near to its limit, or an outcome."""
    return check.measured is not None or check.outcome is not Outcome.INCONCLUSIVE


def _gate(answers: Sequence[Outcome], total: int) -> Outcome:
    """Return the outcome over runs: none may break the limit or be too near, at most a third may be missing."""
    if Outcome.FAIL in answers:
        return Outcome.FAIL
    missing = 3 * (total - len(answers)) > total or not answers
    return Outcome.INCONCLUSIVE if missing or Outcome.INCONCLUSIVE in answers else Outcome.PASS


def _value(check: Check) -> float:
    """Return the measured value, which may be a lower bound; infinite if the awaited event never came."""
    if check.measured is None or (check.never and check.is_upper):
        return math.inf if check.is_upper else -math.inf
    return check.measured


def _with_figures(found: Estimate, told: Sequence[tuple[int, Check]], values: Sequence[float]) -> Estimate:
    """Return the estimate with figures.

    ``values``: those of ``told``, then of runs without the check, as nothing broke.
    """
    low, high = _interval(told, values) if len(values) >= LEAST_RUNS[Statistic.MEDIAN] else (math.nan, math.nan)
    sign = 1 if found.bound in _UPPER else -1
    ranked = [(check.outcome is Outcome.FAIL, sign * _value(check), _unseen(check), -number) for number, check in told]
    worst = max(range(len(told)), key=ranked.__getitem__) if told else None
    worst_check = None if worst is None else told[worst][1]
    bounds = [_unseen(check) or value for (_, check), value in zip(told, values[: len(told)], strict=True)]
    bounds += values[len(told) :]
    return replace(
        found,
        worst=_finite(values[worst or 0]),
        worst_run=None if worst is None else told[worst][0],
        worst_low=worst_check.low if worst_check else None,
        worst_high=worst_check.high if worst_check else None,
        unseen=max((_unseen(check) for _, check in told), default=0.0) or None,
        median_unseen=_finite(median(bounds)),
        p95_unseen=_finite(sign * nearest_rank([sign * value for value in bounds], 95)),
        median=_finite(median(values)),
        p95=_finite(sign * nearest_rank([sign * value for value in values], 95)),
        low=_finite(low),
        high=_finite(high),
        interval=len(values) >= LEAST_RUNS[Statistic.MEDIAN],
        open_from=min((_value(check) for _, check in told if check.open_ended and not check.never), default=None),
    )


def _unseen(check: Check) -> float:
    """Return the upper bound of a run that measured 0."""
    return check.high or 0.0 if check.measured == 0 else 0.0


def _interval(told: Sequence[tuple[int, Check]], values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median: the low end for the runs' low ends, the high end for their high ends."""
    ends = [
        (value, value) if check.low is None or math.isinf(value) else (check.low, _upper_end(check, value))
        for (_, check), value in zip(told, values[: len(told)], strict=True)
    ]
    ends += [(value, value) for value in values[len(told) :]]
    return median_interval([low for low, _ in ends])[0], median_interval([high for _, high in ends])[1]


def _upper_end(check: Check, value: float) -> float:
    """Return the largest possible value of a run's figure."""
    return math.inf if check.open_ended else value if check.high is None else check.high


def _over_statistic(found: Estimate, limit: float, told: Sequence[tuple[int, Check]], total: int) -> Estimate:
    """Return the estimate judged by the requested statistic, if any."""
    if found.over is Statistic.EVERY:
        return found
    if found.runs < (least := LEAST_RUNS[found.over]):
        few = "1 run tells" if found.runs == 1 else f"{found.runs} runs tell"
        why = f"{few} nothing of the {found.over} at 95 % confidence; {least} are needed"
        return replace(found, outcome=Outcome.INCONCLUSIVE, too_few=why)
    outcome = _judge_median(found, limit) if found.over is Statistic.MEDIAN else _judge_share(found, told)
    return replace(found, outcome=Outcome.INCONCLUSIVE if 3 * found.left_out > total else outcome)


def _judge_median(found: Estimate, limit: float) -> Outcome:
    """Pass if the far end of the interval keeps the limit, fail if the near end breaks it."""
    upper = found.bound in _UPPER
    low, high = (_or_inf(found.low, upper), _or_inf(found.high, upper))
    judged = at_most if upper else at_least
    return judged("", 0.0, limit, low=low, high=high, strict=found.bound in _STRICT).outcome


def _or_inf(value: float | None, upper: bool) -> float:
    return value if value is not None else math.inf if upper else -math.inf


def _judge_share(found: Estimate, told: Sequence[tuple[int, Check]]) -> Outcome:
    """Return the outcome for 95 % of such runs by exact binomial bounds; runs near the limit count as either."""
    broken = sum(check.outcome is Outcome.FAIL for _, check in told)
    if rate_at_most(found.runs - found.kept, found.runs) <= _BEYOND_P95:
        return Outcome.PASS
    return Outcome.FAIL if rate_at_least(broken, found.runs) > _BEYOND_P95 else Outcome.INCONCLUSIVE


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _as_check(estimate: Estimate) -> Check:
    """Return a check for reports; its measured value is the worst run, or the median if that is judged."""
    is_median = estimate.over is Statistic.MEDIAN
    measured = estimate.median if is_median else estimate.worst
    told = estimate.limit is not None and estimate.runs > 0
    margin = None
    if measured is not None and estimate.limit is not None:
        room = estimate.limit - measured
        margin = room if estimate.bound in _UPPER else -room
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
        open_ended=_is_open(measured, estimate),
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
