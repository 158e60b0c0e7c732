"""Repeats of one drill judged as one: median, p95 and 95 % interval of every expectation, and a verdict on them. Pure.

Changes when the rule of judging repeats changes. It is: an expectation passes when the far end of the interval of its
median keeps the limit, fails when the near end breaks it, and is inconclusive in between. Whatever a run could not
tell is left out and counted; with more than a third left out nothing can be said. Imports numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from pydantic import TypeAdapter
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from results.bootstrap import median_interval
from results.compare import PUBLISHABLE_REPEATS, nearest_rank
from results.tables import table
from results.terminal import value_text
from results.verdict import Check, Outcome, Verdict, decide

_UPPER, _STRICT = {"below", "at_most"}, {"below", "above"}


@dataclass(frozen=True, slots=True)
class Estimate:
    """One expectation over all runs. None stands for 'never came back' in a figure, for 'no figure' in all of them.

    ``low`` and ``high`` are the ends of the 95 % bootstrap interval of the median. A fact (state restored) has no
    limit and no figures.
    """

    text: str
    outcome: Outcome
    runs: int  # that it is judged on
    left_out: int  # that could not tell
    kept: int  # of ``runs``, how many kept it by themselves
    unit: str = ""
    bound: str = ""
    limit: float | None = None
    median: float | None = None
    p95: float | None = None
    low: float | None = None
    high: float | None = None
    uncertainty: float = 0.0  # the largest of the runs


@dataclass(frozen=True, slots=True)
class Repeated:
    """All repeats of one drill. ``left_out`` counts runs that cannot be trusted, ``answers`` are the runs' own."""

    drill: str
    answers: tuple[Outcome, ...]
    left_out: int
    unstable: bool  # some runs pass and some fail
    outcome: Outcome
    reasons: tuple[str, ...]
    estimates: tuple[Estimate, ...]

    @property
    def name(self) -> str:
        """'link-down over 5 repeats'."""
        return f"{self.drill} over {len(self.answers)} repeats"

    @property
    def verdict(self) -> Verdict:
        """The same in the shape of a run's verdict; its exit code is that of all repeats."""
        return Verdict(self.outcome, tuple(_as_check(each) for each in self.estimates), self.reasons)


_REPEATED = TypeAdapter(tuple[Repeated, ...])


def judge_repeats(drill: str, verdicts: Sequence[Verdict]) -> Repeated:
    """The verdict over all runs of one drill; every run's own verdict stays as it is."""
    trusted = [verdict for verdict in verdicts if not verdict.reasons]
    left_out = len(verdicts) - len(trusted)
    texts = dict.fromkeys(check.text for verdict in trusted for check in verdict.checks)
    estimates = tuple(_estimate(text, trusted, len(verdicts)) for text in texts)
    reasons = []
    if 3 * left_out > len(verdicts):
        first = next(verdict.reasons[0] for verdict in verdicts if verdict.reasons)
        reasons.append(f"{left_out} of {len(verdicts)} runs cannot be trusted, more than a third; first: {first}")
    elif not verdicts:
        reasons.append("no run was made")
    answers = tuple(verdict.outcome for verdict in verdicts)
    return Repeated(
        drill=drill,
        answers=answers,
        left_out=left_out,
        unstable={Outcome.PASS, Outcome.FAIL} <= set(answers),
        outcome=decide([Check(each.text, each.outcome) for each in estimates], reasons).outcome,
        reasons=tuple(reasons),
        estimates=estimates,
    )


def _estimate(text: str, trusted: Sequence[Verdict], total: int) -> Estimate:
    stated = [check for verdict in trusted for check in verdict.checks if check.text == text]
    unstated = len(trusted) - len(stated)  # a verdict states some checks only when they are broken
    first = stated[0]
    if first.limit is None:
        return _fact(text, stated, unstated, total)
    told = [check for check in stated if check.measured is not None or check.outcome is Outcome.FAIL]
    values = [_value(check) for check in told] + [first.limit] * unstated
    outcome, low, high = Outcome.INCONCLUSIVE, math.nan, math.nan
    uncertainty = max((check.uncertainty for check in told), default=0.0)
    if values:
        low, high = median_interval(values)
        outcome = _judge(first, low, high, uncertainty)
    if 3 * (total - len(values)) > total:
        outcome = Outcome.INCONCLUSIVE
    return Estimate(
        text=text,
        outcome=outcome,
        runs=len(values),
        left_out=total - len(values),
        kept=sum(check.outcome is Outcome.PASS for check in told) + unstated,
        unit=first.unit,
        bound=first.bound,
        limit=first.limit,
        median=_finite(median(values)) if values else None,
        p95=_finite(nearest_rank(values, 95)) if values else None,
        low=_finite(low),
        high=_finite(high),
        uncertainty=uncertainty,
    )


def _value(check: Check) -> float:
    """What a run measured; beyond every limit when what it waited for never came."""
    upper = check.bound in _UPPER
    if check.measured is None or (check.open_ended and upper):
        return math.inf if upper else -math.inf
    return check.measured


def _judge(check: Check, low: float, high: float, uncertainty: float) -> Outcome:
    """Far and near end of the interval against the limit, each as room left; both must be told from the limit."""
    assert check.limit is not None
    ends = (check.limit - high, check.limit - low) if check.bound in _UPPER else (low - check.limit, high - check.limit)
    far, near = ends
    strict = check.bound in _STRICT
    if far >= uncertainty and (far > 0 or not strict):
        return Outcome.PASS
    if near <= -uncertainty and (near < 0 or strict):
        return Outcome.FAIL
    return Outcome.INCONCLUSIVE


def _fact(text: str, stated: Sequence[Check], unstated: int, total: int) -> Estimate:
    """A fact has no median: it holds when it held in every run that could tell."""
    told = [check.outcome for check in stated if check.outcome is not Outcome.INCONCLUSIVE] + [Outcome.PASS] * unstated
    left_out = total - len(told)
    outcome = Outcome.FAIL if Outcome.FAIL in told else Outcome.PASS
    if 3 * left_out > total or not told:
        outcome = Outcome.INCONCLUSIVE
    return Estimate(text, outcome, len(told), left_out, told.count(Outcome.PASS))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _as_check(estimate: Estimate) -> Check:
    """For reports that show checks: the median stands for what was measured."""
    margin = None
    if estimate.median is not None and estimate.limit is not None:
        room = estimate.limit - estimate.median
        margin = room if estimate.bound in _UPPER else -room
    return Check(
        text=estimate.text,
        outcome=estimate.outcome,
        measured=estimate.median,
        limit=estimate.limit,
        margin=margin,
        unit=estimate.unit,
        low=None if estimate.median is None else estimate.median - estimate.uncertainty,
        high=None if estimate.median is None else estimate.median + estimate.uncertainty,
        evidence=_evidence(estimate),
        bound=estimate.bound,
    )


def _evidence(estimate: Estimate) -> str:
    said = [f"kept in {estimate.kept} of {estimate.runs} runs"]
    if estimate.limit is not None and estimate.runs:
        interval = f"{_shown(estimate.low, estimate.unit)} to {_shown(estimate.high, estimate.unit)}"
        said = [f"median, 95 % interval {interval}", f"p95 {_shown(estimate.p95, estimate.unit)}", *said]
    return ", ".join([*said, f"{estimate.left_out} left out"] if estimate.left_out else said)


def _shown(value: float | None, unit: str) -> str:
    return "never" if value is None else value_text(value, unit)


def repeats_json(found: Iterable[Repeated]) -> bytes:
    """``repeats.json``: one object per drill."""
    return _REPEATED.dump_json(tuple(found), indent=2)


def repeats_from(content: bytes) -> tuple[Repeated, ...]:
    """What ``repeats_json`` wrote. pydantic.ValidationError when it is something else."""
    return _REPEATED.validate_json(content)


def repeats_summary(found: Repeated) -> Group:
    """The judgement for the terminal: headline, reasons, a row for every expectation."""
    parts: list[RenderableType] = [Text(_headline(found), style="bold")]
    parts += [Text(f"  because {reason}") for reason in found.reasons]
    return Group(*parts, *([_table(found)] if found.estimates else []))


def _table(found: Repeated) -> Table:
    columns = ("", "expectation", ">median", ">95 % interval", "", ">p95", ">limit", ">kept", ">left out")
    rows = [
        (
            each.outcome.value,
            each.text,
            *([""] * 4 if each.limit is None or not each.runs else _figures(each)),
            "" if each.limit is None else value_text(each.limit, each.unit),
            f"{each.kept} of {each.runs}",
            str(each.left_out) if each.left_out else "",
        )
        for each in found.estimates
    ]
    return table("expectations over all runs", columns, rows)


def _figures(each: Estimate) -> tuple[str, str, str, str]:
    low, high, middle, p95 = (_shown(value, each.unit) for value in (each.low, each.high, each.median, each.p95))
    return middle, low, f"to {high}", p95


def _headline(found: Repeated) -> str:
    counts = [f"{found.answers.count(answer)} {answer}" for answer in Outcome if answer in found.answers]
    said = [f"{found.outcome.value.upper()}  {found.name}: {', '.join(counts)}"]
    said += [f"{found.left_out} left out"] if found.left_out else []
    said += ["UNSTABLE: runs pass and fail"] if found.unstable else []
    if len(found.answers) < PUBLISHABLE_REPEATS:
        said += [f"fewer than the {PUBLISHABLE_REPEATS} repeats of a published figure"]
    return "; ".join(said)
