"""Queries of the index: runs by their facts, and trends of a drill's figure from run to run. Pure SQL.

Changes when users often need another query; ``hpn results sql`` serves all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from hpn.results.index.store import Index
from hpn.testbed.errors import InputError


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Filter of runs; '' matches everything. ``since``: ISO 8601."""

    drill: str = ""
    outcome: str = ""
    fabric: str = ""
    engine: str = ""
    since: str = ""

    @property
    def where(self) -> tuple[str, Sequence[str]]:
        """Condition in SQL, and its values."""
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
    """A run in a list."""

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
    """One run's measurement of an expectation."""

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
        """True if the run as a whole was trusted; figures too near to their limits count as trusted."""
        return self.run != "inconclusive" or self.outcome == "inconclusive"

    @property
    def said(self) -> str:
        """Outcome of the expectation, or 'not trusted'."""
        return self.outcome if self.trusted else "not trusted"


@dataclass(frozen=True, slots=True)
class Trend:
    """One figure of a drill over its runs of one experiment, whatever their limits, in order of time.

    ``experiment`` as in ``results.run.identity``; '' if unknown, and ``fabric`` is then its name. ``apart``: settings
    that distinguish it from other experiments, if folders have them.
    """

    expectation: str  # without its limit, as ``results.judge.verdict.Check.subject``; each point has its own
    points: tuple[Point, ...]
    is_upper: bool = True  # its limits
    experiment: str = ""
    fabric: str = ""
    apart: str = ""
    more_is_worse: bool = True  # whatever the limits


NEWEST_FIRST = "order by julianday(started_at) desc, path"
_ONE_LIMIT = """select *, row_number() over (
    partition by run, subject, unit, bound in ('above', 'at_least')
    order by case outcome when 'fail' then 0 when 'inconclusive' then 1 else 2 end, margin is null, margin, rowid
    ) place from figures where measured is not null and instr(lower(expectation), lower(?)) > 0"""
"""Figures; with several limits on one figure, ``place`` is 1 for the one that a run meets worst."""


def runs(index: Index, wanted: RunFilter, most: int) -> tuple[RunLine, ...]:
    """Return the runs, the newest first."""
    where, values = wanted.where
    sql = f"""select path, drill, outcome, fabric, engine, kernel, started_at, duration_s,
        case when problem <> '' then problem else reason end from runs where {where} {NEWEST_FIRST} limit ?"""
    return tuple(RunLine(*row) for row in index.rows(sql, (*values, most)))  # type: ignore[arg-type]  # as the schema says


def counts(index: Index, wanted: RunFilter) -> tuple[tuple[str, str, int], ...]:
    """Return drill, outcome and number, in order of name."""
    where, values = wanted.where
    sql = f"select drill, outcome, count(*) from runs where {where} group by 1, 2 order by 1, 2"
    return tuple(index.rows(sql, values))  # type: ignore[arg-type]  # as the schema says


def trends(index: Index, wanted: RunFilter, expectation: str, most: int) -> tuple[Trend, ...]:
    """Return the trends of figures whose expectation contains that text, over the newest ``most`` runs, oldest first.

    A series continues when its limit changes. With several upper (or lower) limits on one figure, a run's worst one
    counts. Runs of the same name form two series if they are of two experiments, or, if that is unknown, on two
    fabrics. InputError if there is none.
    """
    where, values = wanted.where
    sql = f"""select subject, bound not in ('above', 'at_least') is_upper, more_is_worse, experiment,
        case when experiment = '' then fabric else '' end, path, started_at, r.outcome, f.outcome, measured, low, high,
        "limit", f.unit, open_ended
        from (select * from runs where {where} {NEWEST_FIRST} limit ?) r join ({_ONE_LIMIT}) f on f.run = r.id
        where place = 1 order by subject, is_upper desc, julianday(started_at), path"""
    found: dict[tuple[str, bool, bool, str, str, str], list[Point]] = {}
    for name, is_upper, worse, experiment, fabric, *point in index.rows(sql, (*values, most, expectation)):
        made = Point(*point)  # type: ignore[arg-type]  # as the schema says
        of = str(name), bool(is_upper), bool(worse), str(experiment), str(fabric), made.unit
        found.setdefault(of, []).append(made)
    if not found:
        text = f" with {expectation!r}" if expectation else ""
        raise InputError(f"no run of {wanted.drill} has a figure{text}; hpn results ls shows what there is")
    return tuple(
        Trend(name, tuple(points), is_upper, experiment, fabric, more_is_worse=worse)
        for (name, is_upper, worse, experiment, fabric, _), points in found.items()
    )


def _moment(text: str) -> str:
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"{text!r} is no date; write one as 2026-11-22 or 2026-11-22T18:00") from None
