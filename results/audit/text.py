"""Answer of an audit for the terminal: a table of the failures, worst first, and a sentence. Pure.

Changes when the terminal shows an audit in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from hpn.failover.analysis.phrases import many
from hpn.results.audit.model import ERROR, Answer, Figure, Row
from hpn.results.judge.verdict import Outcome
from hpn.results.text.bounds import at_least
from hpn.results.text.tables import table
from hpn.results.text.values import NONE, milliseconds, rounded_up

COLUMNS = (
    "answer",
    "kind",
    "element",
    ">longest outage",
    ">NIC dark",
    ">lost",
    ">converged",
    ">lost at return",
    ">converged at return",
    "cuts off",
    "why",
)
CAPTION = "ms; outage, dark: of flows and NICs of others than a host that fails itself"
MOST_ROWS = 40
_MOST_NAMES = 3


def audit_table(answer: Answer, most: int | None = MOST_ROWS) -> Table:
    """Return the table, at most ``most`` rows of it."""
    rows = answer.worst_first[:most]
    title = f"audit of {answer.topology.name}, worst first ({CAPTION})"
    return table(title, COLUMNS, (cells(row) for row in rows), keys=3)


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of one row, in the order of ``COLUMNS``."""
    failure, back = row.failure, row.back
    return (
        row.outcome,
        row.kind,
        row.element,
        NONE if failure is None else figure_text(failure.outage),
        milliseconds(row.darkest_ms) if row.darkest_ms else NONE,
        NONE if failure is None else f"{failure.lost:,}",
        NONE if failure is None or failure.converged is None else figure_text(failure.converged),
        NONE if back is None else f"{back.lost:,}",
        NONE if back is None or back.converged is None else figure_text(back.converged),
        some(row.cut_off) or NONE,
        why(row),
    )


def figure_text(figure: Figure) -> str:
    """Return milliseconds; a figure below the resolution is an upper bound: '< 20.1'."""
    if not figure.ms and not figure.open:
        return f"< {milliseconds(rounded_up(figure.high))}"
    return at_least(milliseconds(figure.ms), open_ended=figure.open)


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def why(row: Row) -> str:
    """Return why a row is no pass; '' for a pass."""
    if row.outcome == Outcome.PASS.value:
        return ""
    unsure = (check.text for check in row.checks if check.outcome is Outcome.INCONCLUSIVE)
    return "; ".join([*row.reasons, *(check.text for check in row.broken)] or unsure)


def lines(answer: Answer) -> Iterator[str]:
    """Yield the answer in sentences: outcomes, single points, and what was left out."""
    counts = {outcome: answer.count(outcome) for outcome in (*map(str, Outcome), ERROR)}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    yield f"{many(len(answer.rows), 'failure')} tried: {told or 'none'}"
    if answer.waiting:
        yield f"{many(answer.waiting, 'failure')} left; the same command goes on"
    points = answer.single_points
    if points:
        names = some([row.element for row in points])
        yield f"single points: {len(points)}; each alone cuts off a NIC or host for as long as it is down: {names}"
    elif answer.rows and not answer.waiting:
        yield "no single point: no failure alone cut off a NIC or host for as long as it lasted"
    pairs = [row for row in answer.rows if len(row.targets) > 1]
    if pairs:
        yield f"pairs that cut off a NIC or host: {sum(bool(row.cut_off) for row in pairs)} of {len(pairs)} tried"
    hidden = len(answer.rows) - MOST_ROWS
    if hidden > 0:
        yield f"{hidden} rows more are in the page and in audit.json"
    yield from notes(answer)


def notes(answer: Answer) -> Iterator[str]:
    """Yield what a reader must know: short routes, failures that are one draw of a timer, and those left out."""
    yield from answer.short_routes
    if timers := sum(row.by_timers for row in answer.rows):
        yield f"{many(timers, 'failure')} noticed by timers alone: each figure is one draw of their phase"
    for key, reason in answer.left_out:
        yield f"left out: {key}: {reason}"
