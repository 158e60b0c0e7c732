"""When a lab is converged: LACP carries every port, every BGP session is up, every host route is everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from testbed.errors import MachineError
from testbed.fabric.core_ports import preset_tables
from testbed.fabric.model import Fabric
from testbed.lab.grips import Grips
from testbed.lab.lacp_why import why_idle

CONVERGE_S = 60.0
PROGRESS_S = 20.0
"""A lab that is not converged after CONVERGE_S goes on while it has got closer within so long: the machine is slow."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that does not stand yet. ``kind`` is 'lacp', 'bgp' or 'route'."""

    kind: str
    where: str
    text: str


class Converging(Protocol):
    """What can be waited for until it stands."""

    @property
    def stands(self) -> bool:
        """Whether nothing is missing."""

    def missing(self) -> list[Gap]:
        """What is."""

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Look at ``condition`` after every event until it holds. TimeoutError when it does not in time."""


async def until_converged(lab: Converging, timeout_s: float | None = None) -> None:
    """Wait until it stands. MachineError saying what did not, and why, otherwise.

    Without ``timeout_s`` a lab has CONVERGE_S, and longer while every PROGRESS_S fewer parts are missing than ever.
    """
    waited_s, fewest = 0.0, math.inf
    window_s = CONVERGE_S - PROGRESS_S if timeout_s is None else timeout_s
    while True:
        try:
            await lab.wait_for(lambda: lab.stands, window_s)
        except TimeoutError:
            waited_s += window_s
        else:
            return
        missing = lab.missing()
        stuck = len(missing) >= fewest and waited_s >= CONVERGE_S
        if stuck or timeout_s is not None:
            raise MachineError(_not_converged(missing, waited_s))
        fewest, window_s = min(fewest, len(missing)), PROGRESS_S


def _not_converged(missing: list[Gap], timeout_s: float) -> str:
    shown = "; ".join(gap.text for gap in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return f"the lab did not converge within {timeout_s:g} s: {shown}{more}"


class Convergence:
    """Tells what one lab still lacks."""

    def __init__(self, grips: Grips) -> None:
        self._grips = grips
        self._routes = expected_routes(grips.fabric)
        self._presets = expected_presets(grips.fabric)

    def gaps(self) -> Iterator[Gap]:
        """Everything that is missing, hosts first; each is looked for when it is asked for."""
        yield from _lacp(self._grips)
        yield from _bgp(self._grips)
        yield from _host_routes(self._grips)
        yield from _missing_routes(self._grips, self._routes)
        yield from _missing_presets(self._grips, self._presets)


def expected_routes(fabric: Fabric) -> dict[str, dict[str, int]]:
    """Per switch of a healthy lab: hosts ('a.b.c.d/32') and NIC subnets it has a route to, and how many next hops.

    BGP picks shortest paths and ECMP keeps all of them, so the next hops are the links to neighbours one step nearer.
    Nothing is expected where no path leads, as between the rails of a rail-only fabric.
    """
    neighbours: dict[str, list[str]] = {node.name: [] for node in fabric.switches}
    for link in fabric.links:
        if link.is_routed:
            neighbours[link.lower.node].append(link.upper.node)
            neighbours[link.upper.node].append(link.lower.node)
    routes: dict[str, dict[str, int]] = {node.name: {} for node in fabric.switches}
    hops_to: dict[frozenset[str], dict[str, int]] = {}
    for nic in fabric.nics:
        tors = frozenset(link.upper.node for link in nic.links)
        if tors not in hops_to:
            hops_to[tors] = _next_hops(neighbours, tors)
        for switch, hops in hops_to[tors].items():
            routes[switch][f"{nic.ip}/32"] = max(hops, 1)
            if switch not in tors:
                routes[switch][nic.subnet] = hops
    return routes


def expected_presets(fabric: Fabric) -> dict[str, dict[tuple[int, str], int]]:
    """Per Core with preset ports of a healthy lab: (table, host route) to the interface it leaves by."""
    return {
        node.name: {
            (table.number, f"{nic.ip}/32"): table.egress[fabric.node(nic.host).pod].ifindex
            for table in tables
            for nic in fabric.nics
        }
        for node in fabric.switches
        if (tables := preset_tables(fabric, node))
    }


def _next_hops(neighbours: dict[str, list[str]], origins: frozenset[str]) -> dict[str, int]:
    """For every switch that can reach ``origins``: links to neighbours one step nearer (0 at an origin)."""
    distance = dict.fromkeys(origins, 0)
    edge = list(origins)
    while edge:
        edge = [there for here in edge for there in neighbours[here] if _reached(distance, here, there)]
    return {here: sum(distance[there] == distance[here] - 1 for there in neighbours[here]) for here in distance}


def _reached(distance: dict[str, int], here: str, there: str) -> bool:
    if there in distance:
        return False
    distance[there] = distance[here] + 1
    return True


def _lacp(lab: Grips) -> Iterator[Gap]:
    for nic in lab.nics.values():
        for index, link in enumerate(nic.nic.links):
            if index not in nic.active:
                ports = nic.status()
                status, why = ports[index], why_idle(lab.fabric, ports[index], ports)
                yield Gap("lacp", link.name, f"{link.name}: host port is {status.mux.value}, {status.rx.value} ({why})")
            elif not lab.tors[link.upper.node].collecting(link.upper.name):
                yield Gap("lacp", link.name, f"{link.name}: ToR port does not collect")


def _host_routes(lab: Grips) -> Iterator[Gap]:
    """A port that both ends use leads to its NIC: the ToR has learned it there."""
    for nic in lab.nics.values():
        prefix = f"{nic.nic.ip}/32"
        for index in nic.active:
            link = nic.nic.links[index]
            tor = link.upper.node
            if lab.tors[tor].collecting(link.upper.name) and not lab.watcher.has_host_route(tor, prefix):
                yield Gap("route", link.name, f"{link.name}: the port distributes but {tor} has not learned {prefix}")


def _bgp(lab: Grips) -> Iterator[Gap]:
    for link in lab.fabric.links:
        if not link.is_routed:
            continue
        for end in (link.lower, link.upper):
            if end.name not in lab.bgp[end.node].established:
                yield Gap("bgp", end.label, f"{end.label}: BGP session is not established")
            elif lab.fabric.spec.bgp.bfd is not None and lab.bgp[end.node].bfd.get(end.name) != "Up":
                yield Gap("bgp", end.label, f"{end.label}: BFD session is not up")


def _missing_routes(lab: Grips, expected: Mapping[str, Mapping[str, int]]) -> Iterator[Gap]:
    for switch, wanted in expected.items():
        present = lab.watcher.routes(switch)
        lost = [prefix for prefix, hops in wanted.items() if present.get(prefix, 0) < hops]
        if lost:
            first = f"{lost[0]} has {present.get(lost[0], 0)} of {wanted[lost[0]]} next hops"
            yield Gap("route", switch, f"{switch}: {len(lost)} of {len(wanted)} routes incomplete ({first})")


def _missing_presets(lab: Grips, expected: Mapping[str, Mapping[tuple[int, str], int]]) -> Iterator[Gap]:
    for core, by_table in expected.items():
        wrong = sum(lab.watcher.presets(core).get(key) != oif for key, oif in by_table.items())
        if wrong:
            yield Gap("route", core, f"{core}: {wrong} of {len(by_table)} routes by preset ports missing")
