"""Formats of other programs that a run folder can be written in.

Changes when another program is to read runs. Modules that import numpy are imported when their format is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpn.testbed.entries import Registry

if TYPE_CHECKING:
    from hpn.results.run.reading import Run

Content = Callable[["Run"], tuple[bytes, Sequence[str]]]
"""From a run as read to the file, and what it lacks, one line each. InputError if the run has nothing to write."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format. ``ending``: of its files, with the dot; ``about``: what is in it, in lines for the help."""

    name: str
    ending: str
    about: tuple[str, ...]
    content: Content


def _trace(run: Run) -> tuple[bytes, Sequence[str]]:
    from hpn.results.export.timeline import trace_of  # numpy

    return trace_of(run), [f"{gap.part}: {gap.why}" for gap in run.gaps]


def _control(run: Run) -> tuple[bytes, Sequence[str]]:
    from hpn.results.export.control import control_frames  # numpy

    found = control_frames(run)
    return found.file, found.gaps


PCAPNG = Format(
    "pcapng",
    ".pcapng",
    (
        "LACP, ARP, BGP and the like around each fault, the faults as comments of packets; of a",
        "drill that captures (docs/drills.md)",
    ),
    _control,
)
FORMATS: Registry[Format] = Registry(
    "export format",
    lambda form: form.name,
    (
        Format(
            "perfetto",
            ".json",
            (
                "trace events for ui.perfetto.dev and chrome://tracing: faults, what LAG, LACP, BGP and",
                "path control did, outages, paths, iterations of ranks, goodput, queues, load of the machine",
            ),
            _trace,
        ),
        PCAPNG,
    ),
    of=Format,
)
"""Export formats, by the name that ``hpn export --format`` takes."""
