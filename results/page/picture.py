"""The fabric of a run with what was broken in it. Pure.

Changes when the picture of a run shows something else.
"""

from __future__ import annotations

from collections.abc import Sequence

from results.graph.faults import marks_of
from results.graph.grouping import Level
from results.graph.overlay import Overlay
from results.graph.svg import fabric_svg
from results.run.drill import AskedFault
from testbed.fabric.model import Fabric

_MOST_NODES = 40
"""More than that are drawn by segments, or a page would be a picture alone."""


def fabric_picture(fabric: Fabric, faults: Sequence[AskedFault]) -> str:
    """The fabric as SVG with the faults marked at their targets; those at areas, such as a plane, have no place."""
    level = None if len(fabric.nodes) <= _MOST_NODES else Level.SEGMENT
    return fabric_svg(fabric, Overlay(faults=marks_of(fabric, faults)), level)
