"""Hold the flow-level model against runs of the lab in virtual time: ``make calibration``.

    python -m tests.product.model_calibration OUT DOC.md TIMES.json [--table]

Makes the runs that OUT lacks (OUT/pPHASE/DRILL) and takes times of failovers from the streams of some phases. The
others, which nothing was taken from (``Cell.taken_from``, ``held_out``), make two tables: OUT/table.md with every
fault, and one between the marks in DOC.md with the worst of each topology.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.scenarios.drill import catalogue
from hpn.scenarios.model.calibrating import measured_in
from hpn.scenarios.model.failover_times import FailoverTimes, load, text_of
from tests.product.model_cells import FAULTS, TOPOLOGIES, Cell, cells
from tests.product.model_compared import Compared, compare
from tests.product.table_runs import written

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


def wanted() -> Iterator[tuple[int, Cell]]:
    """Every run, phase by phase; jobs and full ports at the first alone."""
    found = [
        (phase, cell) for cell in cells() if cell.kind == "streams" for phase in (*cell.taken_from, *cell.held_out)
    ]
    found += [(1, cell) for cell in cells() if cell.kind != "streams"]
    yield from sorted(found, key=lambda each: each[0])


def make(out: Path) -> None:
    """Make the runs that are missing, one after the other."""
    for phase, cell in wanted():
        folder = out / f"p{phase}"
        if (folder / cell.name / "verdict.json").exists():
            continue
        command = ["drill", "run", str(written(cell, out)), "--engine", "uml", "--virtual-time", "--phase", str(phase)]
        subprocess.run([sys.executable, "-m", "hpn", *command, "--out", str(folder)], check=False)


def taken(out: Path) -> list[Path]:
    """The whole runs of streams that times are taken from."""
    return [folder for cell in cells() if cell.kind == "streams" for folder in whole(out, cell, cell.taken_from)]


def whole(out: Path, cell: Cell, phases: Sequence[int]) -> list[Path]:
    """The runs of a cell that are there."""
    folders = [out / f"p{phase}" / cell.name for phase in phases]
    return [folder for folder in folders if (folder / "verdict.json").exists()]


def rows(out: Path, measured: FailoverTimes) -> Iterator[Row]:
    """Every fault on every topology, held against the runs that nothing was taken from."""
    for topology in TOPOLOGIES:
        for fault in FAULTS:
            of = {cell.kind: cell for cell in cells() if (cell.topology, cell.fault) == (topology.name, fault)}
            streams = _compared(out, of["streams"], of["streams"].held_out, measured)
            yield Row(topology.name, fault, streams, _compared(out, of["job"], (1,), measured))


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
    trusted = [abs(model / lab - 1) for job, lab, model in pairs if when != "after failure" or not job.doubts]
    return "not trusted" if pairs and not trusted else _percent(trusted)


def _range(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{of(values):.1f}" for of in (min, max))) if values else "-"


def _compared(out: Path, cell: Cell, phases: Sequence[int], measured: FailoverTimes) -> Compared | None:
    folders = whole(out, cell, phases)
    there = [phase for phase in cell.taken_from if any(source.phase == phase for source in measured.sources)]
    return compare(folders, catalogue.load(str(written(cell, out))), measured, there) if folders else None


def _percent(shares: Iterable[float | None]) -> str:
    """The largest, in percent."""
    largest = max((share for share in shares if share is not None), default=None)
    return "-" if largest is None else f"{largest:.1%}"


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, take the times, write the table."""
    parser = argparse.ArgumentParser(description="the flow-level model against runs of the lab")
    parser.add_argument("out", type=Path, help="folder of the runs; those in it are kept")
    parser.add_argument("doc", type=Path, help="Markdown to write into")
    parser.add_argument("times", type=Path, help="measured times to write")
    parser.add_argument("--table", dest="only_table", action="store_true", help="make no run and take no times")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    if not asked.only_table:
        make(asked.out)
        asked.times.write_text(text_of(measured_in(taken(asked.out))), encoding="utf-8")
    found = tuple(rows(asked.out, load(asked.times)))
    (asked.out / "table.md").write_text(detail(found), encoding="utf-8")
    before, rest = asked.doc.read_text(encoding="utf-8").split(BEGIN)
    asked.doc.write_text(f"{before}{BEGIN}{summary(found)}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
