"""Graphviz output of a fabric: rows by rank, plane 0 above the hosts and plane 1 below. Pure.

Changes when the graph should tell Graphviz something else (https://graphviz.org/doc/info/lang.html).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hpn.results.graph import labels
from hpn.results.graph.colours import ON_PAPER
from hpn.results.graph.grouping import Box, Bundle, Drawn, Level, drawn
from hpn.results.graph.layout import side
from hpn.results.graph.overlay import NOTHING, Overlay
from hpn.results.text.width import shortened
from hpn.results.text.xml import possible
from hpn.testbed.fabric.model import Fabric, LinkKind, Role

_RED, _GREEN = "#b3001b", "#0a7d3c"
_THICKEST = 6.0  # width of a link's line at its full rate
_UP = (Role.HOST, Role.TOR, Role.AGG, Role.CORE)


def fabric_dot(fabric: Fabric, overlay: Overlay = NOTHING, level: Level | None = None) -> str:
    """Return the graph in the DOT language: a node for each box, an edge for each line of ``fabric_svg``.

    InputError when the overlay refers to something that the fabric does not have.
    """
    overlay.check(fabric)
    found = drawn(fabric, level)
    numbers = overlay.numbers_at(fabric)
    lines = [
        f"graph {quoted(fabric.spec.name)} {{",
        f"  graph [ranksep=1.2, nodesep=0.15, outputorder=edgesfirst, label={quoted(_caption(found, overlay))}];",
        '  node [shape=box, style=filled, fillcolor="#f6f8fa", fontname="sans-serif", fontsize=11, height=0.3];',
        '  edge [fontname="sans-serif", fontsize=9];',
        *_rows(found, overlay, numbers),
        *(_edge(bundle, overlay, numbers) for bundle in found.bundles),
        "}\n",
    ]
    return "\n".join(lines)


def quoted(text: str) -> str:
    """Return the text as a quoted string of DOT, with line breaks preserved and everything else literal."""
    plain = possible(text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\r", "").replace("\n", "\\n") + '"'


def _caption(found: Drawn, overlay: Overlay) -> str:
    faults = [f"{overlay.called} {text}" for text in labels.faults(overlay)]
    path = [f"a flow: {labels.names(overlay.path)}{labels.ending(overlay)}"] if overlay.path else []
    return "\n".join([labels.title(found.fabric), *(shortened(line) for line in (*faults, *path))])


def _rows(found: Drawn, overlay: Overlay, numbers: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Yield each row of the picture as nodes of one rank."""
    rows: dict[tuple[int, Role], list[Box]] = {}
    for box in found.boxes:
        rows.setdefault((side(box.plane), box.role), []).append(box)
    for at, role in sorted(rows, key=lambda key: key[0] * _UP.index(key[1])):
        yield "  { rank=same;"
        yield from (f"    {_node(box, overlay, numbers)}" for box in rows[at, role])
        yield "  }"


def _node(box: Box, overlay: Overlay, numbers: Mapping[str, tuple[int, ...]]) -> str:
    down = sum(node.name in overlay.down_nodes for node in box.members)
    within = (*(node.name for node in box.members), *(link.name for link in box.inside))
    said = [*box.lines, *_told(down, len(box.members)), *_faults(within, numbers, overlay.called)]
    given = {"label": "\n".join(said), "tooltip": labels.of_box(box, overlay)}
    if down:
        given |= {"color": _RED, "penwidth": "2", "style": "filled,dashed"}
    elif all(node.spare for node in box.members):
        given["style"] = "filled,dotted"
    return f"{quoted(box.name)}{_attributes(given)};"


def _edge(bundle: Bundle, overlay: Overlay, numbers: Mapping[str, tuple[int, ...]]) -> str:
    """Return the edge from the upper to the lower end in the picture, which is how Graphviz orders the rows."""
    names = [link.name for link in bundle.links]
    down = sum(name in overlay.down_links for name in names)
    steps = [str(step) for step, link in enumerate(overlay.path, 1) if link in names]
    count = [f"{len(names):,}"] if len(names) > 1 else []
    said = [*count, *_told(down, len(names)), *_faults(names, numbers, overlay.called)]
    said += ["step " + ", ".join(steps)] if steps else []
    given = {"color": ON_PAPER[bundle.plane % len(ON_PAPER)], "tooltip": labels.of_links(bundle.links, overlay)}
    if said:
        given["label"] = "\n".join(said)
    if overlay.load:
        given["penwidth"] = f"{0.5 + _THICKEST * min(1.0, max(overlay.load.get(name, 0.0) for name in names)):.2f}"
    if steps:
        given |= {"color": _GREEN, "penwidth": "5"}
    if down == len(names):
        given |= {"color": _RED, "style": "dashed"}
    if bundle.kind in (LinkKind.PEER, LinkKind.MESH):
        given["constraint"] = "false"
    ends = (bundle.lower, bundle.upper) if side(bundle.plane) > 0 else (bundle.upper, bundle.lower)
    return f"  {' -- '.join(map(quoted, ends))}{_attributes(given)};"


def _told(down: int, of: int) -> list[str]:
    if not down:
        return []
    return ["down"] if of == 1 else [f"{down:,} of {of:,} down"]


def _faults(names: Iterable[str], numbers: Mapping[str, tuple[int, ...]], called: str) -> list[str]:
    found = sorted({number for name in names for number in numbers.get(name, ())})
    return [f"{called} " + ", ".join(map(str, found))] if found else []


def _attributes(given: Mapping[str, str]) -> str:
    return " [" + ", ".join(f"{key}={quoted(value)}" for key, value in given.items()) + "]"
