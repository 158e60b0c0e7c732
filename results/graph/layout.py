"""Layout of boxes and lines: hosts in a row, the planes on either side of it. Pure.

Changes when a fabric is to be laid out in another way. Plane 0 has all of its switches above the hosts and plane 1
below, and every line is straight from one row to the next. So lines of different planes never meet. With one plane,
everything is above the hosts, as trees are drawn. Switches of a direct network are one row, joined by arcs away from
the hosts, the wider the higher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.results.graph.arcs import nested, rise
from hpn.results.graph.grouping import Box, Bundle, Drawn, Level
from hpn.testbed.fabric.model import LinkKind, Role
from hpn.testbed.fabric.spec import WIRED

MARGIN = 16.0
LEFT = 86.0  # for the names of the rows
STRIP = 16.0  # for the name of a segment, next to its hosts
_CHARACTER = 6.8  # width of a character at 11 pixels height, in a wide font
_HOST_HEIGHT, _SWITCH_HEIGHT, _LINE_HEIGHT = 48.0, 24.0, 14.0
_CELLS = ((32, 34.0), (80, 20.0), (10**9, 14.0))  # maximum NICs of the fabric, and the width of one
_GAP, _HOST_GAP, _SEGMENT_GAP, _POD_GAP = 14.0, 2.0, 14.0, 36.0
_EDGE = 0.86  # share of a box's edge that lines go to
_TIERS = (Role.TOR, Role.AGG, Role.CORE)


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box with its upper left corner and size, in pixels. ``upright``: its text is rotated for lack of room."""

    box: Box
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    upright: bool = False

    @property
    def middle(self) -> tuple[float, float]:
        """Centre of the box."""
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Line:
    """A bundle as a line from its lower to its upper end, or as an arc whose top is ``rise`` pixels above these."""

    bundle: Bundle
    x1: float
    y1: float
    x2: float
    y2: float
    rise: float = 0.0

    def at(self, share: float) -> tuple[float, float]:
        """Return the point at that share of the length from the lower end."""
        x, y = self.x1 + (self.x2 - self.x1) * share, self.y1 + (self.y2 - self.y1) * share
        return x, y - self.rise * 4 * share * (1 - share)


@dataclass(frozen=True, slots=True)
class Frame:
    """A name and its rectangle: around a segment's hosts, or the space for a row's name."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """A complete picture."""

    width: float
    height: float
    boxes: tuple[PlacedBox, ...]
    lines: tuple[Line, ...]
    segments: tuple[Frame, ...]
    rows: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class _Size:
    width: float
    height: float
    lines: tuple[str, ...]
    upright: bool = False


Span = tuple[float, float]
Block = tuple[int, int | None]  # pod and segment


def side(plane: int | None) -> int:
    """Return -1 for planes above the hosts, 1 for planes below, 0 for hosts. More than two planes share the sides."""
    return 0 if plane is None else 1 if plane % 2 else -1


def lay_out(found: Drawn) -> Layout:
    """Place all boxes and lines."""
    sizes = {box.name: _size(found, box) for box in found.boxes}
    blocks, pods = _columns(found, sizes)
    whole = (LEFT, max(end for _, end in pods.values()))
    rows = _rows(found, sizes, whole[1] - whole[0])
    placed: dict[str, PlacedBox] = {}
    for (role, at), (top, _) in rows.items():
        for span, of_span in _spans(found.boxes, role, at, blocks, pods, whole):
            spread = _together if role is Role.HOST else _evenly
            for box, x in zip(of_span, spread([sizes[box.name].width for box in of_span], span), strict=True):
                size = sizes[box.name]
                placed[box.name] = PlacedBox(box, x, top, size.width, size.height, size.lines, size.upright)
    height = max(top + tall for top, tall in rows.values()) + MARGIN
    hosts = next((row for (role, _), row in rows.items() if role is Role.HOST), (MARGIN, _HOST_HEIGHT))
    names = tuple(Frame(_row_name(found, *key), MARGIN, top, LEFT - MARGIN, tall) for key, (top, tall) in rows.items())
    segments = _segments(found, blocks, hosts)
    return Layout(whole[1] + MARGIN, height, tuple(placed.values()), _lines(found, placed), segments, names)


def _size(found: Drawn, box: Box) -> _Size:
    """Return the size that a box needs for its text."""
    if box.role is not Role.HOST or len(box.lines) > 1:
        height = _SWITCH_HEIGHT + _LINE_HEIGHT * (len(box.lines) - 1)
        return _Size(max(map(text_width, box.lines)) + 10, height, box.lines)
    nics = len(found.fabric.nics)
    cell = next(width for most, width in _CELLS if nics <= most)
    width = cell * max(1, len(found.fabric.nics_of(box.name)))
    if found.fabric.spec.architecture == WIRED:  # no number stands for the name
        return _Size(max(width, text_width(box.lines[0]) + 4), _HOST_HEIGHT, box.lines)
    if text_width(box.name) + 4 <= width:
        return _Size(width, _HOST_HEIGHT, box.lines)
    short = (f"h{box.members[0].index}",)
    return _Size(width, _HOST_HEIGHT, short, upright=text_width(short[0]) + 2 > width)


def text_width(text: str) -> float:
    """Return the maximum width of a text in pixels, for the characters of names."""
    return len(text) * _CHARACTER


def _columns(found: Drawn, sizes: Mapping[str, _Size]) -> tuple[dict[Block, Span], dict[int, Span]]:
    """Return the horizontal extent of segments and pods: as wide as the widest of their rows."""
    rows: dict[tuple[Role, int, int, int | None], float] = {}
    strip = STRIP if found.level is Level.NONE else 0.0
    for box in found.boxes:
        segment = box.segment if box.role in {Role.HOST, Role.TOR} else None
        key = (box.role, side(box.plane), box.pod, segment)
        rows[key] = rows.get(key, 0.0) + sizes[box.name].width + (_HOST_GAP if box.role is Role.HOST else _GAP)
    blocks: dict[Block, Span] = {}
    pods: dict[int, Span] = {}
    x = LEFT
    order = dict.fromkeys((box.pod, box.segment) for box in found.boxes if box.role in {Role.HOST, Role.TOR})
    for pod in dict.fromkeys(pod for pod, _ in order):
        begin = x
        for block in (each for each in order if each[0] == pod):
            own = [rows.get((role, at, *block), 0.0) for role in (Role.HOST, Role.TOR) for at in (-1, 0, 1)]
            blocks[block] = (x + strip, x + strip + max(own))
            x = blocks[block][1] + _SEGMENT_GAP
        wanted = [wide for (role, _, of, _), wide in rows.items() if of == pod and role is Role.AGG]
        x = max(x - _SEGMENT_GAP, begin + max(wanted, default=0.0))
        _stretch(blocks, pod, begin, x)
        pods[pod] = (begin, x)
        x += _POD_GAP
    cores = [wide for (role, *_), wide in rows.items() if role is Role.CORE]
    last = next(reversed(pods))
    pods[last] = (pods[last][0], max(pods[last][1], LEFT + max(cores, default=0.0)))
    _stretch(blocks, last, *pods[last])
    return blocks, pods


def _stretch(blocks: dict[Block, Span], pod: int, begin: float, end: float) -> None:
    """Widen the segments of a pod until they fill it."""
    own = [block for block in blocks if block[0] == pod]
    more = (end - max(blocks[block][1] for block in own)) / len(own)
    for number, block in enumerate(own):
        blocks[block] = (blocks[block][0] + number * more, blocks[block][1] + (number + 1) * more)


def _rows(found: Drawn, sizes: Mapping[str, _Size], width: float) -> dict[tuple[Role, int], Span]:
    """Return upper edge and height of every row, by role and side, from top to bottom; arcs have room above."""
    tall: dict[tuple[Role, int], float] = {}
    for box in found.boxes:
        key = (box.role, side(box.plane))
        tall[key] = max(tall.get(key, 0.0), sizes[box.name].height)
    order = [(role, -1) for role in reversed(_TIERS)] + [(Role.HOST, 0)] + [(role, 1) for role in _TIERS]
    rows: dict[tuple[Role, int], Span] = {}
    arcs = any(bundle.kind is LinkKind.MESH for bundle in found.bundles)
    y, above = MARGIN + (rise(width) if arcs else 0.0), None
    for key in order:
        if key in tall:
            y += _between(above, key[0], width) if above is not None else 0.0
            rows[key] = (y, tall[key])
            y += tall[key]
            above = key[0]
    return rows


def _between(one: Role, other: Role, width: float) -> float:
    """Return the space between two rows: more for wide pictures, whose lines would otherwise be too flat."""
    if Role.HOST in {one, other}:
        return min(max(width * 0.08, 76.0), 140.0)
    return min(max(width * 0.1, 84.0), 220.0)


def _spans(
    boxes: Iterable[Box], role: Role, at: int, blocks: Mapping[Block, Span], pods: Mapping[int, Span], whole: Span
) -> list[tuple[Span, list[Box]]]:
    """Return the boxes of a row by their column."""
    found: dict[Span, list[Box]] = {}
    for box in boxes:
        if box.role is role and side(box.plane) == at:
            of_pod = pods.get(box.pod, whole) if role is Role.AGG else whole
            span = blocks[box.pod, box.segment] if role in {Role.HOST, Role.TOR} else of_pod
            found.setdefault(span, []).append(box)
    return list(found.items())


def _evenly(widths: Sequence[float], span: Span) -> list[float]:
    """Return left edges with equal spaces between boxes."""
    gap = (span[1] - span[0] - sum(widths)) / len(widths)
    return [span[0] + gap / 2 + sum(widths[:n]) + n * gap for n in range(len(widths))]


def _together(widths: Sequence[float], span: Span) -> list[float]:
    """Return left edges of boxes side by side in the middle."""
    start = (span[0] + span[1] - sum(widths) - _HOST_GAP * (len(widths) - 1)) / 2
    return [start + sum(widths[:n]) + n * _HOST_GAP for n in range(len(widths))]


def _row_name(found: Drawn, role: Role, at: int) -> str:
    word = {Role.HOST: "hosts", Role.TOR: "ToRs", Role.AGG: "Aggs", Role.CORE: "Cores"}[role]
    planes = [plane for plane in range(found.fabric.planes) if side(plane) == at]
    if role is Role.HOST or found.fabric.planes == 1:
        return word
    return f"{word}\nplane{'s' if len(planes) > 1 else ''} {' '.join(map(str, planes))}"


def _segments(found: Drawn, blocks: Mapping[Block, Span], hosts: Span) -> tuple[Frame, ...]:
    """Return the frames of segments, if hosts are drawn singly."""
    if found.level is not Level.NONE:
        return ()
    top, tall = hosts
    return tuple(
        Frame(_segment_name(found, pod, segment), begin - STRIP, top - 5, end - begin + STRIP, tall + 10)
        for (pod, segment), (begin, end) in blocks.items()
    )


def _segment_name(found: Drawn, pod: int, segment: int | None) -> str:
    return f"segment {segment}" if found.fabric.spec.architecture == WIRED else f"p{pod}.s{segment}"


def _lines(found: Drawn, placed: Mapping[str, PlacedBox]) -> tuple[Line, ...]:
    """Return every line, with its ends spread along the edges of its boxes so that few lines cross."""
    ends: dict[tuple[str, bool], list[tuple[float, int]]] = {}
    for number, bundle in enumerate(found.bundles):
        if bundle.kind is LinkKind.MESH:
            for here, there in ((bundle.lower, bundle.upper), (bundle.upper, bundle.lower)):
                ends.setdefault((here, False), []).append(
                    (nested(placed[here].middle[0], placed[there].middle[0]), number)
                )
        elif bundle.kind is not LinkKind.PEER:
            for here, there in ((bundle.lower, bundle.upper), (bundle.upper, bundle.lower)):
                below = placed[there].y > placed[here].y
                ends.setdefault((here, below), []).append((_towards(found, bundle, here, placed[there]), number))
    where: dict[tuple[str, int], float] = {}
    for (name, _), at_edge in ends.items():
        box = placed[name]
        step = box.width * _EDGE / len(at_edge)
        first = box.x + box.width / 2 - step * (len(at_edge) - 1) / 2
        where |= {(name, number): first + n * step for n, (_, number) in enumerate(sorted(at_edge))}
    return tuple(_line(bundle, number, placed, where) for number, bundle in enumerate(found.bundles))


def _towards(found: Drawn, bundle: Bundle, here: str, there: PlacedBox) -> float:
    """Return the sort key of a line at an edge: its far end; at a host the order of its NICs' ports."""
    if bundle.kind is LinkKind.ACCESS and here == bundle.lower and found.level is Level.NONE:
        nic = found.fabric.nic_of_link(bundle.links[0].name)
        return nic.rail + nic.links.index(bundle.links[0]) / len(nic.links)
    return there.middle[0]


def _line(bundle: Bundle, number: int, placed: Mapping[str, PlacedBox], where: Mapping[tuple[str, int], float]) -> Line:
    lower, upper = placed[bundle.lower], placed[bundle.upper]
    if bundle.kind is LinkKind.PEER:
        left, right = sorted((lower, upper), key=lambda each: each.x)
        y = left.middle[1]
        ends = (left.x + left.width, right.x)
        x1, x2 = ends if left is lower else ends[::-1]
        return Line(bundle, x1, y, x2, y)
    if bundle.kind is LinkKind.MESH:
        low_x, high_x = where[bundle.lower, number], where[bundle.upper, number]
        return Line(bundle, low_x, lower.y, high_x, upper.y, rise(abs(high_x - low_x)))
    y1, y2 = (lower.y, upper.y + upper.height) if upper.y < lower.y else (lower.y + lower.height, upper.y)
    return Line(bundle, where[bundle.lower, number], y1, where[bundle.upper, number], y2)
