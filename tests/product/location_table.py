"""Which faults end hosts locate, by which method: ``make location-table``, of ``tests.product.location_cells``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hpn.failover.locating.answer import Located, located_by
from hpn.failover.locating.known import Standing
from hpn.failover.locating.methods import METHODS
from hpn.failover.locating.recorded import Recorded
from hpn.results.run.location import recorded_in
from tests.product.location_cells import LOAD, SHARES, Trial, trials
from tests.product.location_curves import Course, courses, over_rate, over_time
from tests.product.location_page import Answer, Told, page
from tests.product.table_runs import Table, command

TABLE = Table("location-table", "which faults end hosts locate", {1: [*trials()]})
HEALTHY_SOURCES = ("loss", "delay")
_CURVES = {f"{way}, {share}": share for way in ("one way", "both ways") for share in SHARES}
"""Cases that the pictures show, and the name of their line."""


def made(out: Path) -> Iterator[tuple[Answer, Sequence[Course]]]:
    """Every method's answers to every run that is there, and courses of the first method's."""
    for trial, folder in TABLE.made(out):
        if not isinstance(trial, Trial):
            continue
        run = _with_truth(trial, recorded_in(folder))
        for source in trial.sources or HEALTHY_SOURCES:
            for method in METHODS:
                found = located_by(run, source, method)
                yield _answer(trial, found), _courses(trial, found)


def _answer(trial: Trial, found: Located) -> Answer:
    cases = {key: case for key, case in trial.cases.items() if case.source == found.source}
    told = tuple(Told(cases[fault.fault], score) for fault, score in found.scores if fault.fault in cases)
    return Answer(trial.name, trial.topology, found.source, found.method, told, found.false_alarms)


def _courses(trial: Trial, found: Located) -> Sequence[Course]:
    lines = {key: _CURVES[case.name] for key, case in trial.cases.items() if case.name in _CURVES}
    if found.source != "loss" or found.method != next(iter(METHODS)) or not lines:
        return ()
    return tuple(courses(found, lines, trial.seed))


def _with_truth(trial: Trial, run: Recorded) -> Recorded:
    """Return the records of a run with what is wrong in it all the time among its faults."""
    always = [
        Standing(case.name, case.name, run.bins.start_ns, run.bins.end_ns, (part,))
        for case, part in trial.always().items()
    ]
    return replace(run, known=replace(run.known, faults=(*run.known.faults, *always)))


def main(arguments: Sequence[str]) -> None:
    """Make what is missing, write the table and its pictures beside it."""
    out, table = command(TABLE, arguments)
    found = list(made(out))
    table.write_text(page([answer for answer, _ in found]))
    shown = [course for _, courses in found for course in courses]
    if shown:
        pictures = table.parent / "pictures"
        pictures.mkdir(exist_ok=True)
        (pictures / "location-time.svg").write_text(over_time(shown))
        (pictures / "location-rate.svg").write_text(over_rate(shown, float(LOAD.removesuffix(" %"))))


if __name__ == "__main__":
    main(sys.argv[1:])
