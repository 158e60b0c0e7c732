"""Parts of a fabric that a fault may be in, and the paths that cross each. Pure.

A path crosses links in a direction, so that one fibre of a cable can be at fault. Parts that the same paths cross
cannot be told apart: they are one suspect (deTector, ATC 2017, calls that identifiability).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from hpn.testbed.fabric.model import Fabric

Way = tuple[str, bool]
"""A link, and True if it is taken upwards, from its lower end. Where nothing is crossed: a node alone, and True."""
Ends = Mapping[str, tuple[str, str]]
"""Lower and upper node of each link."""
Crossed = npt.NDArray[np.bool_]
"""A row for each suspect, a column for each path."""
_MOST_NAMED = 3


class PartKind(StrEnum):
    """Kind of a part; of two suspects that explain a loss equally well, the earlier kind is named first."""

    DIRECTION = "direction"  # of a link
    LINK = "link"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Part:
    """A part by name; ``upward`` is the direction of a link, None for a whole link or a node."""

    kind: PartKind
    name: str
    upward: bool | None = None

    def __str__(self) -> str:
        """Return its words: 'leaf1-spine1 upwards'."""
        if self.upward is None:
            return self.name
        return f"{self.name} {'upwards' if self.upward else 'downwards'}"


@dataclass(frozen=True, slots=True)
class Suspect:
    """Parts that no path tells apart."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        """Return the first parts in words."""
        more = len(self.parts) - _MOST_NAMED
        return " or ".join((*map(str, self.parts[:_MOST_NAMED]), *([f"{more} more"] if more > 0 else ())))


@dataclass(frozen=True, slots=True, eq=False)
class Suspects:
    """Suspects of a fabric under a set of paths. ``unseen``: links that no path crosses, where paths cross any."""

    paths: tuple[tuple[Way, ...], ...]
    suspects: tuple[Suspect, ...]
    crossed: Crossed
    unseen: tuple[str, ...]

    def of(self, part: Part) -> Suspect | None:
        """Return the suspect that a part belongs to; None if no path crosses it."""
        return next((suspect for suspect in self.suspects if part in suspect.parts), None)

    def across(self, suspect: Suspect) -> Crossed:
        """Return which paths cross a suspect."""
        row: Crossed = self.crossed[self.suspects.index(suspect)]
        return row


def ends_of(fabric: Fabric) -> Ends:
    """Return the ends of a fabric's links."""
    return {link.name: (link.lower.node, link.upper.node) for link in fabric.links}


def ways_of(ends: Ends, host: str, links: Sequence[str]) -> tuple[Way, ...]:
    """Return the links of a path from ``host`` on with their directions."""
    found, node = [], host
    for name in links:
        lower, upper = ends[name]
        found.append((name, lower == node))
        node = upper if lower == node else lower
    return tuple(found)


def suspects_of(ends: Ends, paths: Sequence[tuple[Way, ...]]) -> Suspects:
    """Return the suspects under these paths, simplest parts first."""
    rows: dict[bytes, tuple[list[Part], Crossed]] = {}
    crossing: dict[Part, Crossed] = {}
    for at, path in enumerate(paths):
        for part in _parts(ends, path):
            crossing.setdefault(part, np.zeros(len(paths), dtype=np.bool_))[at] = True
    for part in sorted(crossing, key=lambda each: list(PartKind).index(each.kind)):
        row = crossing[part]
        rows.setdefault(row.tobytes(), ([], row))[0].append(part)
    seen = {way[0] for path in paths for way in path}
    return Suspects(
        paths=tuple(paths),
        suspects=tuple(Suspect(tuple(parts)) for parts, _ in rows.values()),
        crossed=np.array([row for _, row in rows.values()], dtype=np.bool_).reshape(len(rows), len(paths)),
        unseen=tuple(name for name in ends if name not in seen) if seen & ends.keys() else (),
    )


def _parts(ends: Ends, path: tuple[Way, ...]) -> Iterator[Part]:
    """Yield each part that a path crosses; some twice."""
    for name, upward in path:
        if name not in ends:
            yield Part(PartKind.NODE, name)
            continue
        yield Part(PartKind.DIRECTION, name, upward)
        yield Part(PartKind.LINK, name)
        yield from (Part(PartKind.NODE, node) for node in ends[name])
