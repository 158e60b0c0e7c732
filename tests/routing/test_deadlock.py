"""Who may wait for whom with lossless queues: networkx finds a circle where ours does, and only there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.routing import deadlock
from hpn.testbed.routing.deadlock import NextHops, Waits, circle, deadlock_notes, minimal, waits


def network(preset: str, **changes: object) -> Fabric:
    return build(FabricSpec.model_validate({**PRESETS[preset].spec.model_dump(exclude_unset=True), **changes}))


def grid(preset: str, *sizes: int) -> Fabric:
    switches = 1
    for size in sizes:
        switches *= size
    return network(preset, segments=switches, dimensions=list(sizes))


CYCLIC = {
    "torus 4 x 3": grid("tiny-torus", 4, 3),
    "ring of 5": grid("tiny-torus", 5),
    "hypercube": grid("tiny-torus", 2, 2, 2),
    "mesh 4 x 2": grid("tiny-ub-mesh", 4, 2),
    "dragonfly": network("tiny-dragonfly"),
    "slim fly": network("tiny-slim-fly"),
}
FREE = {
    "ring of 3": grid("tiny-torus", 3),
    "mesh 5": grid("tiny-ub-mesh", 5),
    "hpn": network("tiny"),
    "cores": network("tiny-pods"),
    "rails and cores": network("tiny-same-rail"),
}


def stands(found: Waits) -> None:
    """A circle is one: each channel begins where the last ends and waits for the next."""
    around = circle(found)
    assert around
    for here, there in zip(around, (*around[1:], around[0]), strict=True):
        assert here[1] == there[0]
        assert there in found[here]


@pytest.mark.parametrize("name", CYCLIC)
def test_minimal_paths_let_switches_of_direct_networks_wait_in_a_circle(name: str) -> None:
    stands(waits(CYCLIC[name], minimal(CYCLIC[name])))
    [note] = deadlock_notes(CYCLIC[name])
    assert note.startswith(
        "lossless switches may deadlock: minimal paths let these wait for each other in a circle: p0"
    )
    first, *_, last = note.rpartition(": ")[2].split(" > ")
    assert first == last


@pytest.mark.parametrize("name", FREE)
def test_paths_up_and_down_and_those_of_one_link_have_no_circle(name: str) -> None:
    assert circle(waits(FREE[name], minimal(FREE[name]))) == ()
    assert list(deadlock_notes(FREE[name])) == []


def in_order(sizes: tuple[int, ...], fabric: Fabric) -> NextHops:
    """Next hops that change one coordinate after the other, the first one first."""
    names = [node.name for node in fabric.switches]

    def next_hops(here: str, target: str) -> Iterable[str]:
        step = len(names)
        at, to = names.index(here), names.index(target)
        for size in sizes:
            step //= size
            if (at // step) % size != (to // step) % size:
                return [names[at + ((to // step) % size - (at // step) % size) * step]]
        return []

    return next_hops


@pytest.mark.parametrize("sizes", [(4, 2), (3, 3), (2, 2, 2)])
def test_one_dimension_after_the_other_frees_a_full_mesh(sizes: tuple[int, ...]) -> None:
    fabric = grid("tiny-ub-mesh", *sizes)
    stands(waits(fabric, minimal(fabric)))
    assert circle(waits(fabric, in_order(sizes, fabric))) == ()


@pytest.mark.parametrize("name", [*CYCLIC, *FREE])
def test_networkx_finds_a_circle_where_there_is_one_and_none_shorter_through_these(name: str) -> None:
    nx = pytest.importorskip("networkx", reason="needs networkx: make extras")
    fabric = (CYCLIC | FREE)[name]
    found = waits(fabric, minimal(fabric))
    graph = nx.DiGraph((here, there) for here, after in found.items() for there in after)
    assert nx.is_directed_acyclic_graph(graph) == (not circle(found))
    if name in CYCLIC:
        assert len(circle(found)) == min(map(len, nx.simple_cycles(graph, length_bound=6)))
    judged = _waits_by_networkx(nx, fabric)
    assert {(here, there) for here, after in found.items() for there in after} == judged


def _waits_by_networkx(nx: Any, fabric: Fabric) -> set[tuple[object, object]]:
    """The same pairs from all shortest paths between ToRs with hosts."""
    links = nx.Graph((link.lower.node, link.upper.node) for link in fabric.links if link.is_routed)
    ends = {link.upper.node for nic in fabric.nics for link in nic.links}
    found: set[tuple[object, object]] = set()
    for one in ends:
        for other in ends - {one}:
            if not nx.has_path(links, one, other):
                continue
            for path in nx.all_shortest_paths(links, one, other):
                channels = list(pairwise(path))
                found.update(pairwise(channels))
    return found


def test_a_network_with_too_many_paths_is_not_searched_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlock, "MOST_STEPS", 10)
    [note] = deadlock_notes(CYCLIC["torus 4 x 3"])
    assert "nobody searched" in note


def test_valiants_detours_let_a_full_mesh_wait_in_a_circle() -> None:
    mesh = network("tiny-ub-mesh", segments=5, dimensions=[5], srv6={"routing": "valiant"})
    stands(deadlock.static_waits(mesh, "valiant"))
    assert not circle(deadlock.static_waits(mesh, "minimal"))
    [note] = deadlock_notes(mesh)
    assert note.startswith("lossless switches may deadlock: valiant paths let these wait for each other in a circle: ")


def test_longer_paths_of_the_k_shortest_let_a_ring_wait_in_a_circle() -> None:
    ring = network("tiny-torus", segments=3, dimensions=[3], srv6={"routing": "k-shortest", "paths": 2})
    stands(deadlock.static_waits(ring, "k-shortest"))
    [note] = deadlock_notes(ring)
    assert "k-shortest paths let these wait" in note
    one = network("tiny-torus", segments=3, dimensions=[3], srv6={"routing": "k-shortest", "paths": 1})
    assert not list(deadlock_notes(one))


@pytest.mark.parametrize("name", [*CYCLIC, "ring of 3", "mesh 5"])
def test_static_minimal_paths_wait_as_those_of_bgp_do(name: str) -> None:
    fabric = CYCLIC[name] if name in CYCLIC else FREE[name]
    assert deadlock.static_waits(fabric, "minimal") == waits(fabric, minimal(fabric))
