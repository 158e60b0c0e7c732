"""Table of expectations: every check of every verdict, with its interval. Pure.

Changes when a check gets another field.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.results.judge.verdict import Check
from hpn.results.tables.table import Column, Kind, Row, RunFacts, Table

_COLUMNS = (
    Column("number", Kind.COUNT, "place among the run's checks, from 0"),
    Column("metric", Kind.TEXT, "what is measured; empty of what hpn checks on its own, or in old folders"),
    Column("text", Kind.TEXT, "the expectation as written"),
    Column("outcome", Kind.TEXT, "pass, fail or inconclusive"),
    Column("bound", Kind.TEXT, "how the limit is meant: below, at_most, above, at_least; empty of a fact"),
    Column("limit", Kind.NUMBER, "what was asked", "unit"),
    Column("measured", Kind.NUMBER, "what was measured; a lower bound where open_ended", "unit"),
    Column("low", Kind.NUMBER, "the least that it may have been", "unit"),
    Column("high", Kind.NUMBER, "the most that it may have been; empty where open_ended", "unit"),
    Column("open_ended", Kind.FLAG, "true: it had not ended, measured is a lower bound and high is empty"),
    Column("never", Kind.FLAG, "true: it will never end, or what was expected did not happen"),
    Column("margin", Kind.NUMBER, "room left; negative where the limit is broken, empty where unknown", "unit"),
    Column("unit", Kind.TEXT, "of limit, measured, low, high and margin; empty of counts and facts"),
    Column("evidence", Kind.TEXT, "flow, edge or event that shows it, or why it could not be judged"),
)


def _rows(run: RunFacts) -> Iterator[Row]:
    if run.verdict is None:
        return
    asked = () if run.drill is None else run.drill.expects
    metrics = {limit.text: limit.metric for limit in asked}
    for number, check in enumerate(run.verdict.checks):
        is_bound = _is_bound(check)
        yield {
            "number": number,
            "metric": metrics.get(check.text, ""),
            "text": check.text,
            "outcome": check.outcome.value,
            "bound": check.bound,
            "limit": check.limit,
            "measured": check.measured,
            "low": check.low,
            "high": None if is_bound else check.high,
            "open_ended": is_bound,
            "never": check.never,
            "margin": check.margin,
            "unit": check.unit,
            "evidence": check.evidence,
        }


def _is_bound(check: Check) -> bool:
    return check.open_ended or (check.low is not None and check.high is None)


EXPECTATIONS = Table("expectations", "one row for each check of a run's verdict", _COLUMNS, _rows, "verdict.json")
