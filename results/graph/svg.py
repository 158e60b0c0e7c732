"""SVG of a fabric without scripts, identifiers or external content, so that a page can contain it. Pure.

Changes when the picture should look different. Shapes show states, before colours do. Failed parts are dashed and
crossed out, a fault is a numbered disc, and load is a line's width. A flow is a thick line with its steps in numbered
squares. ``currentColor`` is not used: pages and separate files must be legible on light and on dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap

from hpn.results.graph import cost, labels
from hpn.results.graph.colours import ON_DARK, ON_PAPER, plane_rules
from hpn.results.graph.grouping import Box, Drawn, Level, drawn
from hpn.results.graph.layout import MARGIN, Frame, Layout, Line, PlacedBox, lay_out, text_width
from hpn.results.graph.overlay import NOTHING, Overlay
from hpn.results.text.width import shortened
from hpn.results.text.xml import escaped
from hpn.testbed.fabric.model import Fabric

_LEAST_WIDTH = 420.0
_LINE = 17.0  # height of a line of the legend
_BESIDE = 62.0  # left edge of its texts
_MOST_FOLDED = 4  # maximum lines of a text
_MOST_COUNTS = 150  # maximum bundles whose link counts are shown
_WIDTHS = ((0.01, 0.8), (0.25, 1.6), (0.5, 2.8), (0.75, 4.2), (float("inf"), 6.0))
"""Upper limit of the load, as a share of a link's rate, and the width of the line."""

_STYLE = (
    """
.hpn-fabric .paper{fill:#ffffff}
.hpn-fabric text{fill:#1b1f24;font-family:system-ui,sans-serif;font-size:11px}
.hpn-fabric .faint{fill:#57606a}
.hpn-fabric .frame{fill:none;stroke:#8c959f;stroke-width:0.8;stroke-dasharray:1 3}
.hpn-fabric rect.node{fill:#f6f8fa;stroke:#24292f;stroke-width:1.2}
.hpn-fabric rect.spare{stroke-dasharray:2 2}
.hpn-fabric rect.down{stroke:#b3001b;stroke-width:2;stroke-dasharray:5 4}
.hpn-fabric .link{stroke:#4a5560;stroke-opacity:0.75}
"""
    + plane_rules(ON_PAPER)
    + """
.hpn-fabric .down{stroke:#b3001b;stroke-dasharray:5 4;stroke-opacity:1}
.hpn-fabric .path{stroke:#0a7d3c;stroke-width:5;stroke-opacity:1}
.hpn-fabric .cross{stroke:#b3001b;stroke-width:2.4;fill:none}
.hpn-fabric .disc{fill:#b3001b;stroke:#ffffff;stroke-width:1.2}
.hpn-fabric .step{fill:#0a7d3c;stroke:#ffffff;stroke-width:1}
.hpn-fabric text.on{fill:#ffffff;font-weight:bold}
.hpn-fabric text.count{stroke:#ffffff;stroke-width:3;paint-order:stroke}
@media screen and (prefers-color-scheme:dark){
.hpn-fabric .paper{fill:#14171a}
.hpn-fabric text{fill:#e6e9ec}
.hpn-fabric .faint{fill:#a5adb6}
.hpn-fabric .frame{stroke:#6e7781}
.hpn-fabric rect.node{fill:#23282d;stroke:#d0d7de}
.hpn-fabric .link{stroke:#aab3bc}
"""
    + plane_rules(ON_DARK)
    + """
.hpn-fabric .down,.hpn-fabric rect.down,.hpn-fabric .cross{stroke:#ff7b86}
.hpn-fabric .path{stroke:#4fd18b}
.hpn-fabric .disc{fill:#ff7b86;stroke:#14171a}
.hpn-fabric .step{fill:#4fd18b;stroke:#14171a}
.hpn-fabric text.on{fill:#14171a}
.hpn-fabric text.count{stroke:#14171a}
}
"""
)


def fabric_svg(fabric: Fabric, overlay: Overlay = NOTHING, level: Level | None = None) -> str:
    """Return the picture as an ``<svg>`` element, which is also valid as a file.

    Nodes are elements with ``data-nodes``, lines with ``data-links``: the number that each represents. ``level`` None
    chooses the first that is legible. InputError when the overlay refers to something that the fabric does not have.
    """
    overlay.check(fabric)
    found = drawn(fabric, level)
    layout = lay_out(found)
    width = max(layout.width, _LEAST_WIDTH)
    legend = _folded([("", labels.title(fabric)), *_legend(found, overlay)], width)
    height = layout.height + _LINE * len(legend) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hpn-fabric" role="img" width="{width:.0f}"'
        f' height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escaped(labels.title(fabric))}</title>",
        f"<desc>{escaped(labels.description(found, overlay))}</desc>",
        f"<style>{_STYLE}{cost.STYLE if overlay.costs else ''}</style>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>',
        *_frames(layout),
        *(_line(line, overlay) for line in layout.lines),
        *(part for box in layout.boxes for part in _box(box, overlay)),
        *_counts(found, layout),
        *(part for line in layout.lines for part in _line_down(line, overlay)),
        *(part for box in layout.boxes for part in _box_down(box, overlay)),
        *_badges(found, layout, overlay),
        *_below(legend, layout.height),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _frames(layout: Layout) -> Iterator[str]:
    for row in layout.rows:
        for n, text in enumerate(row.name.split("\n")):
            yield _text(row.x, row.y + row.height / 2 + 4 + n * 13, text, "faint", anchor="start")
    for frame in layout.segments:
        yield _rect(frame, "frame")
        yield _upright(frame.x + 9, frame.y + frame.height / 2, frame.name, "faint")


def _line(line: Line, overlay: Overlay) -> str:
    links = line.bundle.links
    down = sum(link.name in overlay.down_links for link in links)
    kinds = ["link", f"plane{line.bundle.plane}"]
    kinds += ["down"] if down == len(links) else []
    kinds += cost.kinds((link.name for link in links), overlay.costs)
    kinds += ["path"] if any(link.name in overlay.path for link in links) else []
    width = "" if kinds[-1] == "path" or overlay.costs else f' stroke-width="{_width(line, overlay):g}"'
    title = f"<title>{escaped(labels.of_links(links, overlay))}</title>"
    if line.rise:
        x, y = line.at(0.5)
        top = f"Q{x:.1f} {y - line.rise:.1f} {line.x2:.1f} {line.y2:.1f}"
        curve = f'd="M{line.x1:.1f} {line.y1:.1f}{top}" fill="none"'
        return f'<path class="{" ".join(kinds)}" data-links="{len(links)}" {curve}{width}>{title}</path>'
    return (
        f'<line class="{" ".join(kinds)}" data-links="{len(links)}" x1="{line.x1:.1f}" y1="{line.y1:.1f}"'
        f' x2="{line.x2:.1f}" y2="{line.y2:.1f}"{width}>{title}</line>'
    )


def _line_down(line: Line, overlay: Overlay) -> Iterator[str]:
    """Yield the cross on a line with failed links, and their number."""
    down, of = sum(link.name in overlay.down_links for link in line.bundle.links), len(line.bundle.links)
    x, y = line.at(0.25)
    if down:
        yield _cross(x, y)
    if down and of > 1:
        yield _text(x + 9, y + 4, f"{down:,} of {of:,} down", "count", anchor="start")


def _width(line: Line, overlay: Overlay) -> float:
    """Return a line's width: by its load if known, else by whether it represents several links."""
    if not overlay.load:
        return 1.0 if len(line.bundle.links) == 1 else 2.0
    share = max(overlay.load.get(link.name, 0.0) for link in line.bundle.links)
    return next(width for up_to, width in _WIDTHS if share <= up_to)


def _box(placed: PlacedBox, overlay: Overlay) -> Iterator[str]:
    box = placed.box
    down = sum(node.name in overlay.down_nodes for node in box.members)
    kinds = ["node", box.role.value] + ([f"plane{box.plane}"] if box.plane is not None else [])
    kinds += ["spare"] if all(node.spare for node in box.members) else []
    kinds += ["down"] if down == len(box.members) else []
    kinds += cost.kinds(_names_in(box), overlay.costs)
    inside = f' data-links="{len(box.inside)}"' if box.inside else ""
    yield (
        f'<g><title>{escaped(labels.of_box(box, overlay))}</title><rect class="{" ".join(kinds)}"'
        f' data-nodes="{len(box.members)}"{inside} x="{placed.x:.1f}" y="{placed.y:.1f}" width="{placed.width:.1f}"'
        f' height="{placed.height:.1f}" rx="3"/>'
    )
    x, y = placed.middle
    if placed.upright:
        yield _upright(x + 4, y, placed.lines[0])
    else:
        first = y + 4 - 7 * (len(placed.lines) - 1)
        most = int(placed.width / text_width("x"))
        fitting = (shortened(line, most) for line in placed.lines)
        yield from (_text(x, first + 14 * n, line, "faint" if n else "") for n, line in enumerate(fitting))
    yield "</g>"


def _names_in(box: Box) -> Iterator[str]:
    yield from (node.name for node in box.members)
    yield from (link.name for link in box.inside)


def _box_down(placed: PlacedBox, overlay: Overlay) -> Iterator[str]:
    """Yield the cross at a box with failed nodes, and their number."""
    down, of = sum(node.name in overlay.down_nodes for node in placed.box.members), len(placed.box.members)
    if down:
        yield _cross(placed.x + placed.width, placed.y)
    if down and of > 1:
        yield _text(placed.x + placed.width + 8, placed.y - 4, f"{down:,} of {of:,} down", "count", "start")


def _badges(found: Drawn, layout: Layout, overlay: Overlay) -> Iterator[str]:
    """Yield faults and the steps of the flow, on top of everything else."""
    numbers = overlay.numbers_at(found.fabric)
    steps: dict[str, tuple[int, ...]] = {}
    for step, link in enumerate(overlay.path, 1):
        steps[link] = (*steps.get(link, ()), step)
    for line in layout.lines:
        if here := _numbers((link.name for link in line.bundle.links), steps):
            yield _badge(*line.at(0.62), here, "step")
        if here := _numbers((link.name for link in line.bundle.links), numbers):
            yield _badge(*line.at(0.42), here, "disc")
    for placed in layout.boxes:
        if here := _numbers(_names_in(placed.box), numbers):
            yield _badge(placed.x, placed.y, here, "disc")


def _counts(found: Drawn, layout: Layout) -> Iterator[str]:
    """Yield the number of links of each line, if there is room."""
    groups = {box.name for box in found.boxes if len(box.members) > 1}
    counted = [line for line in layout.lines if line.bundle.lower in groups]
    for line in counted if len(counted) <= _MOST_COUNTS else ():
        x, y = line.at(0.5)
        yield _text(x, y + 4, f"{len(line.bundle.links):,}", "count")


def _numbers(names: Iterable[str], known: Mapping[str, tuple[int, ...]]) -> str:
    found = sorted({number for name in names for number in known.get(name, ())})
    return shortened(",".join(map(str, found)), 9)


def _legend(found: Drawn, overlay: Overlay) -> Iterator[tuple[str, str]]:
    """Yield the symbol, drawn around the origin, and the meaning of everything in this picture."""
    for number, text in enumerate(labels.faults(overlay), 1):
        yield _badge(0, 0, str(number), "disc"), f"{overlay.called} {text}"
    if overlay.down_nodes or overlay.down_links:
        dashed = '<line class="link down" stroke-width="1.6" x1="-14" y1="0" x2="14" y2="0"/>'
        count = len(overlay.down_nodes) + len(overlay.down_links)
        yield dashed + _cross(0, 0), f"down ({count:,})"
    if overlay.path:
        thick = '<line class="link path" x1="-14" y1="0" x2="14" y2="0"/>'
        said = f"a flow, {len(overlay.path)} links in order{labels.ending(overlay)}"
        yield thick + _badge(0, 0, f"1-{len(overlay.path)}", "step"), said
    if overlay.load:
        lines = (
            f'<line class="link" stroke-width="{wide}" x1="{-14 + 6 * n}" y1="6" x2="{-14 + 6 * n}" y2="-6"/>'
            for n, (_, wide) in enumerate(_WIDTHS)
        )
        yield "".join(lines), "load in the busier direction: idle, up to 25 %, 50 %, 75 %, above"
    yield from cost.legend(overlay.costs)
    if any(node.spare for node in found.fabric.nodes) and found.level is Level.NONE:
        yield '<rect class="node spare" x="-12" y="-6" width="24" height="12" rx="3"/>', "spare host"
    if found.level is not Level.NONE:
        grouped = '<line class="link" stroke-width="2" x1="-14" y1="0" x2="14" y2="0"/>'
        yield grouped, "a thick line stands for all links between two boxes; the number at it says how many"


def _folded(legend: Iterable[tuple[str, str]], width: float) -> list[tuple[str, str]]:
    """Return the legend with long texts on several lines; only the first has a symbol."""
    most = int((width - _BESIDE - MARGIN) / text_width("x"))
    lines = []
    for symbol, text in legend:
        parts = wrap(shortened(text), most, break_long_words=True, max_lines=_MOST_FOLDED, placeholder=" ...")
        lines += [(symbol if n == 0 else "", part) for n, part in enumerate(parts)]
    return lines


def _below(legend: Iterable[tuple[str, str]], top: float) -> Iterator[str]:
    for n, (symbol, text) in enumerate(legend, 1):
        y = top + _LINE * n
        if symbol:
            yield f'<g transform="translate({MARGIN + 20:.1f} {y - 4:.1f})">{symbol}</g>'
        yield _text(_BESIDE, y, text, anchor="start")


def _badge(x: float, y: float, text: str, kind: str) -> str:
    """Return a number on a disc (a fault) or a square (a step)."""
    half = max(8.0, text_width(text) / 2 + 3)
    radius = 8 if kind == "disc" else 1
    frame = Frame("", x - half, y - 8, 2 * half, 16)
    return _rect(frame, kind, radius) + _text(x, y + 4, text, "on")


def _cross(x: float, y: float) -> str:
    a, b, c, d = x - 5, y - 5, x + 5, y + 5
    return f'<path class="cross" d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}M{a:.1f} {d:.1f}L{c:.1f} {b:.1f}"/>'


def _rect(frame: Frame, kind: str, radius: int = 4) -> str:
    where = f'x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}"'
    return f'<rect class="{kind}" {where} rx="{radius}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'


def _upright(x: float, y: float, text: str, kind: str = "") -> str:
    turned = f'transform="rotate(-90 {x:.1f} {y:.1f})"'
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} {turned} x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escaped(text)}</text>'
