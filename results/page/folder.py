"""A page from a run folder."""

from __future__ import annotations

from pathlib import Path

from results.page.page import page
from results.run.files import write
from results.run.reading import read

NAME = "report.html"


def report_of(path: Path) -> str:
    """The page of the run at ``path``, with what its folder does not tell named in it. InputError when it is none."""
    return page(read(path))


def write_report(path: Path) -> Path:
    """Write the page into the run's folder; where it is. InputError when it is no run folder."""
    place = path / NAME
    write(place, report_of(path).encode())
    return place
