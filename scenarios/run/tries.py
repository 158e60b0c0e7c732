"""Another try for a run that cannot be trusted, such as one on a machine that others kept busy.

Only a run whose measurement is in doubt is made again. One with a figure too near to its limit says something about
that figure; making it again until it passes would be choosing the answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

from hpn.results.run.folder import RunFolder, create


def tried(make: Callable[[], RunFolder], tries: int, on_line: Callable[[str], None]) -> RunFolder:
    """What ``make`` brings, called again while the run cannot be trusted, at most ``tries`` times in all.

    A doubtful run stays beside the one that took its place, as FOLDER.doubtful-N; the manifest of the last one counts
    its tries. InputError when something else than a run folder is there.
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
    shutil.rmtree(create(place).path)  # one of an earlier command with the same --out
    run.path.rename(place)
