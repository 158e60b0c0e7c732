"""What a table is: columns with unit and meaning, and how a run fills its rows. Pure.

Changes when a column has to say something more of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.judge.verdict import Verdict
from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest
from hpn.results.text.printable import escaped_name

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]


class Kind(StrEnum):
    """What the cells of a column are; any may be empty."""

    TEXT = "text"
    COUNT = "count"  # a whole number
    NUMBER = "number"
    FLAG = "flag"  # true or false


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``unit`` is '' of what has none."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What tables take from one run. None: the run did not end, was not judged, or is of an older format."""

    folder: str
    manifest: Manifest
    digests: Mapping[str, str]
    verdict: Verdict | None
    metrics: DrillMetrics | None
    drill: AskedDrill | None


@dataclass(frozen=True, slots=True)
class Table:
    """One table: ``rows`` gives those of a run, each with every column but ``run``, which all tables have."""

    name: str
    meaning: str
    of: tuple[Column, ...]
    rows: Callable[[RunFacts], Iterator[Row]]
    source: str = "metrics.json"  # the file of a run folder that its numbers come from

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them, ``run`` first."""
        return (RUN, *self.of)

    def rows_of(self, run: RunFacts) -> Iterator[tuple[Cell, ...]]:
        """The rows of a run, cells in order of ``columns``. KeyError for a row that lacks a column."""
        for row in self.rows(run):
            cells = {RUN.name: run.folder, **row}
            yield tuple(_cell(cells[column.name], column.kind) for column in self.columns)


RUN = Column("run", Kind.TEXT, "the run folder, as it was found; joins the tables")


def _cell(cell: Cell, kind: Kind) -> Cell:
    """Numbers are floats; bytes of a folder's name that are no UTF-8 become '\\xff', as no file format takes them."""
    if isinstance(cell, str):
        return escaped_name(cell)
    return float(cell) if kind is Kind.NUMBER and cell is not None else cell
