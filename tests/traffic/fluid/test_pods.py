"""Pods by arithmetic against fabrics as they are built: the same links, the same paths, the same answer to faults."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind, Role
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.fluid import pace
from hpn.traffic.fluid.flows import Flows, drawn, permutation, ring
from hpn.traffic.fluid.links import Links
from hpn.traffic.fluid.pace import Paced, after, healthy, unnoticed
from hpn.traffic.fluid.pods import ARITHMETIC, Pods
from hpn.traffic.fluid.routes import FailedParts, Paths, paths_of
from hpn.traffic.fluid.solve import Floats, max_min

SMALL = {"segments": 3, "hosts": 4, "rails": 2, "aggs": 4, "scale": 1}


NETWORKS = (*ARITHMETIC, "hpn 5")
"""Architectures, and one with that many planes."""


def _spec(network: str, pods: int = 1) -> FabricSpec:
    architecture, _, planes = network.partition(" ")
    more = {"planes": int(planes)} if planes else {}
    return FabricSpec(architecture=architecture, pods=pods, cores=4 if pods > 1 else 0, **SMALL, **more)


@cache
def _well(architecture: str, pods: int = 1) -> Paced:
    sizes = Pods.of(_spec(architecture, pods))
    return healthy(sizes, drawn(sizes, permutation(sizes, 3), 4, 5))


def _names(fabric: Fabric, pods: Pods) -> list[tuple[str, str]]:
    """The two nodes of each directed link of the arithmetic, from and to."""
    found = [("", "")] * pods.links
    for nic in fabric.nics:
        host = fabric.node(nic.host)
        at = np.array((host.pod * pods.segments + (host.segment or 0)) * pods.hosts + host.index)
        for port, link in enumerate(nic.links):
            number = pods.access(pods.nics(at, nic.rail), np.array(port))
            found[int(number)] = (nic.name, link.upper.node)
            found[int(pods.access(pods.nics(at, nic.rail), np.array(port), down=True))] = (link.upper.node, nic.name)
    for link in fabric.links:
        low, high = fabric.node(link.lower.node), fabric.node(link.upper.node)
        if link.kind in {LinkKind.FABRIC, LinkKind.PEER}:
            of = (low.rail or 0) * pods.pods * pods.segments + low.pod * pods.segments + (low.segment or 0)
            tor, agg = np.array(of * pods.tors + low.index), np.array(high.index)
        if link.kind is LinkKind.FABRIC:
            found[int(pods.fabric(tor, agg))] = (low.name, high.name)
            found[int(pods.fabric(tor, agg, down=True))] = (high.name, low.name)
        elif link.kind is LinkKind.PEER:
            found[int(pods.peer(tor))] = (low.name, high.name)
            found[int(pods.peer(np.array(of * 2 + high.index)))] = (high.name, low.name)
        elif link.kind is LinkKind.CORE:
            where = [np.array(x) for x in (low.pod, low.plane, low.index, high.index)]
            found[int(pods.core(*where))] = (low.name, high.name)
            found[int(pods.core(*where, down=True))] = (high.name, low.name)
    return found


@pytest.mark.parametrize("architecture", NETWORKS)
@pytest.mark.parametrize("pods", [1, 2])
def test_each_directed_link_of_a_fabric_has_one_number_and_its_rate(architecture: str, pods: int) -> None:
    spec = _spec(architecture, pods)
    fabric, sizes = build(spec), Pods.of(spec)
    names = _names(fabric, sizes)
    assert len(set(names)) == sizes.links == len(Links.of(fabric))
    rate = {(link.lower.node, link.upper.node): link.rate_bps for link in fabric.links}
    rate |= {(nic.name, link.upper.node): link.rate_bps for nic in fabric.nics for link in nic.links}
    for (a, b), capacity in zip(names, sizes.capacity(), strict=True):
        assert capacity == rate.get((a, b), rate.get((b, a)))


@pytest.mark.parametrize("architecture", NETWORKS)
@pytest.mark.parametrize("pods", [1, 2])
def test_a_path_is_a_walk_from_nic_to_nic(architecture: str, pods: int) -> None:
    well = _well(architecture, pods)
    fabric = build(_spec(architecture, pods))
    nics = sorted(
        fabric.nics, key=lambda nic: (nic.rail, (host := fabric.node(nic.host)).pod, host.segment or 0, host.index)
    )
    _walks(well, well.flows, _names(fabric, well.pods), [nic.name for nic in nics])


def _walks(paced: Paced, flows: Flows, names: list[tuple[str, str]], nics: list[str]) -> None:
    for row, path in enumerate(paced.paths):
        steps = [names[at] for at in path if at >= 0]
        assert steps[0][0] == nics[flows.src[row]]
        assert steps[-1][1] == nics[flows.dst[row]]
        assert all(step[1] == following[0] for step, following in pairwise(steps))


def test_planes_meet_nowhere_and_one_plane_lets_the_agg_choose() -> None:
    for architecture, ports in (("hpn", {(0, 0), (1, 1)}), ("dual-tor-clos", {(0, 0), (0, 1), (1, 0), (1, 1)})):
        well = _well(architecture)
        far = well.paths[well.paths[:, 1] >= 0]
        assert {(int(a) % 2, int(b) % 2) for a, b in far[:, [0, -1]]} == ports


@pytest.mark.parametrize("architecture", NETWORKS)
@pytest.mark.parametrize("pods", [1, 2])
@pytest.mark.parametrize("what", ["access", "tor", "fabric", "agg"])
def test_after_a_fault_only_what_it_hit_has_moved_and_rates_are_those_of_all_solved_anew(
    architecture: str, pods: int, what: str
) -> None:
    well = _well(architecture, pods)
    sizes = well.pods
    nothing = FailedParts.nothing(sizes)
    broken = {
        "access": nothing.with_access(5, 0, sizes),
        "tor": nothing.with_tor(2 * sizes.tors),
        "fabric": nothing.with_fabric(0, 1, sizes),
        "agg": nothing.with_agg(0, 0, 2, sizes),
    }[what]
    hurt = after(well, broken)
    dead = np.append(broken.dead_links(sizes), False)
    moved = (hurt.paths != well.paths).any(axis=1)
    assert (moved <= dead[well.paths].any(axis=1)).all()
    np.testing.assert_allclose(hurt.rates, max_min(hurt.paths, hurt.capacity), rtol=1e-9)
    stopped = dead[hurt.paths].any(axis=1)
    assert (stopped == (hurt.rates == 0)).all()
    assert stopped.any() == (architecture == "single-tor" and what in {"access", "tor"})


def test_under_cores_that_are_not_full_only_the_rails_hit_are_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full core link would join all rails, as the permutation above does."""
    sizes = Pods.of(_spec("hpn", 2))
    well = healthy(sizes, drawn(sizes, ring(sizes), 4, 1, "even"))
    solved, solve = list[int](), pace._solved

    def counted(paths: Paths, capacity: Floats, most_bps: float) -> Floats:
        solved.append(len(paths))
        return solve(paths, capacity, most_bps)

    monkeypatch.setattr(pace, "_solved", counted)
    for broken in (FailedParts.nothing(sizes).with_access(11, 0, sizes), FailedParts.nothing(sizes).with_tor(4)):
        solved.clear()
        hurt = after(well, broken)
        assert solved == [len(well.flows) // sizes.rails]
        assert (hurt.rates != well.rates).any()
        np.testing.assert_allclose(hurt.rates, max_min(hurt.paths, hurt.capacity), rtol=1e-9)


def test_a_fault_breaks_the_links_that_the_fabric_says() -> None:
    spec = _spec("dual-tor-clos", 2)
    fabric, sizes = build(spec), Pods.of(spec)
    names = _names(fabric, sizes)
    nothing = FailedParts.nothing(sizes)
    tor = next(node for node in fabric.nodes if node.role is Role.TOR)
    agg = next(node for node in fabric.nodes if node.role is Role.AGG and node.pod == 1 and node.index == 3)
    for broken, name in ((nothing.with_tor(0), tor.name), (nothing.with_agg(1, 0, 3, sizes), agg.name)):
        dead = {names[at] for at in np.flatnonzero(broken.dead_links(sizes))}
        assert dead == {ends for ends in names if name in ends}


def test_before_anybody_knows_paths_are_as_they_were_and_what_leads_over_the_dead_link_stands() -> None:
    well = _well("hpn")
    broken = FailedParts.nothing(well.pods).with_tor(3)
    struck = unnoticed(well, broken)
    dead = np.append(broken.dead_links(well.pods), False)[well.paths].any(axis=1)
    assert (struck.paths == well.paths).all()
    assert ((struck.rates == 0) == dead).all()
    np.testing.assert_allclose(struck.rates, max_min(well.paths, struck.capacity), rtol=1e-9)


def test_no_queue_pair_gets_more_than_it_sends() -> None:
    most = 10e9
    well = _well("hpn")
    held = healthy(well.pods, well.flows, most)
    assert held.rates.max() == most
    assert after(held, FailedParts.nothing(well.pods).with_tor(3)).rates.max() == most


def test_with_more_planes_what_left_by_a_dead_port_spreads_over_those_that_lead_there() -> None:
    """Path control's candidates come from a keyed hash, so each good port is as likely."""
    sizes = Pods.of(_spec("hpn 5"))
    flows = drawn(sizes, permutation(sizes, 3), 64, 5)
    flows = replace(flows, port=np.ones_like(flows.port))
    src, dst = int(flows.src[0]), int(flows.dst[0])
    broken = FailedParts.nothing(sizes).with_access(src, 1, sizes).with_access(dst, 2, sizes)
    pair = (flows.src == src) & (flows.dst == dst)
    first = paths_of(sizes, flows, broken)[pair, 0]
    ports, many = np.unique(first, return_counts=True)
    assert ports.tolist() == [int(sizes.access(np.array(src), np.array(port))) for port in (0, 3, 4)]
    assert many.min() > 64 / 3 / 2


def test_without_path_control_what_leaves_in_the_plane_of_a_dead_port_is_lost() -> None:
    well = _well("hpn")
    sizes = well.pods
    broken = FailedParts.nothing(sizes).with_access(5, 1, sizes)
    lost = after(well, broken, path_control=False).rates == 0
    assert (lost == ((well.flows.dst == 5) & (well.flows.port == 1))).all()
    assert lost.any()
    assert (after(well, broken).rates > 0).all()


def test_two_ends_that_are_left_with_different_planes_cannot_meet() -> None:
    well = _well("hpn")
    sizes, flows = well.pods, well.flows
    src, dst = int(flows.src[0]), int(flows.dst[0])
    stopped = (flows.src == src) & (flows.dst == dst)
    broken = FailedParts.nothing(sizes).with_access(src, 0, sizes).with_access(dst, 1, sizes)
    assert ((after(well, broken).rates == 0) == stopped).all()
    clos = _well("dual-tor-clos")  # the same ends; there the Agg reaches both ToRs
    broken = FailedParts.nothing(clos.pods).with_access(src, 0, clos.pods).with_access(dst, 1, clos.pods)
    assert (after(clos, broken).rates > 0).all()


def test_a_stack_hands_over_what_one_of_its_tors_cannot_deliver() -> None:
    well = _well("stacked-dual-tor")
    sizes = well.pods
    hurt = after(well, FailedParts.nothing(sizes).with_access(5, 0, sizes))
    over = hurt.paths[hurt.paths[:, -2] >= 0]
    assert set(over[:, -2]) == {int(sizes.peer(np.array(2)))}  # the first ToR of set 1, where NIC 5 hangs
    assert set(over[:, -1]) == {int(sizes.access(np.array(5), np.array(1), down=True))}


def test_hosts_that_choose_source_ports_spread_evenly() -> None:
    sizes = Pods.of(_spec("hpn"))
    flows = drawn(sizes, permutation(sizes, 1), 8, 2, "even")
    for pair in range(0, len(flows), 8):
        used = {(int(flows.port[at]), int(flows.agg[at, flows.port[at]])) for at in range(pair, pair + 8)}
        assert len(used) == 8  # two ports, four uplinks each


def test_patterns_let_every_nic_send_to_one_and_hear_one_of_its_rail() -> None:
    sizes = Pods.of(_spec("hpn", 2))
    for pairs in (ring(sizes), permutation(sizes, 9)):
        assert sorted(pairs.src) == sorted(pairs.dst) == list(range(sizes.gpus))
        assert (sizes.rail_of(pairs.src) == sizes.rail_of(pairs.dst)).all()
        assert (pairs.src != pairs.dst).all()
    some = ring(sizes, np.array([7, 2, 11]))
    assert {(int(a), int(b)) for a, b in zip(some.src[:3], some.dst[:3], strict=True)} == {(2, 11), (7, 2), (11, 7)}
    assert len(ring(sizes, np.array([4])).src) == 0


def test_the_same_seed_draws_the_same_and_another_another() -> None:
    sizes = Pods.of(_spec("hpn"))
    draws = [drawn(sizes, permutation(sizes, seed), 4, seed) for seed in (1, 1, 2)]
    nothing = FailedParts.nothing(sizes)
    first, again, other = (paths_of(sizes, flows, nothing) for flows in draws)
    assert (first == again).all()
    assert (first != other).any()


def test_a_pod_has_the_papers_sizes() -> None:
    sizes = Pods.of(FabricSpec(segments=15, hosts=128, rails=8, aggs=60))
    assert (sizes.gpus, sizes.sets * sizes.tors, sizes.links) == (15_360, 240, 2 * (30_720 + 14_400))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (FabricSpec(architecture="fat-tree"), "fat-tree cannot be reckoned"),
        (FabricSpec(uplinks=2), "one uplink"),
        (FabricSpec(pods=2), "give cores"),
        (FabricSpec(aggs=0), "give aggs"),
    ],
)
def test_what_has_no_numbers_is_refused(spec: FabricSpec, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Pods.of(spec)
