"""Hold the flow-level model against runs of the lab in virtual time: ``make calibration``.

    python -m tests.product.model_calibration OUT DOC.md TIMES.json [--table]

Makes the runs that OUT lacks (OUT/pPHASE/DRILL), takes times of failovers from the streams of some phases, and writes
the table of the others, which nothing was taken from, between the marks in DOC.md (``Cell.taken_from``, ``held_out``).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpn.scenarios.drill import catalogue
from hpn.scenarios.model.calibrating import measured_in
from hpn.scenarios.model.measured import Measured, load, text_of
from tests.product.model_cells import FAULTS, TOPOLOGIES, Cell, cells
from tests.product.model_compared import Compared, Largest, compare

BEGIN, END = "<!-- calibration: begin -->\n", "<!-- calibration: end -->\n"
_COLUMNS = (
    *("topology", "fault", "link load", "goodput", "goodput, flows returning", "home after, s: lab; model"),
    *("outages: p (runs)", "iteration before", "in the fault", "after the repair"),
)
_HEAD = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"


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
        command = ["drill", "run", str(cell.write(out)), "--engine", "uml", "--virtual-time", "--phase", str(phase)]
        subprocess.run([sys.executable, "-m", "hpn", *command, "--out", str(folder)], check=False)


def taken(out: Path) -> list[Path]:
    """The whole runs of streams that times are taken from."""
    return [folder for cell in cells() if cell.kind == "streams" for folder in whole(out, cell, cell.taken_from)]


def whole(out: Path, cell: Cell, phases: Sequence[int]) -> list[Path]:
    """The runs of a cell that are there."""
    folders = [out / f"p{phase}" / cell.name for phase in phases]
    return [folder for folder in folders if (folder / "verdict.json").exists()]


def table(out: Path, measured: Measured) -> str:
    """The rows, and how many ways of queue pairs were compared."""
    rows, ways = "", [0, 0]
    for topology in TOPOLOGIES:
        for fault in FAULTS:
            of = {cell.kind: cell for cell in cells() if (cell.topology, cell.fault) == (topology.name, fault)}
            streams = _compared(out, of["streams"], of["streams"].held_out, measured)
            job = _compared(out, of["job"], (1,), measured)
            rows += f"| {topology.name} | {fault} | {' | '.join([*_streams(streams), *_iterations(job)])} |\n"
            ways = [sum(both) for both in zip(ways, (0, 0) if streams is None else streams.ways, strict=True)]
    said = f"{ways[0]:,} ways of queue pairs, before, in and after the faults: {ways[1]} are others than the lab's."
    return f"{_HEAD}{rows}\n{said}\n"


def _streams(compared: Compared | None) -> list[str]:
    if compared is None:
        return ["-"] * 5
    lab, model = (" to ".join(dict.fromkeys(f"{at(of):.1f}" for at in (min, max))) for of in compared.home_s)
    runs = ", ".join(str(len(of)) for of in compared.home_s)
    p = "-" if compared.alike is None else f"{compared.alike:.2f} ({runs})"
    shares = [_largest(each) for each in (compared.load, compared.goodput)]
    return [*shares, _percent(compared.goodput_repair), f"{lab}; {model}", p]


def _largest(found: Largest) -> str:
    full = "" if found.full is None else f"; {found.full:.1%} with a full port, not trusted"
    return _percent(found.fits) + full


def _iterations(job: Compared | None) -> list[str]:
    """The difference in each window, with the two figures; a dead job has none, an overloaded one is not trusted."""
    by = {} if job is None else {when: (lab, model) for when, lab, model in job.iterations}
    found = []
    for when in ("before", "after failure", "after repair"):
        pair = by.get(when)
        text = "-" if pair is None else f"{abs(pair[1] / pair[0] - 1):.1%} ({pair[0]:.0f} and {pair[1]:.0f} ms)"
        found.append(f"{text}, not trusted" if pair and job and job.doubts and when == "after failure" else text)
    return found


def _compared(out: Path, cell: Cell, phases: Sequence[int], measured: Measured) -> Compared | None:
    folders = whole(out, cell, phases)
    there = [phase for phase in cell.taken_from if any(source.phase == phase for source in measured.sources)]
    return compare(folders, catalogue.load(str(cell.write(out))), measured, there) if folders else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


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
    found = table(asked.out, load(asked.times))
    before, rest = asked.doc.read_text(encoding="utf-8").split(BEGIN)
    asked.doc.write_text(f"{before}{BEGIN}{found}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
