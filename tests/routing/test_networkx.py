"""networkx as a judge: after each single failure of drawn fabrics, who reaches whom, and by which next hops.

Its shortest paths run on a graph of states, whose edges are what BGP announces: the rules of valleys, pods and ASNs are
written here anew, and share nothing with ``testbed.routing`` or ``traffic.fluid``.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Node, Role
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.document import Plain
from hpn.testbed.routing.distances import Adjacency
from hpn.traffic.fluid.forwarding import Forwarding
from tests.fabric.as_wired import as_wired
from tests.misconfigured.drawn import Wishes, draw
from tests.misconfigured.edits import no_allowas_in
from tests.misconfigured.repository import Repository
from tests.strangers import draw as strangers

nx = pytest.importorskip("networkx", reason="needs networkx: make extras")
State = tuple[str, str]  # a switch, and whether a packet that is there may still go up
_NOWHERE = -1  # the ASN by which a Core, or a ToR below nothing, goes up


def failures(fabric: Fabric) -> Iterator[frozenset[str]]:
    """Yield the links that are down: none, each alone, those of each switch."""
    yield frozenset()
    yield from (frozenset({link.name}) for link in fabric.links if link.kind is not LinkKind.PEER)
    for node in fabric.switches:
        yield frozenset(link.name for link in fabric.links_of(node.name) if link.kind is not LinkKind.PEER)


def _live(fabric: Fabric, down: Collection[str]) -> list[Link]:
    routed = {LinkKind.FABRIC, LinkKind.CORE, LinkKind.MESH}
    return [link for link in fabric.links if link.kind in routed and link.name not in down]


def up_then_down(fabric: Fabric, down: Collection[str], asn: int) -> Any:
    """The ways of packets that go up by Aggs of an ASN: up, then down; no Core leads back to these, who refuse it."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from((node.name, state) for node in fabric.switches for state in ("up", "down"))
    for link in _live(fabric, down):
        low, high = link.lower.node, link.upper.node
        graph.add_edge((low, "up"), (high, "up"), key=link.name)
        if link.kind is LinkKind.CORE and fabric.node(low).asn == asn:
            continue
        for state in ("up", "down"):
            graph.add_edge((high, state), (low, "down"), key=link.name)
    return graph


def distances(graph: Any, ends: Collection[State]) -> Mapping[State, int]:
    """How far each state is from the nearest of the ends."""
    found: Mapping[State, int] = nx.multi_source_dijkstra_path_length(graph.reverse(copy=False), set(ends))
    return found


def first_links(graph: Any, near: Mapping[State, int], start: State) -> frozenset[str]:
    """The first links of all shortest ways from a state."""
    if start not in near:
        return frozenset()
    return frozenset(key for _, there, key in graph.out_edges(start, keys=True) if near.get(there) == near[start] - 1)


def _groups(fabric: Fabric, down: Collection[str]) -> set[frozenset[str]]:
    """The ToRs of each NIC that has some left."""
    groups = {frozenset(link.upper.node for link in nic.links if link.name not in down) for nic in fabric.nics}
    return groups - {frozenset()}


def _up_by(fabric: Fabric, node: Node) -> int:
    """The ASN of the Aggs by which packets of a switch go up: an Agg's own, or that of all above a ToR."""
    links = [link for link in fabric.links_of(node.name) if link.kind is LinkKind.FABRIC]
    asns = {fabric.node(link.upper.node).asn or 0 for link in links if node.role in {Role.TOR, Role.AGG}}
    assert len(asns) <= 1, f"{node.name} goes up by {sorted(asns)}"
    own = node.asn or 0 if node.role is Role.AGG else _NOWHERE
    return next(iter(asns), own)


def held_against_tiers(fabric: Fabric, down: frozenset[str]) -> int:
    """Compare every switch's next hops for every NIC where ASNs are those of tiers; the number of comparisons."""
    model, compared = Forwarding(fabric, down), 0
    goes_up = {node.name: _up_by(fabric, node) for node in fabric.switches}
    graphs = {asn: up_then_down(fabric, down, asn) for asn in set(goes_up.values())}
    for owners in _groups(fabric, down):
        ends = [(owner, state) for owner in owners for state in ("up", "down")]
        near = {asn: distances(graph, ends) for asn, graph in graphs.items()}
        for node in fabric.switches:
            if node.name not in owners:
                asn = goes_up[node.name]
                expected = first_links(graphs[asn], near[asn], (node.name, "up"))
                found = frozenset(link.name for link in model._links(node, owners))
                assert found == expected, f"{node.name} to {sorted(owners)} without {sorted(down)}"
                compared += 1
    return compared


@pytest.mark.parametrize("seed", range(24))
def test_next_hops_without_valleys_are_those_of_networkx(seed: int) -> None:
    fabric = build(strangers.spec_of(strangers.fabric(f"networkx/{seed}", strangers.TIERS)))
    assert sum(held_against_tiers(fabric, down) for down in failures(fabric)) > 0


AsPath = tuple[int, ...]


def announced(
    fabric: Fabric, down: Collection[str], owners: Collection[str], times: Mapping[str, int]
) -> tuple[Any, bool]:
    """What each switch may announce of a route: nodes are switches with an AS path, edges announcements that are taken.

    A switch announces one of its best routes, the shortest; which of several is not known, so all of them are here.
    ``times``: how often a switch takes its own ASN. Also returns False if a switch takes some of these and not others.
    """
    live = nx.MultiGraph()
    live.add_nodes_from(node.name for node in fabric.switches)
    live.add_edges_from((link.lower.node, link.upper.node, link.name) for link in _live(fabric, down))
    graph, best = nx.MultiDiGraph(), dict.fromkeys(owners, 1)
    edge: list[tuple[str, AsPath]] = [(owner, (_asn(fabric, owner),)) for owner in owners]
    graph.add_nodes_from(edge)
    certain = True
    while edge:
        far: set[tuple[str, AsPath]] = set()
        taken: dict[tuple[str, str], set[bool]] = {}
        for here, path in edge:
            for _, there, name in live.edges(here, keys=True):
                asn = _asn(fabric, there)
                if best.get(there, len(path) + 1) <= len(path):
                    continue
                takes = path.count(asn) <= times.get(there, 0)
                taken.setdefault((here, there), set()).add(takes)
                if not takes:
                    continue
                best[there] = len(path) + 1
                far.add((there, (asn, *path)))
                graph.add_edge((here, path), (there, (asn, *path)), key=name)
        certain = certain and all(len(each) == 1 for each in taken.values())
        edge = sorted(far)
    return graph, certain


def _asn(fabric: Fabric, switch: str) -> int:
    return fabric.node(switch).asn or 0


def held_against_asns(fabric: Fabric, down: frozenset[str], times: Mapping[str, int]) -> int:
    """Compare every switch's next hops where switches have ASNs of their own; the number of comparisons.

    Of routes that depend on which of several equal ones a neighbour announces, nothing is known.
    """
    adjacency, compared = Adjacency(fabric, down), 0
    for owners in _groups(fabric, down):
        (graph, certain), reach = announced(fabric, down, owners, times), adjacency.reach(owners)
        if not certain:
            continue
        paths: dict[str, set[AsPath]] = {}
        for switch, path in graph:
            paths.setdefault(switch, set()).add(path)
        for node in fabric.switches:
            here = node.name
            if here in owners:
                continue
            states = [(here, path) for path in paths.get(here, ())]
            expected = {before for state in states for (before, _), _ in graph.in_edges(state)}
            assert (here in reach.distance) == bool(states), f"{here} to {sorted(owners)} without {sorted(down)}"
            found = {there for there in adjacency.neighbours[here] if reach.leads(here, there)}
            assert found == expected, f"{here} to {sorted(owners)} without {sorted(down)}"
            compared += 1
    return compared


@pytest.mark.parametrize("seed", range(12))
def test_next_hops_among_asns_of_switches_are_those_of_networkx(seed: int) -> None:
    data = strangers.fabric(f"networkx/{seed}")
    fabric = _with_own_asns(data)
    assert sum(held_against_asns(fabric, down, {}) for down in failures(fabric)) > 0


@pytest.mark.parametrize("preset", ["tiny-torus", "tiny-ub-mesh", "tiny-dragonfly", "tiny-slim-fly"])
def test_next_hops_in_direct_networks_are_those_of_networkx(preset: str) -> None:
    fabric = load_fabric(preset)
    assert sum(held_against_asns(fabric, down, {}) for down in failures(fabric)) > 0


def _with_own_asns(data: dict[str, Plain]) -> Fabric:
    data = {**data, "bgp": {"asn": "per-switch"}}
    try:
        return build(strangers.spec_of(data))
    except InputError:  # Cores with preset ports
        return build(strangers.spec_of({**data, "core_ports": "hash"}))


@pytest.mark.parametrize("scheme", ["unique", "spines", "tiers", "racks"])
@pytest.mark.parametrize("seed", range(5))
def test_next_hops_among_configured_asns_are_those_of_networkx(seed: int, scheme: str, tmp_path: Path) -> None:
    """Where leaves share ASNs, one of them has lost its ``allowas-in``; the others take their own once."""
    repository = Repository.of(draw(f"networkx/{seed}", Wishes(scheme=scheme, planes=1)))
    times = {leaf: int(scheme in {"tiers", "racks"}) for leaf in repository.net.leaves}
    if any(times.values()):
        planted = no_allowas_in(repository, random.Random(seed))
        repository, times[planted.element] = planted.repository, 0
    fabric = load_fabric(str(repository.write(tmp_path)))
    assert sum(held_against_asns(fabric, down, times) for down in failures(fabric)) > 0


@pytest.mark.parametrize("seed", range(16))
def test_next_hops_among_asns_that_repeat_are_those_of_networkx(seed: int) -> None:
    """Switches that share an ASN with others, anywhere: some paths are refused, and others are not."""
    dice = random.Random(seed)
    plain = as_wired(build(strangers.spec_of(strangers.fabric(f"networkx/{seed}", {"fat-tree": 1, "dcn-plus": 1}))))
    data = plain.model_dump(mode="json", exclude_unset=True)
    pool = range(65001, 65001 + len(data["wiring"]["nodes"]))
    for node in data["wiring"]["nodes"].values():
        if node["role"] != "host":
            node["asn"] = dice.choice(pool)
    fabric = build(FabricSpec.model_validate({**data, "core_ports": "hash", "bgp": {"asn": "per-switch"}}))
    assert sum(held_against_asns(fabric, down, {}) for down in failures(fabric)) > 0
