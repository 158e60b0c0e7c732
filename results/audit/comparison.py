"""Two audits against each other: which failures cost more, less, as much, and which are new or gone. Pure.

Changes when a row counts as worse for another reason. Outages differ only if their intervals are further apart than
another phase of a timer puts them. Of what only timers notice, and of times of convergence, only the answers are
compared: a change elsewhere in the fabric shifts their phases. Routes that lack next hops count too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rich.table import Table

from hpn.results.audit.model import ERROR, Answer, Figure, Moment, Row, exit_code
from hpn.results.audit.text import some
from hpn.results.judge.verdict import Outcome
from hpn.results.text.tables import table
from hpn.results.text.values import milliseconds


class Change(StrEnum):
    """Change of a failure from one audit to the other."""

    WORSE = "worse"
    NEW = "new"
    BETTER = "better"
    GONE = "gone"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A failure in both audits, or in one. ``told``: what differs, a line each."""

    change: Change
    key: str
    before: str
    now: str
    told: tuple[str, ...] = ()


_GRADES: Mapping[str, int] = {Outcome.PASS.value: 0, Outcome.INCONCLUSIVE.value: 1, ERROR: 1, Outcome.FAIL.value: 2}


_LEAST_MS, _LEAST_SHARE = 10.0, 0.1
"""Differences of outages that count: more than 10 ms, and more than a tenth of the base's."""


def compare(base: Answer, now: Answer) -> tuple[ChangedRow, ...]:
    """Return every failure of both audits: worse ones first, then new, better and gone ones, then the same."""
    before, after = ({row.key: row for row in answer.rows} for answer in (base, now))
    rows = [_change(before[key], row) if key in before else _new(row) for key, row in after.items()]
    rows += [ChangedRow(Change.GONE, key, row.outcome, "-") for key, row in before.items() if key not in after]
    rows += _routes(Change.WORSE, now, base) + _routes(Change.BETTER, base, now)
    order = list(Change)
    return tuple(sorted(rows, key=lambda row: order.index(row.change)))


def _routes(change: Change, one: Answer, other: Answer) -> list[ChangedRow]:
    """Return the short routes of one audit alone, a row for each switch."""
    before, now = ("-", "short") if change is Change.WORSE else ("short", "-")
    return [ChangedRow(change, line, before, now) for line in one.short_routes if line not in other.short_routes]


def comparison_exit_code(changed: tuple[ChangedRow, ...], now: Answer) -> int:
    """Return 1 if a failure got worse or a new one breaks a promise, else as the rest of the audit without failures."""
    worse = any(row.change is Change.WORSE or (row.change is Change.NEW and row.now == "fail") for row in changed)
    if worse:
        return 1
    return exit_code([row for row in now.rows if row.outcome != Outcome.FAIL.value]) if now.rows else 4


def comparison_table(changed: tuple[ChangedRow, ...], most: int) -> Table:
    """Return the table of what changed, at most ``most`` rows."""
    rows = [row for row in changed if row.change is not Change.SAME][:most]
    cells = ((row.change.value, row.key, row.before, row.now, "; ".join(row.told)) for row in rows)
    empty = "no failure costs more or less than in the base"
    return table("against the base", ("", "failure", "before", "now", "what differs"), cells, keys=2, empty=empty)


def comparison_line(changed: tuple[ChangedRow, ...]) -> str:
    """Return how many rows changed in which way."""
    counts = ((change, sum(row.change is change for row in changed)) for change in Change)
    return f"against the base: {', '.join(f'{count} {change}' for change, count in counts)}"


def _new(row: Row) -> ChangedRow:
    told = (f"cuts off {some(row.cut_off)}",) if row.cut_off else ()
    return ChangedRow(Change.NEW, row.key, "-", row.outcome, told)


def _change(before: Row, now: Row) -> ChangedRow:
    worse, better = [*_worse(before, now)], [*_worse(now, before)]
    change = Change.WORSE if worse else Change.BETTER if better else Change.SAME
    told = worse or better
    return ChangedRow(change, now.key, before.outcome, now.outcome, tuple(_said(what, before, now) for what in told))


def _worse(one: Row, other: Row) -> Iterator[str]:
    """Yield the names of what is worse in ``other``."""
    if _GRADES[other.outcome] > _GRADES[one.outcome]:
        yield "answer"
    if not {*other.cut_off} <= {*one.cut_off}:
        yield "cuts off"
    if other.by_timers:
        return
    for name, a, b in (("failure", one.failure, other.failure), ("return", one.back, other.back)):
        if a is not None and b is not None and _longer(a.outage, b.outage):
            yield f"outage at {name}"
    if one.back is not None and other.back is not None and one.back.lost == 0 < other.back.lost:
        yield "lost at return"


def _longer(one: Figure, other: Figure) -> bool:
    if other.open != one.open:
        return other.open
    return other.low > one.high + max(_LEAST_MS, _LEAST_SHARE * one.high)


def _said(what: str, before: Row, now: Row) -> str:
    if what == "answer":
        return f"{before.outcome} -> {now.outcome}"
    if what == "cuts off":
        return f"cuts off {some(before.cut_off) or 'none'} -> {some(now.cut_off) or 'none'}"
    figure, _, at = what.partition(" at ")
    values = (_figure(row.failure if at == "failure" else row.back, figure) for row in (before, now))
    return f"{what} {' -> '.join(values)}"


def _figure(moment: Moment | None, name: str) -> str:
    if moment is None:
        return "-"
    return f"{moment.lost:,}" if name == "lost" else f"{milliseconds(moment.outage.ms)} ms"
