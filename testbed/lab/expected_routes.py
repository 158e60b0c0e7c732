"""Routes that a fabric has once it has converged, by arithmetic on its links. Pure.

Changes when BGP announces something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.routing.distances import Adjacency, Reach

NextHops = frozenset[int]
"""Interface indexes of a route's next hops; empty at a ToR that has the host at a port of its own."""


def expected_routes(fabric: Fabric) -> dict[str, dict[str, NextHops]]:
    """Return a healthy lab's next hops: by switch, for hosts ('a.b.c.d/32') and NIC subnets.

    BGP picks shortest paths and ECMP keeps all of them, so the next hops are the links to neighbours one step nearer.
    Destinations without a path are left out, as between the rails of a rail-only fabric.
    """
    adjacency = Adjacency(fabric)
    routes: dict[str, dict[str, NextHops]] = {node.name: {} for node in fabric.switches}
    hops_to: dict[frozenset[str], dict[str, NextHops]] = {}

    def hops(tors: frozenset[str]) -> dict[str, NextHops]:
        if tors not in hops_to:
            hops_to[tors] = _next_hops(fabric, adjacency.reach(tors))
        return hops_to[tors]

    for nic in fabric.nics:
        for switch, ports in hops(frozenset(link.upper.node for link in nic.links)).items():
            routes[switch][f"{nic.ip}/32"] = ports
    for subnet, tors in fabric.tors_of_subnet.items():
        for switch, ports in hops(tors).items():
            if switch not in tors:
                routes[switch][subnet] = ports
    return routes


def least(ports: NextHops) -> int:
    """Return how many next hops a route has at least: one, to itself, where the host is."""
    return len(ports) or 1


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
        for prefix, ports in routes.items():
            if prefix.endswith("/32") and (found := next_hops(switch, prefix)) < least(ports):
                yield ShortRoute(switch, prefix, found, least(ports))


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


def _next_hops(fabric: Fabric, reach: Reach) -> dict[str, NextHops]:
    """Return for every switch that reaches the origins its ports to neighbours one step nearer."""
    return {
        here: frozenset(
            link.end_at(here).ifindex
            for link in fabric.links_of(here)
            if link.is_routed and reach.leads(here, link.far_end(here).node)
        )
        for here in reach.distance
    }
