"""Traffic patterns: who sends to whom, how fast, from which source port."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Nic
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.flows.flow import Transfers
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.flows.partners import incast, near_and_far, pairs, permutation
from hpn.traffic.flows.patterns import PATTERNS, Pattern, PatternRequest, Stream, flows_for

shapes = st.builds(
    lambda segments, hosts, spare, rails: build(
        FabricSpec(segments=segments, hosts=hosts, spare_hosts=spare, rails=rails, aggs=2)
    ),
    st.integers(1, 4),
    st.integers(2, 5),
    st.integers(0, 1),
    st.integers(1, 2),
)


def _segment(fabric: Fabric, nic: Nic) -> tuple[int, int | None]:
    host = fabric.node(nic.host)
    return host.pod, host.segment


@given(shapes, st.integers(0, 100))
def test_a_permutation_has_every_active_nic_send_once_and_receive_once_in_its_rail(fabric: Fabric, seed: int) -> None:
    chosen = permutation(fabric, seed)
    active = {n.name for n in fabric.nics if not fabric.node(n.host).spare}
    assert Counter(src.name for src, _ in chosen) == Counter(active) == Counter(dst.name for _, dst in chosen)
    for src, dst in chosen:
        assert src.rail == dst.rail
        assert src.host != dst.host
        assert fabric.spec.segments == 1 or _segment(fabric, src) != _segment(fabric, dst)


def _rack(nic: Nic) -> frozenset[str]:
    return frozenset(link.upper.node for link in nic.links)


@given(shapes)
def test_near_and_far_has_every_active_nic_send_within_its_rack_and_to_another(fabric: Fabric) -> None:
    chosen = near_and_far(fabric, 1)
    active = {n.name for n in fabric.nics if not fabric.node(n.host).spare}
    racks = {_rack(fabric.nic(name)) for name in active if fabric.nic(name).rail == 0}
    near = [(src, dst) for src, dst in chosen if _rack(src) == _rack(dst)]
    far = [(src, dst) for src, dst in chosen if _rack(src) != _rack(dst)]
    assert Counter(src.name for src, _ in near) == Counter(active) == Counter(dst.name for _, dst in near)
    if len(racks) > 1:
        assert Counter(src.name for src, _ in far) == Counter(active) == Counter(dst.name for _, dst in far)
    assert all(src.rail == dst.rail and src.host != dst.host for src, dst in chosen)


def test_near_and_far_sends_to_another_pod_and_to_two_racks_from_a_rack_of_one() -> None:
    pods = build(FabricSpec(pods=2, segments=2, hosts=2, aggs=2, cores=2))
    far = [(src, dst) for src, dst in near_and_far(pods, 1) if _rack(src) != _rack(dst)]
    assert all(pods.node(src.host).pod != pods.node(dst.host).pod for src, dst in far)
    lone = build(FabricSpec(segments=3, hosts=1, aggs=2))
    assert set(Counter(src.name for src, _ in near_and_far(lone, 1)).values()) == {2}
    assert set(Counter(dst.name for _, dst in near_and_far(lone, 1)).values()) == {2}


def test_the_seed_decides_and_nothing_else() -> None:
    fabric = build(FabricSpec(segments=4, hosts=4, aggs=2))
    assert permutation(fabric, 5) == permutation(fabric, 5)
    assert len({tuple(dst.name for _, dst in permutation(fabric, seed)) for seed in range(20)}) > 15


def test_a_permutation_mixes_segments() -> None:
    fabric = build(FabricSpec(segments=4, hosts=8, aggs=2))
    targets = defaultdict(set)
    for src, dst in permutation(fabric, 1):
        targets[_segment(fabric, src)].add(_segment(fabric, dst))
    assert all(len(found) > 1 for found in targets.values())


@given(shapes)
def test_pairs_talk_both_ways_and_incast_has_one_receiver_a_rail(fabric: Fabric) -> None:
    both = {(a.name, b.name) for a, b in pairs(fabric, 1)}
    assert both == {(b, a) for a, b in both}
    assert max(Counter(a for a, _ in both).values()) == 1
    drowned = incast(fabric, 1)
    assert len({dst.name for _, dst in drowned}) == fabric.spec.rails
    assert max(Counter(src.name for src, _ in drowned).values()) == 1
    assert all(not fabric.node(nic.host).spare for pair in drowned for nic in pair)


def test_impossible_patterns_say_what_to_change() -> None:
    lonely = build(FabricSpec(segments=1, hosts=1, aggs=2))
    for pattern in ("permutation", "pairs", "incast", "near-and-far"):
        with pytest.raises(InputError, match="raise hosts or segments"):
            flows_for(lonely, pattern, load=0.5)
    with pytest.raises(InputError, match="permutation or pairs or incast or near-and-far or probes or bursts"):
        flows_for(lonely, "shuffle", load=0.5)


@given(shapes, st.integers(1, 8), st.floats(0.01, 1.0), st.sampled_from([1024, 4096]))
def test_flows_fill_the_load_and_have_their_own_source_ports(fabric: Fabric, qps: int, load: float, mtu: int) -> None:
    flows = flows_for(fabric, "permutation", load=load, queue_pairs=qps, path_mtu=mtu, seed=3)
    assert [f.id for f in flows] == list(range(len(flows)))
    assert len({f.name for f in flows}) == len(flows)
    used = Counter([(f.src_nic, f.sport) for f in flows] + [(f.dst_nic, f.ack_sport) for f in flows])
    assert max(used.values()) == 1
    assert all(0xC000 <= port <= 0xFFFF for _, port in used)
    offered: dict[str, float] = defaultdict(float)
    for f in flows:
        offered[f.src_nic] += f.rate_pps * wire_bytes(mtu) * 8
    for name, bps in offered.items():
        assert bps == pytest.approx(load * sum(link.rate_bps for link in fabric.nic(name).links))


def test_more_queue_pairs_than_source_ports_are_refused() -> None:
    fabric = build(FabricSpec(segments=2, hosts=1, aggs=2))
    with pytest.raises(InputError, match="source ports"):
        flows_for(fabric, "permutation", load=0.5, queue_pairs=9000)


@given(shapes, st.integers(1, 4), st.integers(1, 10**6), st.sampled_from([1024, 4096]))
def test_bursts_are_the_pairs_of_a_permutation_in_whole_packets_all_of_one_plan(
    fabric: Fabric, qps: int, size: int, mtu: int
) -> None:
    every = 500_000_000
    even = flows_for(fabric, "permutation", load=0.5, queue_pairs=qps, path_mtu=mtu)
    flows = flows_for(fabric, "bursts", load=0.5, queue_pairs=qps, path_mtu=mtu, size_bytes=size, every_ns=every)
    assert [(f.name, f.rate_pps, f.sport) for f in flows] == [(f.name, f.rate_pps, f.sport) for f in even]
    plans = {f.transfers for f in flows}
    assert plans == {Transfers(-(-size // mtu), every)}
    assert {f.sending_ns + f.pause_ns for f in flows} == {every}
    assert {(f.sending_ns, f.pause_ns) for f in even} == {(0, 0)}


@pytest.mark.parametrize(("size", "every"), [(None, None), (1, None), (None, 1)])
def test_bursts_ask_for_size_and_every(size: int | None, every: int | None) -> None:
    fabric = build(FabricSpec(segments=2, hosts=1, aggs=2))
    with pytest.raises(
        InputError, match="'bursts' sends transfers; write both size and every, such as size: 1 MB and every: 500 ms"
    ):
        flows_for(fabric, "bursts", load=0.5, size_bytes=size, every_ns=every)


def test_only_a_timed_pattern_makes_something_of_size_and_every() -> None:
    fabric = build(FabricSpec(segments=2, hosts=2, aggs=2))
    asked = PatternRequest(fabric, 1, True, 4096, 500_000_000)
    for pattern in PATTERNS.values():
        assert any(not isinstance(each, Stream) for each in pattern.demand(asked)) == pattern.timed


def test_a_pattern_that_finds_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be a drill without traffic, in which nothing can fail."""
    monkeypatch.setitem(PATTERNS._entries, "nobody", Pattern("nobody", "nobody sends", lambda _asked: []))
    with pytest.raises(InputError, match="the pattern 'nobody' finds nobody to send here"):
        flows_for(build(FabricSpec(name="one")), "nobody", load=0.4)
