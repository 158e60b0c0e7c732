"""Iteration time by job size: lines over GPUs on a logarithmic axis, as SVG. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.results.text.xml import escaped

_WIDTH, _HEIGHT = 860.0, 420.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 60.0, 44.0, 250.0, 46.0
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "1 4", "12 4")
_COLOURS = 6
_APART = 14.0  # distance of names, so that none covers another

_STYLE = """
.hpn-sizes .paper{fill:#ffffff}
.hpn-sizes text{fill:#1b1f24;font-family:system-ui,sans-serif;font-size:11px}
.hpn-sizes .faint{fill:#57606a}
.hpn-sizes .grid{stroke:#d8dee4;stroke-width:1}
.hpn-sizes .line{fill:none;stroke-width:2}
.hpn-sizes .c0{stroke:#0b5cad}.hpn-sizes .c1{stroke:#9a4a00}.hpn-sizes .c2{stroke:#0a7d3c}
.hpn-sizes .c3{stroke:#8a1c7c}.hpn-sizes .c4{stroke:#b3001b}.hpn-sizes .c5{stroke:#4a5560}
@media screen and (prefers-color-scheme:dark){
.hpn-sizes .paper{fill:#14171a}
.hpn-sizes text{fill:#e6e9ec}
.hpn-sizes .faint{fill:#a5adb6}
.hpn-sizes .grid{stroke:#30363d}
.hpn-sizes .c0{stroke:#6cb2ff}.hpn-sizes .c1{stroke:#f0a35e}.hpn-sizes .c2{stroke:#4fd18b}
.hpn-sizes .c3{stroke:#e08fd6}.hpn-sizes .c4{stroke:#ff7b86}.hpn-sizes .c5{stroke:#aab3bc}
}
"""


@dataclass(frozen=True, slots=True)
class Course:
    """One line: numbers of GPUs, and seconds per iteration of a job of that size."""

    name: str
    points: tuple[tuple[int, float], ...]


def sizes_svg(title: str, courses: Sequence[Course]) -> str:
    """Return the picture as an ``<svg>`` element; dashes and a name at its end identify a line."""
    points = [point for course in courses for point in course.points]
    least, most = min(x for x, _ in points), max(x for x, _ in points)
    low, high = _bounds([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        along = math.log(x / least) / math.log(most / least) if most > least else 0.5
        return (
            _LEFT + along * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - (y - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hpn-sizes" role="img" width="{_WIDTH:.0f}"'
        f' height="{_HEIGHT:.0f}" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}">',
        f"<title>{escaped(title)}</title><desc>{escaped(_in_words(courses))}</desc><style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}"/>',
        _text(14, 20, title),
        _text(14, 36, "seconds an iteration", "faint"),
    ]
    for x in sorted({x for x, _ in points}):
        across, floor = place(x, low)
        parts.append(f'<path class="grid" d="M{across:.1f} {_TOP:g}V{floor:.1f}"/>')
        parts.append(_text(across, floor + 16, f"{x:,}", "faint", "middle"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, "GPUs of the job", "faint", "middle"))
    for y in _steps(low, high):
        left, down = place(least, y)
        parts.append(f'<path class="grid" d="M{left:.1f} {down:.1f}H{_WIDTH - _RIGHT:.1f}"/>')
        parts.append(_text(_LEFT - 6, down + 4, f"{y:.2f}", "faint", "end"))
    for number, course in enumerate(courses):
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in course.points))
        dash = f' stroke-dasharray="{_DASHES[number % len(_DASHES)]}"' if number % len(_DASHES) else ""
        parts.append(f'<polyline class="line c{number % _COLOURS}"{dash} points="{drawn}"/>')
    ends = [place(*course.points[-1])[1] for course in courses]
    parts += _names(courses, ends)
    return "\n".join([*parts, "</svg>\n"])


def _names(courses: Sequence[Course], ends: Sequence[float]) -> Iterator[str]:
    """Yield names at the ends of their lines, moved down if they would overlap."""
    before = -math.inf
    for number in sorted(range(len(courses)), key=lambda at: ends[at]):
        before = max(ends[number] + 4, before + _APART)
        left = _WIDTH - _RIGHT
        dash = f' stroke-dasharray="{_DASHES[number % len(_DASHES)]}"' if number % len(_DASHES) else ""
        line = f"M{left + 4:g} {before - 4:.1f}h24"
        yield f'<path class="line c{number % _COLOURS}"{dash} d="{line}"/>'
        yield _text(left + 32, before, f"{courses[number].name}: {courses[number].points[-1][1]:.2f} s")


def _bounds(ys: Sequence[float]) -> tuple[float, float]:
    """Return round ends of the axis: a tenth below and above."""
    low, high = min(ys), max(ys)
    room = max(high - low, 0.05 * high, 1e-9) * 0.1
    return max(0.0, math.floor((low - room) * 10) / 10), math.ceil((high + room) * 10) / 10


def _steps(low: float, high: float) -> list[float]:
    """Return round numbers from end to end, eight at most."""
    tenths = range(round(low * 10), round(high * 10) + 1)
    return [tenth / 10 for tenth in tenths[:: 1 + len(tenths) // 9]]


def _in_words(courses: Sequence[Course]) -> str:
    return ". ".join(
        f"{course.name}: " + ", ".join(f"{y:.2f} s on {x:,} GPUs" for x, y in course.points) for course in courses
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'
