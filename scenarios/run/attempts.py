"""Further attempts for a run whose measurement is in doubt, for example on a busy machine.

A run with a figure too near to its limit is not repeated: it is a result. Repeating it until it passes would be
choosing the answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

from hpn.results.run.folder import RunFolder, create


def tried(make: Callable[[], RunFolder], tries: int, on_line: Callable[[str], None]) -> RunFolder:
    """Return the run of ``make``, called again while the measurement is in doubt, at most ``tries`` times in all.

    A doubtful run is stored as FOLDER.doubtful-N alongside its replacement; the manifest of the last run counts its
    attempts. InputError when a doubtful run's place is taken by something other than a run folder.
    """
    run = make()
    for number in range(1, tries):
        doubts = run.verdict().doubts
        if not doubts:
            break
        on_line(f"{run.path.name}: inconclusive because {doubts[0]}; try {number + 1} of {tries}")
        _set_aside(run, number)
        run = make()
        run.write_manifest(replace(run.manifest(), attempt=number + 1))
    return run


def _set_aside(run: RunFolder, number: int) -> None:
    place = run.path.with_name(f"{run.path.name}.doubtful-{number}")
    shutil.rmtree(create(place).path)  # remove one of an earlier command with the same --out
    run.path.rename(place)
