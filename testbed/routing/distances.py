"""Distances between switches over the links that carry routes, as BGP counts them: one AS each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from hpn.testbed.fabric.model import Fabric


def adjacency(fabric: Fabric, down: Collection[str] = ()) -> dict[str, list[str]]:
    """Return the neighbours of every switch, once for each link that is not ``down``."""
    found: dict[str, list[str]] = {node.name: [] for node in fabric.switches}
    for link in fabric.links:
        if link.is_routed and link.name not in down:
            found[link.lower.node].append(link.upper.node)
            found[link.upper.node].append(link.lower.node)
    return found


def distances(neighbours: Mapping[str, Sequence[str]], origins: Iterable[str]) -> dict[str, int]:
    """Return for every switch that can reach ``origins`` the number of links to the nearest."""
    found = dict.fromkeys(origins, 0)
    edge = list(found)
    while edge:
        edge = [there for here in edge for there in neighbours[here] if _reached(found, here, there)]
    return found


def _reached(distance: dict[str, int], here: str, there: str) -> bool:
    if there in distance:
        return False
    distance[there] = distance[here] + 1
    return True
