"""Routes that a fabric has once it has converged, by arithmetic on its links. Pure.

Changes when BGP announces something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.routing.distances import Adjacency


def expected_routes(fabric: Fabric) -> dict[str, dict[str, int]]:
    """Return a healthy lab's next hop counts: by switch, for hosts ('a.b.c.d/32') and NIC subnets.

    BGP picks shortest paths and ECMP keeps all of them, so the next hops are the links to neighbours one step nearer.
    Destinations without a path are left out, as between the rails of a rail-only fabric.
    """
    adjacency = Adjacency(fabric)
    routes: dict[str, dict[str, int]] = {node.name: {} for node in fabric.switches}
    hops_to: dict[frozenset[str], dict[str, int]] = {}

    def hops(tors: frozenset[str]) -> dict[str, int]:
        if tors not in hops_to:
            hops_to[tors] = _next_hops(adjacency, tors)
        return hops_to[tors]

    for nic in fabric.nics:
        for switch, many in hops(frozenset(link.upper.node for link in nic.links)).items():
            routes[switch][f"{nic.ip}/32"] = max(many, 1)
    for subnet, tors in fabric.tors_of_subnet.items():
        for switch, many in hops(tors).items():
            if switch not in tors:
                routes[switch][subnet] = many
    return routes


@dataclass(frozen=True, slots=True)
class ShortRoute:
    """A host route with fewer next hops than links allow, as a configuration or a fault leaves it."""

    switch: str
    prefix: str
    next_hops: int
    links_allow: int


def short_routes(fabric: Fabric, next_hops: Callable[[str, str], int]) -> Iterator[ShortRoute]:
    """Yield the short routes of a lab; ``next_hops`` returns how many a switch's route to a prefix has."""
    for switch, routes in expected_routes(fabric).items():
        for prefix, wanted in routes.items():
            if prefix.endswith("/32") and (found := next_hops(switch, prefix)) < wanted:
                yield ShortRoute(switch, prefix, found, wanted)


def expected_presets(fabric: Fabric) -> dict[str, dict[tuple[int, str], int]]:
    """Return a healthy lab's preset routes per Core: (table, host route) to egress interface."""
    return {
        node.name: {
            (table.number, f"{nic.ip}/32"): table.egress[fabric.node(nic.host).pod].ifindex
            for table in tables
            for nic in fabric.nics
        }
        for node in fabric.switches
        if (tables := preset_tables(fabric, node))
    }


def _next_hops(adjacency: Adjacency, origins: frozenset[str]) -> dict[str, int]:
    """Return for every switch that can reach ``origins`` the links to neighbours one step nearer (0 at an origin)."""
    reach = adjacency.reach(origins)
    return {here: sum(reach.leads(here, there) for there in adjacency.neighbours[here]) for here in reach.distance}
