"""What is asked of the index: runs by what they were, and how a figure of a drill went from run to run. Pure SQL.

Changes when people ask something else of it often; all else is what ``hpn results sql`` is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from hpn.results.index.store import Index
from hpn.testbed.errors import InputError


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs; '' leaves a thing open. ``since``: ISO 8601."""

    drill: str = ""
    outcome: str = ""
    fabric: str = ""
    engine: str = ""
    since: str = ""

    @property
    def where(self) -> tuple[str, Sequence[str]]:
        """The condition in SQL, and its values."""
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        plain = [(name, value) for name, value in given if value and name != "since"]
        terms = [f"{name} = ?" for name, _ in plain]
        values = [value for _, value in plain]
        if self.since:
            terms.append("julianday(started_at) >= julianday(?)")
            values.append(_moment(self.since))
        return " and ".join(terms) or "1", values


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as lists show it."""

    path: str
    drill: str
    outcome: str  # 'none': it came to no verdict
    fabric: str
    engine: str
    kernel: str
    started_at: str
    duration_s: float
    why: str  # why it is inconclusive, or could not be read


@dataclass(frozen=True, slots=True)
class Point:
    """What one run measured for an expectation."""

    path: str
    started_at: str
    run: str  # outcome of the run
    outcome: str  # of the expectation
    measured: float
    low: float | None
    high: float | None
    limit: float | None
    unit: str
    open_ended: int  # 1: it is a lower bound

    @property
    def trusted(self) -> bool:
        """Whether the run as a whole was: a figure too near to its limit is one."""
        return self.run != "inconclusive" or self.outcome == "inconclusive"

    @property
    def said(self) -> str:
        """What the run says of the expectation."""
        return self.outcome if self.trusted else "not trusted"


@dataclass(frozen=True, slots=True)
class Trend:
    """What expectations of a drill are on, whatever their limits, over its runs of one experiment, in order of time.

    ``experiment`` as ``results.run.identity`` has it; where that is not known '', and ``fabric`` is its name.
    ``apart``: what sets it apart from the other experiments, where folders tell.
    """

    expectation: str  # without its limit, as ``results.judge.verdict.Check.subject``; each point has its own
    points: tuple[Point, ...]
    more_is_worse: bool = True  # limits are upper ones
    experiment: str = ""
    fabric: str = ""
    apart: str = ""


NEWEST_FIRST = "order by julianday(started_at) desc, path"
_ONE_LIMIT = """select *, row_number() over (
    partition by run, subject, unit, bound in ('above', 'at_least')
    order by case outcome when 'fail' then 0 when 'inconclusive' then 1 else 2 end, margin is null, margin, rowid
    ) place from figures where measured is not null and instr(lower(expectation), lower(?)) > 0"""
"""Figures with ``place`` 1 for the limit, of those on one figure, that a run fares worst by."""


def runs(index: Index, wanted: Wanted, most: int) -> tuple[RunLine, ...]:
    """The newest first."""
    where, values = wanted.where
    sql = f"""select path, drill, outcome, fabric, engine, kernel, started_at, duration_s,
        case when problem <> '' then problem else reason end from runs where {where} {NEWEST_FIRST} limit ?"""
    return tuple(RunLine(*row) for row in index.rows(sql, (*values, most)))  # type: ignore[arg-type]  # as the schema says


def counts(index: Index, wanted: Wanted) -> tuple[tuple[str, str, int], ...]:
    """Drill, outcome and how many, in order of name."""
    where, values = wanted.where
    sql = f"select drill, outcome, count(*) from runs where {where} group by 1, 2 order by 1, 2"
    return tuple(index.rows(sql, values))  # type: ignore[arg-type]  # as the schema says


def trends(index: Index, wanted: Wanted, expectation: str, most: int) -> tuple[Trend, ...]:
    """Of every figure of an expectation that holds that text, over the newest ``most`` runs, the oldest first.

    A series goes on when its limit changes. Of several upper (or lower) limits on one figure a run tells the one that
    it fares worst by. Runs of one name that are of two experiments, or on two fabrics where that is not known, make
    two series. InputError when there is none.
    """
    where, values = wanted.where
    sql = f"""select subject, bound not in ('above', 'at_least') more_is_worse, experiment,
        case when experiment = '' then fabric else '' end, path, started_at, r.outcome, f.outcome, measured, low, high,
        "limit", f.unit, open_ended
        from (select * from runs where {where} {NEWEST_FIRST} limit ?) r join ({_ONE_LIMIT}) f on f.run = r.id
        where place = 1 order by subject, more_is_worse desc, julianday(started_at), path"""
    found: dict[tuple[str, bool, str, str, str], list[Point]] = {}
    for name, more_is_worse, experiment, fabric, *point in index.rows(sql, (*values, most, expectation)):
        made = Point(*point)  # type: ignore[arg-type]  # as the schema says
        of = str(name), bool(more_is_worse), str(experiment), str(fabric), made.unit
        found.setdefault(of, []).append(made)
    if not found:
        text = f" with {expectation!r}" if expectation else ""
        raise InputError(f"no run of {wanted.drill} has a figure{text}; hpn results ls shows what there is")
    return tuple(
        Trend(name, tuple(points), more_is_worse, experiment, fabric)
        for (name, more_is_worse, experiment, fabric, _), points in found.items()
    )


def _moment(text: str) -> str:
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"{text!r} is no date; write one as 2026-11-22 or 2026-11-22T18:00") from None
