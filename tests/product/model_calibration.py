"""Hold the flow-level model against runs of the lab in virtual time: ``make calibration``.

    python -m tests.product.model_calibration OUT DOC.md TIMES.json [--table]

Makes the runs that OUT lacks (OUT/pPHASE/DRILL), takes times of failovers from the streams of phases 1 and 2, and
writes the table of phase 3, which nothing was taken from, between the marks in DOC.md; a cell without a run of phase 3
is shown by its run of phase 1, with a mark.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from scenarios.drill import catalogue
from scenarios.model.calibrating import measured_in
from scenarios.model.measured import Measured, load, text_of
from tests.product.model_cells import FAULTS, TOPOLOGIES, Cell, cells
from tests.product.model_compared import Compared, compare

BEGIN, END = "<!-- calibration: begin -->\n", "<!-- calibration: end -->\n"
TAKEN_FROM, HELD_OUT = (1, 2), 3
_COLUMNS = (
    *("topology", "fault", "link load, before and in the fault", "after the repair", "goodput", "outages: p"),
    *("iteration before", "in the fault", "after the repair"),
)
_HEAD = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"


def wanted() -> Iterator[tuple[int, Cell]]:
    """Every run, phase by phase; jobs and full ports at the first alone."""
    for phase in (*TAKEN_FROM, HELD_OUT):
        yield from ((phase, cell) for cell in cells() if phase == 1 or cell.kind == "streams")


def make(out: Path) -> None:
    """Make the runs that are missing, one after the other."""
    for phase, cell in wanted():
        folder = out / f"p{phase}"
        if (folder / cell.name / "verdict.json").exists():
            continue
        command = ["drill", "run", str(cell.write(out)), "--engine", "uml", "--virtual-time", "--phase", str(phase)]
        subprocess.run([sys.executable, "-m", "hpn", *command, "--out", str(folder)], check=False)


def runs(out: Path, phases: Sequence[int], kind: str) -> list[Path]:
    """The whole runs that are there."""
    names = [(phase, cell.name) for phase in phases for cell in cells() if cell.kind == kind]
    return [out / f"p{phase}" / name for phase, name in names if (out / f"p{phase}" / name / "verdict.json").exists()]


def table(out: Path, measured: Measured) -> str:
    """The rows, and what is in them in words."""
    rows = [_row(out, topology.name, fault, measured) for topology in TOPOLOGIES for fault in FAULTS]
    return _HEAD + "".join(rows)


def _row(out: Path, topology: str, fault: str, measured: Measured) -> str:
    streams = _compared(out, topology, fault, "streams", measured)
    job = _compared(out, topology, fault, "job", measured)
    held_out = (out / f"p{HELD_OUT}" / f"model-{topology}-{fault}-streams" / "verdict.json").exists()
    name = fault if held_out else f"{fault} (phase 1)"
    found = ["-"] * 4
    if streams is not None:
        p = "-" if streams.alike is None else f"{streams.alike:.3f}"
        found = [_percent(streams.load), _percent(streams.load_repaired), _percent(streams.goodput), p]
    return f"| {topology} | {name} | {' | '.join([*found, *_iterations(job)])} |\n"


def _iterations(job: Compared | None) -> list[str]:
    """The difference in each window, with the two figures; a dead job has none, an overloaded one is not trusted."""
    by = {} if job is None else {when: (lab, model) for when, lab, model in job.iterations}
    found = []
    for when in ("before", "after failure", "after repair"):
        pair = by.get(when)
        text = "-" if pair is None else f"{abs(pair[1] / pair[0] - 1):.1%} ({pair[0]:.0f} and {pair[1]:.0f} ms)"
        found.append(f"{text}, not trusted" if pair and job and job.doubts and when == "after failure" else text)
    return found


def _compared(out: Path, topology: str, fault: str, kind: str, measured: Measured) -> Compared | None:
    name = f"model-{topology}-{fault}-{kind}"
    for phase in (HELD_OUT, 1):
        folder = out / f"p{phase}" / name
        if (folder / "verdict.json").exists():
            cell = next(cell for cell in cells() if cell.name == name)
            return compare(folder, catalogue.load(str(cell.write(out))), measured)
    return None


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
        asked.times.write_text(text_of(measured_in(runs(asked.out, TAKEN_FROM, "streams"))), encoding="utf-8")
    text = asked.doc.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    found = table(asked.out, load(asked.times))
    asked.doc.write_text(f"{before}{BEGIN}{found}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
