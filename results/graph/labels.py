"""Texts of pictures: of a node, of links, of the complete picture. Pure.

Changes when tooltips or the description for screen readers should say something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from hpn.results.graph.cost import Cost, worst
from hpn.results.graph.grouping import WORDS, Box, Drawn, Level, counted
from hpn.results.graph.overlay import Overlay
from hpn.results.text.values import rate
from hpn.results.text.width import shortened
from hpn.testbed.fabric.model import Fabric, Link, Node, Role

_MOST_NAMES = 12

_KINDS = {
    "access": "NIC to ToR",
    "fabric": "ToR to Agg",
    "core": "Agg to Core",
    "peer": "ToR to ToR",
    "mesh": "ToR to ToR",
}
_GROUPED = {
    Level.HOSTS: "hosts of a segment are one box",
    Level.SEGMENT: "a box stands for many nodes of a segment, a line for all links between two boxes",
    Level.POD: "a box stands for many nodes of a pod, a line for all links between two boxes",
}


def title(fabric: Fabric) -> str:
    """Return the title: 'tiny: hpn, 4 hosts, 8 ToRs, 4 Aggs, 32 links'."""
    roles, spare = Counter(node.role for node in fabric.nodes if not node.spare), sum(n.spare for n in fabric.nodes)
    parts = [fabric.spec.architecture, *(counted(role, roles[role]) for role in Role if roles[role])]
    parts += [f"{counted(Role.HOST, spare)} more to spare"] if spare else []
    return shortened(f"{fabric.spec.name}: {', '.join(parts)}, {len(fabric.links):,} links")


def description(found: Drawn, overlay: Overlay) -> str:
    """Return the picture in a few sentences, for readers who cannot see it."""
    where = ["Hosts in the middle, plane 0 above, plane 1 below."]
    if found.fabric.planes > 2:
        where = ["Hosts in the middle, even planes above, odd planes below."]
    elif found.fabric.planes == 1:
        where = ["Hosts at the bottom; one plane of switches above them."]
    if found.level is not Level.NONE:
        where.append(f"Summed up: {_GROUPED[found.level]}.")
    down = [*sorted(overlay.down_nodes), *sorted(overlay.down_links)]
    if down:
        where.append(f"Down: {names(down)}.")
    where += [f"{overlay.called.capitalize()} {text}." for text in faults(overlay)[:_MOST_NAMES]]
    if overlay.load:
        busiest = max(overlay.load, key=overlay.load.__getitem__)
        where.append(f"Busiest link: {busiest}, {percent(overlay.load[busiest])} of its rate.")
    if overlay.path:
        where.append(f"The flow goes over {names(overlay.path)}{ending(overlay)}.")
    return " ".join(shortened(sentence) for sentence in where)


def faults(overlay: Overlay) -> list[str]:
    """Return each fault as '1: p0.s0.h0.r0.0, link-down'."""
    return [f"{number}: {fault.part}, {fault.text}" for number, fault in enumerate(overlay.faults, 1)]


def ending(overlay: Overlay) -> str:
    """Return how the traced flow ends; '' if it arrives."""
    return f", and is dropped: {overlay.dropped}" if overlay.dropped else ""


def names(found: Sequence[str]) -> str:
    """Return the first names, and the number of others."""
    more = len(found) - _MOST_NAMES
    return ", ".join(found[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def of_box(box: Box, overlay: Overlay) -> str:
    """Return the tooltip of a box."""
    down = [node.name for node in box.members if node.name in overlay.down_nodes]
    said = _of_node(box.members[0]) if len(box.members) == 1 else f"{box.name}: {' '.join(box.lines[:-1])}"
    if box.inside:
        said += f", {len(box.inside):,} links between them"
    names_in = (*(node.name for node in box.members), *(link.name for link in box.inside))
    costs = worst(names_in, overlay.costs)
    return shortened(said + _cost(costs) + _told(down, len(box.members)) + _told(_down(box.inside, overlay), 0))


def _cost(found: Cost | None) -> str:
    return "" if found is None else f"; {found.words}"


def _of_node(node: Node) -> str:
    facts = [node.name, "spare host" if node.spare else WORDS[node.role]]
    facts += [f"plane {node.plane}"] if node.plane is not None else []
    facts += [f"rail {node.rail}"] if node.rail is not None else []
    return ", ".join(facts + ([f"AS {node.asn}"] if node.asn is not None else []))


def of_links(links: Sequence[Link], overlay: Overlay) -> str:
    """Return the tooltip of a line."""
    first, down = links[0], _down(links, overlay)
    each = f"{_KINDS[first.kind.value]}, {rate(first.rate_bps)}bit/s, plane {first.plane}"
    loads = [overlay.load[link.name] for link in links if link.name in overlay.load]
    load = f", load {percent(max(loads))}" if loads else ""
    said = f"{first.name}, {each}" if len(links) == 1 else f"{len(links):,} links ({first.name}, ...), each {each}"
    costs = worst((link.name for link in links), overlay.costs)
    return shortened(said + load + _cost(costs) + _told(down, len(links)))


def _down(links: Iterable[Link], overlay: Overlay) -> list[str]:
    return [link.name for link in links if link.name in overlay.down_links]


def _told(down: Collection[str], of: int) -> str:
    if not down:
        return ""
    return "; down" if of == 1 else f"; down: {names(list(down))}"


def percent(share: float) -> str:
    """Return a percentage: '42 %', '0.4 %'."""
    return f"{share * 100:.{0 if share >= 0.1 else 1}f} %"
