"""Hold the flow-level model against runs of the lab in virtual time: ``make calibration``.

Takes times of failovers from the streams of some phases, for ``measured.json``. The others, which nothing was taken
from (``Cell.taken_from``, ``held_out``), make two tables: OUT/table.md with every fault, and one between the marks in
the page with the worst of each topology. With ``--table`` the times stay as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.model.calibrating import measured_in
from hpn.scenarios.model.failover_times import SHIPPED, FailoverTimes, load, text_of
from hpn.testbed.files.document import parse
from tests.product.model_cells import TOPOLOGIES, Cell, cells
from tests.product.model_compared import Compared, compare
from tests.product.table_runs import Table, command

BEGIN, END = "<!-- calibration: begin -->\n", "<!-- calibration: end -->\n"
_FIGURES = (
    *("load", "goodput", "returning", "home, s: lab; model", "p"),
    *("iteration", "in the fault", "repaired"),
)
_WINDOWS = ("before", "after failure", "after repair")


@dataclass(frozen=True, slots=True)
class Row:
    """What one fault on one topology came to; None: no run."""

    topology: str
    fault: str
    streams: Compared | None
    job: Compared | None


def wanted() -> Mapping[int, Sequence[Cell]]:
    """Every run by its phase; jobs and full ports at the first alone."""
    found: dict[int, list[Cell]] = {}
    for cell in cells():
        for phase in (*cell.taken_from, *cell.held_out) if cell.kind == "streams" else (1,):
            found.setdefault(phase, []).append(cell)
    return dict(sorted(found.items()))


TABLE = Table("calibration", "the flow-level model against runs of the lab", wanted())
Runs = Mapping[tuple[str, int], Path]
"""Folders of runs by drill and phase."""


def made(out: Path) -> Runs:
    """Every run that is there."""
    return {(cell.name, folder.manifest().phase): folder.path for cell, folder in TABLE.made(out)}


def taken(runs: Runs) -> list[Path]:
    """The runs of streams that times are taken from."""
    return [folder for cell in cells() if cell.kind == "streams" for folder in _of(runs, cell, cell.taken_from)]


def _of(runs: Runs, cell: Cell, phases: Sequence[int]) -> list[Path]:
    return [runs[cell.name, phase] for phase in phases if (cell.name, phase) in runs]


def rows(runs: Runs, measured: FailoverTimes) -> Iterator[Row]:
    """Every fault on every topology, held against the runs that nothing was taken from."""
    for topology in TOPOLOGIES:
        for fault in topology.targets:
            of = {cell.kind: cell for cell in cells() if (cell.topology, cell.fault) == (topology.name, fault)}
            streams = _compared(runs, of["streams"], of["streams"].held_out, measured)
            yield Row(topology.name, fault, streams, _compared(runs, of["job"], (1,), measured))


def detail(found: Sequence[Row]) -> str:
    """A row for each topology and fault, for those who calibrate."""
    lines = ((row.topology, row.fault, *_figures([row])) for row in found)
    return _table(("topology", "fault", *_FIGURES), lines)


def summary(found: Sequence[Row]) -> str:
    """A row for each topology, with the worst of its faults; then how many paths of queue pairs were compared."""
    names = dict.fromkeys(row.topology for row in found)
    lines = ((name, *_figures([row for row in found if row.topology == name])) for name in names)
    compared, others = (sum(row.streams.ways[at] for row in found if row.streams) for at in (0, 1))
    said = f"Of {compared:,} paths of queue pairs before, in and after the faults, {others} differ from the lab's."
    return f"{_table(('topology', *_FIGURES), lines)}\n{said}\n"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rules = f"{'|---' * len(head)}|\n"
    return f"| {' | '.join(head)} |\n{rules}" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _figures(found: Sequence[Row]) -> Iterator[str]:
    """The worst of these rows, what is not trusted left out."""
    streams = [row.streams for row in found if row.streams]
    yield _percent([each.load.fits for each in streams])
    yield _percent([each.goodput.fits for each in streams])
    yield _percent([each.goodput_repair for each in streams])
    yield "; ".join(_range([home for each in streams for home in each.home_s[at]]) for at in (0, 1))
    alike = [each.alike for each in streams if each.alike is not None]
    yield f"{min(alike):.2f}" if alike else "-"
    for when in _WINDOWS:
        yield _iteration([row.job for row in found if row.job], when)


def _iteration(jobs: Sequence[Compared], when: str) -> str:
    """The largest difference of an iteration in that window; a dead job has none, an overloaded one is not trusted."""
    pairs = [(job, lab, model) for job in jobs for at, lab, model in job.iterations if at == when]
    trusted = [abs(model / lab - 1) for job, lab, model in pairs if not job.doubted(when)]
    return "not trusted" if pairs and not trusted else _percent(trusted)


def _range(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{of(values):.1f}" for of in (min, max))) if values else "-"


def _compared(runs: Runs, cell: Cell, phases: Sequence[int], measured: FailoverTimes) -> Compared | None:
    folders = _of(runs, cell, phases)
    there = [phase for phase in cell.taken_from if any(source.phase == phase for source in measured.sources)]
    drill = drill_from(parse(cell.drill, f"{cell.name}.yaml"), Path())
    return compare(folders, drill, measured, there) if folders else None


def _percent(shares: Iterable[float | None]) -> str:
    """The largest, in percent."""
    largest = max((share for share in shares if share is not None), default=None)
    return "-" if largest is None else f"{largest:.1%}"


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, take the times, write the tables."""
    out, page = command(TABLE, arguments)
    runs = made(out)
    if "--table" not in arguments:
        SHIPPED.write_text(text_of(measured_in(taken(runs))), encoding="utf-8")
    found = tuple(rows(runs, load()))
    (out / "table.md").write_text(detail(found), encoding="utf-8")
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}{summary(found)}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
