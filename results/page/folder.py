"""Pages from folders: of one run, and of all runs below a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpn.results.page.page import page
from hpn.results.page.runs import PAGE, runs_below
from hpn.results.page.runs_page import many_page
from hpn.results.run.files import write
from hpn.results.run.reading import read
from hpn.testbed.errors import InputError

NAME = PAGE


def report_of(path: Path, place: Path) -> str:
    """Return the page for ``place`` of the run at ``path``, or of all runs below it. InputError if there is none.

    The page names the parts that a folder lacks.
    """
    if (path / "manifest.json").exists():
        return page(read(path))
    return many_page(path, place)


def write_report(path: Path) -> Path:
    """Write the page into the folder and return its path. InputError if the folder has no run."""
    place = path / PAGE
    write(place, report_of(path, place).encode(errors="backslashreplace"))
    return place


def write_missing(path: Path) -> Iterator[Path | InputError]:
    """Write the page of each run below a folder that lacks one; yield its path, or the error."""
    for run in runs_below(path, path / PAGE):
        if not run.has_page:
            try:
                yield write_report(run.path)
            except InputError as error:
                yield error
