"""Definition of tables: columns with unit and meaning, and the function that yields a run's rows. Pure.

Changes when a column has to say something more of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.verdict import Verdict
from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest
from hpn.results.text.printable import escaped_name

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]


class Kind(StrEnum):
    """Type of a column's cells; any cell may be empty."""

    TEXT = "text"
    COUNT = "count"  # a whole number
    NUMBER = "number"
    FLAG = "flag"  # true or false


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``unit`` is '' if it has none."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Data of one run for tables. None: the run did not end, has no verdict, or is of an older format."""

    folder: str
    manifest: Manifest
    digests: Mapping[str, str]
    verdict: Verdict | None
    metrics: DrillMetrics | None
    drill: AskedDrill | None
    told: Mapping[str, str] = field(default_factory=dict)  # settings by stored key; empty: the folder lacks them


@dataclass(frozen=True, slots=True)
class Table:
    """One table. ``rows`` yields those of a run, with every column except ``run``, which all tables have."""

    name: str
    meaning: str
    of: tuple[Column, ...]
    rows: Callable[[RunFacts], Iterator[Row]]
    source: str = "metrics.json"  # source file of its numbers in a run folder

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the table, ``run`` first."""
        return (RUN, *self.of)

    def rows_of(self, run: RunFacts) -> Iterator[tuple[Cell, ...]]:
        """Yield the rows of a run, cells in order of ``columns``. KeyError for a row that lacks a column."""
        for row in self.rows(run):
            cells = {RUN.name: run.folder, **row}
            yield tuple(_cell(cells[column.name], column.kind) for column in self.columns)


RUN = Column("run", Kind.TEXT, "the run folder, as it was found; joins the tables")


def _cell(cell: Cell, kind: Kind) -> Cell:
    """Return the cell for a file: numbers as floats, and names that are not UTF-8 escaped with backslashes."""
    if isinstance(cell, str):
        return escaped_name(cell)
    return float(cell) if kind is Kind.NUMBER and cell is not None else cell
