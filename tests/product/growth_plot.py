"""The picture of docs/growth.md: figures against links, both logarithmic. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log10

WIDTH, HEIGHT = 800, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 230, 20, 45
_LINES = (
    (("converged_s",), "up and converged, s", "#1b6ca8"),
    (("supervisor_cpu_s",), "CPU of the supervisor until then, s", "#c0392b"),
    (("bgp_cpu_s",), "CPU of the BGP daemons until then, s", "#b8860b"),
    (("longest_turn_s",), "longest turn of the loop, s", "#6c3483"),
    (
        ("idle_supervisor_percent", "idle_lacp_percent", "idle_bgp_percent"),
        "all of it at rest, % of a core",
        "#1e8449",
    ),
)
"""Figures that are added up, the words for them, a colour."""


def plot(known: Mapping[str, Mapping[str, float]]) -> str:
    """An SVG of what is known of each size; a reference line grows with the square of the links."""
    sizes = sorted(known.values(), key=lambda figures: figures["links"])
    xs = [figures["links"] for figures in sizes]
    lines = [(_points(sizes, keys), words, colour) for keys, words, colour in _LINES]
    ys = [value for points, _, _ in lines for _, value in points]
    if not ys:
        raise ValueError("nothing to draw")
    frame = _Frame(min(xs), max(xs), 10 ** _floor(min(ys)), 10 ** (_floor(max(ys)) + 1))
    body = [*frame.grid(), *frame.square()]
    for row, (points, words, colour) in enumerate(lines):
        body += frame.line(points, colour)
        y = _TOP + 14 + 34 * row
        body.append(f'<text x="{WIDTH - _RIGHT + 12}" y="{y}" fill="{colour}">{escape(words.split(", ")[0])}</text>')
        unit = escape(", ".join(words.split(", ")[1:]))
        body.append(f'<text x="{WIDTH - _RIGHT + 12}" y="{y + 14}" fill="{colour}">in {unit}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    return f'{head} font-size="11">\n<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"


def _points(sizes: Sequence[Mapping[str, float]], keys: Sequence[str]) -> list[tuple[float, float]]:
    """Links and a figure of each size, where it is above zero and so has a place on the axis."""
    found = [(figures["links"], sum(figures.get(key, 0) for key in keys)) for figures in sizes]
    return [(links, value) for links, value in found if value > 0]


class _Frame:
    """Where a number of links and a figure lie."""

    def __init__(self, least_x: float, most_x: float, least_y: float, most_y: float) -> None:
        self._x = log10(least_x), max(log10(most_x), log10(least_x) + 0.1)
        self._y = log10(least_y), log10(most_y)
        self._links = least_x, most_x

    def x(self, links: float) -> float:
        share = (log10(links) - self._x[0]) / (self._x[1] - self._x[0])
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (log10(value) - self._y[0]) / (self._y[1] - self._y[0])
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def grid(self) -> Iterator[str]:
        for power in range(_floor(10 ** self._y[0]), _floor(10 ** self._y[1]) + 1):
            y = self.y(10.0**power)
            yield f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>'
            yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{10.0**power:g}</text>'
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        yield f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">links of the lab</text>'

    def line(self, points: list[tuple[float, float]], colour: str) -> Iterator[str]:
        places = [(self.x(links), self.y(value)) for links, value in points]
        path = " ".join(f"{x},{y}" for x, y in places)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        for (links, value), (x, y) in zip(points, places, strict=True):
            yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"><title>{links:g} links: {value:g}</title></circle>'
            yield f'<text x="{x}" y="{HEIGHT - 26}" text-anchor="middle">{links:g}</text>'

    def square(self) -> Iterator[str]:
        """From the lower left corner on, growth with the square of the links."""
        least, most = self._links
        ratio = min((most / least) ** 2, 10 ** (self._y[1] - self._y[0]))
        start, end = 10 ** self._y[0], 10 ** self._y[0] * ratio
        x2, y2 = self.x(least * ratio**0.5), self.y(end)
        ends = f'x1="{self.x(least)}" y1="{self.y(start)}" x2="{x2}" y2="{y2}"'
        yield f'<line {ends} stroke="#999" stroke-dasharray="4"/>'
        yield f'<text x="{x2 - 4}" y="{y2 + 14}" text-anchor="end" fill="#777">square</text>'


def _floor(value: float) -> int:
    power = round(log10(value), 6)
    return int(power // 1)
