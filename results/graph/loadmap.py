"""Heat map of loads by ToR in SVG: a panel for each moment, a grid for each tier, a cell for each ToR. Pure.

A cell is filled from below in proportion to the load of its links, and darker with higher load, so it is legible
without colours. A failed ToR is crossed out. Text follows the reader's light or dark setting, and the file loads
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.results.text.xml import escaped

_CELL, _GAP = 13.0, 2.0
_ROW_NAMES, _TOP, _GRID_HEAD, _BETWEEN, _MARGIN = 96.0, 48.0, 20.0, 24.0, 14.0
_SHADES = 5
_LETTER = 6.2

_STYLE = """
.hpn-load .paper{fill:#ffffff}
.hpn-load text{fill:#1b1f24;font-family:system-ui,sans-serif;font-size:11px}
.hpn-load .faint{fill:#57606a}
.hpn-load .ground{fill:#eef1f4}
.hpn-load .dead{stroke:#b3001b;stroke-width:1.8;fill:none}
.hpn-load .s1{fill:#cfe1f5}.hpn-load .s2{fill:#9cc3ea}.hpn-load .s3{fill:#5f9bd6}
.hpn-load .s4{fill:#2a6fb5}.hpn-load .s5{fill:#0b3f7a}
@media screen and (prefers-color-scheme:dark){
.hpn-load .paper{fill:#14171a}
.hpn-load text{fill:#e6e9ec}
.hpn-load .faint{fill:#a5adb6}
.hpn-load .ground{fill:#23282d}
.hpn-load .dead{stroke:#ff7b86}
.hpn-load .s1{fill:#21405f}.hpn-load .s2{fill:#2c5f92}.hpn-load .s3{fill:#3f86c9}
.hpn-load .s4{fill:#6cb2ff}.hpn-load .s5{fill:#d3e8ff}
}
"""


@dataclass(frozen=True, slots=True)
class Grid:
    """Shares of capacity of one tier, 0 to 1, rows by name and columns by segment; None is a failed ToR."""

    name: str
    rows: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """A moment; ``goodput``: of all NICs, as a share of their rate."""

    title: str
    goodput: float
    grids: tuple[Grid, ...]


def load_map_svg(title: str, panels: Sequence[Panel]) -> str:
    """Return the picture as an ``<svg>`` element, which is also valid as a file; all panels have the same grids."""
    grids = panels[0].grids
    across = max((len(row) for grid in grids for row in grid.cells), default=0) * _CELL
    width = _ROW_NAMES + len(panels) * (across + _BETWEEN) + _MARGIN
    width = max(width, 2 * _MARGIN + _LETTER * len(title))
    tops, at = [], _TOP
    for grid in grids:
        tops.append(at + _GRID_HEAD)
        at += _GRID_HEAD + len(grid.rows) * _CELL + 8
    height = at + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hpn-load" role="img" width="{width:.0f}"'
        f' height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escaped(title)}</title><desc>{escaped(_in_words(panels))}</desc><style>{_STYLE}</style>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
        _text(_MARGIN, 18, title),
    ]
    for grid, top in zip(grids, tops, strict=True):
        parts += [_text(_ROW_NAMES - 6, top + row * _CELL + 10, name, "faint", "end") for row, name in _some(grid.rows)]
    for number, panel in enumerate(panels):
        left = _ROW_NAMES + number * (across + _BETWEEN)
        parts.append(_text(left, 38, f"{panel.title}: NICs get {panel.goodput:.1%}"))
        for grid, top in zip(panel.grids, tops, strict=True):
            parts.append(_text(left, top - 5, f"{grid.name}: {_mean(grid):.0%}", "faint"))
            parts += _cells(grid, left, top)
    parts += [*_legend(_ROW_NAMES, height - 22), "</svg>\n"]
    return "\n".join(parts)


def _cells(grid: Grid, left: float, top: float) -> Iterator[str]:
    """Yield one path for each shade, as thousands of rectangles would make the file long."""
    paths = {f"s{shade}": "" for shade in range(1, _SHADES + 1)} | {"dead": ""}
    box = _CELL - _GAP
    for row, cells in enumerate(grid.cells):
        for column, share in enumerate(cells):
            x, y = left + column * _CELL, top + row * _CELL
            if share is None:
                paths["dead"] += f"M{x:g} {y:g}l{box:g} {box:g}m{-box:g} 0l{box:g} {-box:g}"
            elif share > 0:
                high = box * min(1.0, share)
                paths[_shade(share)] += f"M{x:g} {y + box:.1f}h{box:g}v{-high:.1f}h{-box:g}z"
    wide = max(map(len, grid.cells), default=0)
    ground = "".join(
        f"M{left + column * _CELL:g} {top:g}h{box:g}v{len(grid.rows) * _CELL - _GAP:g}h{-box:g}z"
        for column in range(wide)
    )
    yield f'<path class="ground" d="{ground}"/>'
    yield from (f'<path class="{kind}" d="{path}"/>' for kind, path in paths.items() if path)


def _shade(share: float) -> str:
    return f"s{min(_SHADES, 1 + int(share * _SHADES * (1 - 1e-9)))}"


def _legend(left: float, top: float) -> Iterator[str]:
    yield _text(left, top + 9, "a cell is a ToR, a column a segment; load:", "faint")
    at = left + 245
    for shade in range(1, _SHADES + 1):
        yield f'<rect class="s{shade}" x="{at:.0f}" y="{top:.0f}" width="11" height="11"/>'
        yield _text(at + 15, top + 9, f"to {100 * shade // _SHADES} %", "faint")
        at += 66
    yield f'<path class="dead" d="M{at:g} {top:g}l11 11m-11 0l11 -11"/>'
    yield _text(at + 15, top + 9, "dead", "faint")


def _in_words(panels: Sequence[Panel]) -> str:
    told = []
    for panel in panels:
        means = ", ".join(f"{grid.name} {_mean(grid):.0%}" for grid in panel.grids)
        dead = sum(cell is None for row in panel.grids[0].cells for cell in row)
        told.append(f"{panel.title}: NICs get {panel.goodput:.1%} of their rate; mean load {means}; {dead} ToRs dead")
    return ". ".join(told)


def _mean(grid: Grid) -> float:
    alive = [cell for row in grid.cells for cell in row if cell is not None]
    return sum(alive) / len(alive) if alive else 0.0


def _some(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield every other name, as the rows are narrow."""
    return ((row, name) for row, name in enumerate(names) if row % 2 == 0)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'
