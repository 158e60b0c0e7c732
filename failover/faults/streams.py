"""Traffic classes of a link, as far as faults distinguish them: by direction and by kind of frame. Pure.

Changes when a fault affects a new part of the traffic.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum, auto


class Direction(StrEnum):
    """Direction in which frames cross a link."""

    UP = "up"  # from the lower end, nearer to the hosts, to the upper
    DOWN = "down"


class Directions(StrEnum):
    """One way, or both."""

    BOTH = "both"
    UP = "up"
    DOWN = "down"

    @property
    def each(self) -> tuple[Direction, ...]:
        """The selected directions; for both, down first: it arrives at the lower end."""
        return (Direction.DOWN, Direction.UP) if self is Directions.BOTH else (Direction(self.value),)


class Frames(Enum):
    """Kinds of frames."""

    LACP = auto()
    ARP = auto()
    BGP = auto()
    DATA = auto()  # RoCEv2, acknowledgements too
    OTHER = auto()


Stream = tuple[Direction, Frames]


def streams(directions: Iterable[Direction], frames: Iterable[Frames]) -> frozenset[Stream]:
    """Return these frames in these directions."""
    kinds = tuple(frames)
    return frozenset((direction, kind) for direction in directions for kind in kinds)


EVERYTHING = streams(Direction, Frames)
"""Every stream of a link."""

NOTHING: frozenset[Stream] = frozenset()
