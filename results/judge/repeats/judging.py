"""Verdict over repeats of one drill: every run must keep every limit, unless a statistic is requested. Pure.

Changes when the rule of judging repeats changes. A limit that one trusted run breaks is broken; if a run's interval
contains it, the result is inconclusive. An expectation with a statistic is judged by it. The median counts by both ends
of its interval, the p95 by the number of runs that keep the limit. Runs that cannot be trusted, or lack a figure, are
left out and counted. If more than a third is left out, nothing passes. Imports numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from hpn.failover.analysis.phrases import many
from hpn.results.judge.repeats.binomial import rate_at_least, rate_at_most
from hpn.results.judge.repeats.bootstrap import median_interval
from hpn.results.judge.repeats.repeated import UPPER, Estimate, Repeated
from hpn.results.judge.repeats.spread import nearest_rank
from hpn.results.judge.repeats.statistic import LEAST_RUNS, Statistic
from hpn.results.judge.verdict import Check, Outcome, Verdict, at_least, at_most, decide

_STRICT = {"below", "above"}
_BEYOND_P95 = 0.05


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
    sign = 1 if found.bound in UPPER else -1
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
        median_open=math.isfinite(median(values)) and median(_upper_ends(told, values)) == math.inf,
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


def _upper_ends(told: Sequence[tuple[int, Check]], values: Sequence[float]) -> Sequence[float]:
    """Return the values, infinite for lower bounds."""
    ends = [math.inf if check.open_ended else value for (_, check), value in zip(told, values, strict=False)]
    return [*ends, *values[len(told) :]]


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
    upper = found.bound in UPPER
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
