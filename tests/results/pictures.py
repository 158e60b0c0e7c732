"""An SVG picture of a fabric as its reader gets it: boxes, lines and what they stand for, out of the text itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
Point = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    """A box: where it is, what it says when pointed at."""

    left: float
    top: float
    right: float
    bottom: float
    title: str
    classes: frozenset[str]


@dataclass(frozen=True)
class Stroke:
    """A line."""

    start: Point
    end: Point
    title: str
    classes: frozenset[str]


@dataclass(frozen=True)
class Picture:
    """All of it."""

    root: ElementTree.Element
    boxes: tuple[Rect, ...]
    strokes: tuple[Stroke, ...]

    @property
    def nodes(self) -> int:
        """How many nodes its boxes stand for."""
        return self._sum("data-nodes")

    @property
    def links(self) -> int:
        """How many links its lines stand for, and its boxes have within."""
        return self._sum("data-links")

    @property
    def texts(self) -> list[str]:
        """Every text that is seen."""
        return [element.text or "" for element in self.root.iter(f"{SVG}text")]

    def _sum(self, attribute: str) -> int:
        return sum(int(element.get(attribute, "0")) for element in self.root.iter())


def read(text: str) -> Picture:
    """The picture in an SVG text."""
    root = ElementTree.fromstring(text)
    boxes = [(group, rect) for group in root.iter(f"{SVG}g") for rect in group if rect.get("data-nodes")]
    lines = [line for line in root.iter(f"{SVG}line") if line.get("data-links")]
    return Picture(root, tuple(_rect(*each) for each in boxes), tuple(map(_stroke, lines)))


def _rect(group: ElementTree.Element, rect: ElementTree.Element) -> Rect:
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    classes = frozenset(rect.attrib["class"].split())
    return Rect(x, y, x + width, y + height, group.findtext(f"{SVG}title", ""), classes)


def _stroke(line: ElementTree.Element) -> Stroke:
    x1, y1, x2, y2 = (float(line.attrib[name]) for name in ("x1", "y1", "x2", "y2"))
    return Stroke((x1, y1), (x2, y2), line.findtext(f"{SVG}title", ""), frozenset(line.attrib["class"].split()))


def overlapping(picture: Picture) -> Iterator[tuple[str, str]]:
    """Boxes that share a place."""
    for one, other in combinations(picture.boxes, 2):
        beside = one.right <= other.left or other.right <= one.left
        if not beside and one.top < other.bottom and other.top < one.bottom:
            yield one.title, other.title


def crossing(picture: Picture, one: str, other: str) -> Iterator[tuple[str, str]]:
    """Lines of one class that meet a line of another."""
    first = [stroke for stroke in picture.strokes if one in stroke.classes]
    second = [stroke for stroke in picture.strokes if other in stroke.classes]
    for here, there in product(first, second):
        if _meet(here, there):
            yield here.title, there.title


def through_boxes(picture: Picture) -> Iterator[tuple[str, str]]:
    """Lines that lead through a box in which they do not end."""
    for stroke, box in product(picture.strokes, picture.boxes):
        low, high = sorted((stroke.start[1], stroke.end[1]))
        within = low < box.top and box.bottom < high
        if within and _meets_row(stroke, box):
            yield stroke.title, box.title


def _meets_row(stroke: Stroke, box: Rect) -> bool:
    """Whether a line that passes the height of a box passes through it."""
    share = ((box.top + box.bottom) / 2 - stroke.start[1]) / (stroke.end[1] - stroke.start[1])
    return box.left <= stroke.start[0] + (stroke.end[0] - stroke.start[0]) * share <= box.right


def _meet(one: Stroke, other: Stroke) -> bool:
    """Whether two lines have a point in common: each has the other's ends on its two sides, or on itself."""
    if max(one.start[1], one.end[1]) < min(other.start[1], other.end[1]):
        return False
    if max(other.start[1], other.end[1]) < min(one.start[1], one.end[1]):
        return False
    sides = [_side(one, other.start) * _side(one, other.end), _side(other, one.start) * _side(other, one.end)]
    return max(sides) <= 0


def _side(stroke: Stroke, point: Point) -> float:
    (ax, ay), (bx, by), (px, py) = stroke.start, stroke.end, point
    return (bx - ax) * (py - ay) - (by - ay) * (px - ax)
