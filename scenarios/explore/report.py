"""Answer of an exploration for the terminal. Pure.

Changes when the terminal shows an exploration in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from hpn.failover.analysis.phrases import many
from hpn.results.text.tables import table
from hpn.scenarios.explore.answer import Answer, Found, Row, Told

MOST_ROWS = 40
_COLUMNS = ("answer", "second fault", "place", "phase", ">off by us", "broken", "why")
_RANK = (Told.DIVERGED, Told.BREAKS, Told.BREAKS_ALONE, Told.NO_RUN, Told.INCONCLUSIVE, Told.WAITING, Told.HOLDS)


def rows_table(answer: Answer, most: int | None = MOST_ROWS) -> Table:
    """Return the rows, worst first, at most ``most`` of them."""
    rows = sorted(answer.rows, key=lambda row: _RANK.index(row.told))
    title = f"exploration of {answer.drill} on {answer.topology}, worst first"
    return table(title, _COLUMNS, (_cells(row) for row in rows[:most]), keys=3)


def _cells(row: Row) -> Sequence[str]:
    off = "" if row.off_ns is None else f"{row.off_ns / 1000:+.1f}{'' if row.landed else ' *'}"
    return (row.told, row.second, row.place, row.phase, off, ", ".join(row.broken), row.why[0] if row.why else "")


def lines(answer: Answer) -> Iterator[str]:
    """Yield what was covered, what was left out and why, and the findings."""
    cover = answer.coverage
    ran = [row for row in answer.rows if row.digest and row.told not in {Told.WAITING, Told.NO_RUN}]
    pairs = len({(row.second, row.place) for row in ran})
    yield (
        f"covered: {many(cover.instants, 'moment')} of the base run, {many(cover.states, 'state')} at"
        f" {many(cover.spots, 'spot')}; {cover.run} of {many(cover.places, 'place')} run, {many(pairs, 'pair')} of"
        f" moment and second fault in {many(cover.states_run, 'state')}, {cover.landed} exactly where aimed"
        " (* elsewhere)"
    )
    for why, count in sorted(cover.left_out.items(), key=lambda each: -each[1]):
        yield f"left out: {many(count, 'place')}: {why}"
    if diverged := [row for row in answer.rows if row.diverged]:
        yield f"error of determinism in {many(len(diverged), 'run')}, first {diverged[0].name}: {diverged[0].diverged}"
    if ran and not answer.breaking:
        yield "nothing broke an invariant"
    yield from map(found_line, answer.found)


def found_line(found: Found) -> str:
    """Return one finding as one line."""
    twice = "repeats to the byte" if found.repeats else "did not repeat to the byte"
    alike = f"; {len(found.alike)} more like it" if found.alike else ""
    return f"found: {', '.join(found.broken)}: {found.faults}, {twice} ({found.runs} runs): {found.file}{alike}"
