"""Pages from folders: of a run, and over the runs below a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpn.results.page.many import many_page
from hpn.results.page.page import page
from hpn.results.page.runs import PAGE, runs_below
from hpn.results.run.files import write
from hpn.results.run.reading import read
from hpn.testbed.errors import InputError

NAME = PAGE


def report_of(path: Path, place: Path) -> str:
    """The page to lie at ``place`` of the run at ``path``, or over the runs below it. InputError where there is none.

    What a folder does not tell is named in it.
    """
    if (path / "manifest.json").exists():
        return page(read(path))
    return many_page(path, place)


def write_report(path: Path) -> Path:
    """Write the page into the folder; where it is. InputError when it is no folder of runs."""
    place = path / PAGE
    write(place, report_of(path, place).encode(errors="backslashreplace"))
    return place


def write_missing(path: Path) -> Iterator[Path | InputError]:
    """Write the page of each run below a folder that has none; where it is, or why there is none."""
    for run in runs_below(path, path / PAGE):
        if not run.has_page:
            try:
                yield write_report(run.path)
            except InputError as error:
                yield error
