"""Links that a drill captures, and the times: around each edge of its faults. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hpn.failover.faults import PlannedFault
from hpn.failover.faults.moments import Moment, moments
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link
from hpn.testbed.files.units import format_duration, format_size

MOST_LINKS = 64
"""Maximum number of links: each costs a packet socket, and Python code for each packet."""


@dataclass(frozen=True, slots=True)
class Captures:
    """Capture settings of a drill; ``parts`` are links, NICs and nodes, or empty for the parts that its faults hit."""

    parts: tuple[str, ...]
    before_ns: int
    after_ns: int
    snap_bytes: int

    @property
    def text(self) -> str:
        """Description as text."""
        what = ", ".join(self.parts) or "the links that faults hit"
        times = f"from {format_duration(self.before_ns)} before to {format_duration(self.after_ns)} after each edge"
        return f"{what}, {times}, {format_size(self.snap_bytes)} of a packet"


@dataclass(frozen=True, slots=True)
class Window:
    """Capture window relative to the start of traffic; ``name`` contains its edge."""

    name: str
    start_ns: int
    end_ns: int


def links_of(captures: Captures, fabric: Fabric, faults: Iterable[PlannedFault]) -> list[Link]:
    """Return the links to capture, each once. InputError when a part is not in the fabric."""
    if captures.parts:
        return fabric.links_of_all(captures.parts)
    return list(dict.fromkeys(link for planned in faults for link in planned.fault.links_hit(fabric)))


def windows_of(captures: Captures, faults: Iterable[PlannedFault], end_ns: int) -> list[Window]:
    """Return the windows around every edge; overlapping ones are joined and none goes beyond ``end_ns``."""
    found: list[Window] = []
    for moment in moments(faults):
        start_ns = max(moment.at_ns - captures.before_ns, 0)
        window_end_ns = min(moment.at_ns + captures.after_ns, end_ns)
        if found and start_ns <= found[-1].end_ns:
            found[-1] = Window(found[-1].name, found[-1].start_ns, window_end_ns)
        else:
            found.append(Window(f"{len(found) + 1}-{_name(moment)}", start_ns, window_end_ns))
    return found


def problem(captures: Captures, fabric: Fabric, faults: Sequence[PlannedFault]) -> tuple[str, str]:
    """Return the wrong key and the problem with its solution, or ('', '') if there is none."""
    if not faults:
        return "", " has no edge to capture around: the timeline has no faults; remove it, or see hpn capture"
    try:
        links = links_of(captures, fabric, faults)
    except InputError as error:
        return "links", f": {error}"
    if len(links) > MOST_LINKS:
        return "links", f" means {len(links)} links and at most {MOST_LINKS} fit; name fewer"
    return "", ""


def _name(moment: Moment) -> str:
    return f"{moment.due[0].planned.id}-{moment.kind.value}"
