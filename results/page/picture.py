"""Picture of the fabric of one or several runs, with the faults marked.

Changes when the picture of a run shows something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hpn.results.graph.faults import marks_of
from hpn.results.graph.grouping import Level
from hpn.results.graph.overlay import Mark, Overlay
from hpn.results.graph.svg import fabric_svg
from hpn.results.page.runs import OneRun
from hpn.results.run.drill import AskedFault
from hpn.results.run.fabric import fabric_from
from hpn.results.run.files import content
from hpn.results.run.folder import RunFolder
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.model import Fabric

_MOST_NODES = 40
"""Maximum nodes drawn singly; larger fabrics are drawn by segment, else the picture would fill the page."""
_MOST_RUNS = 12


def fabric_picture(fabric: Fabric, faults: Sequence[AskedFault]) -> str:
    """Return the fabric as SVG with the faults marked at their targets.

    Faults of areas, such as a plane, have no mark.
    """
    return _drawn(fabric, marks_of(fabric, faults))


def picture_of_all(runs: Sequence[OneRun]) -> str:
    """Return the fabric that all runs share, with the faults of all, labelled by drill; '' if fabrics differ.

    '' also for more than 12 runs, or if a folder lacks its fabric or drill.
    """
    if not 0 < len(runs) <= _MOST_RUNS:
        return ""
    try:
        files = {content(path): path for path in (run.path / "fabric.json" for run in runs)}  # mostly one
        fabrics = [fabric_from(path, text) for text, path in files.items()]
        marks = tuple(mark for run in runs for mark in _marks(run, fabrics[0]))
    except (InputError, MachineError):
        return ""
    return _drawn(fabrics[0], marks) if all(each == fabrics[0] for each in fabrics) else ""


def _marks(run: OneRun, fabric: Fabric) -> tuple[Mark, ...]:
    drill = RunFolder(run.path).drill()
    return marks_of(fabric, [replace(fault, id=drill.name) for fault in drill.faults])


def _drawn(fabric: Fabric, marks: tuple[Mark, ...]) -> str:
    level = None if len(fabric.nodes) <= _MOST_NODES else Level.SEGMENT
    return fabric_svg(fabric, Overlay(faults=marks), level)
