"""Buffers of switches: headroom and thresholds by arithmetic, and what is refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.balancing import Balance
from hpn.testbed.fabric.buffer_rules import buffer_notes
from hpn.testbed.fabric.buffers import (
    balances,
    first_threshold,
    headroom_bytes,
    port_options,
    priority_of,
    react_ns,
    shared_bytes,
)
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.switch_spec import ClassSpec, SwitchSpec
from hpn.testbed.kernel.rtnetlink.mmu import PortClass, PortOptions, Stuck

TINY = PRESETS["tiny"].spec
FRAME = 4218


def _spec(**switch: Any) -> FabricSpec:
    return FabricSpec.model_validate({**TINY.model_dump(), "switch": switch})


def test_headroom_is_what_is_on_its_way_and_two_frames_and_a_burst() -> None:
    """100 m: 500 ns each way, a thousand times as long here; 1 ms at 200 Mbit/s are 25,000 bytes."""
    spec = _spec(cable_m=100)
    assert spec.switch is not None
    assert react_ns(spec, spec.switch) == 1_000_000
    assert headroom_bytes(spec, spec.switch, 200_000_000) == 2 * FRAME + 25_000 + 12_500


@pytest.mark.parametrize("factor", [2, 10])
def test_a_slower_lab_has_as_many_bytes_on_a_cable(factor: int) -> None:
    """Rates a factor lower, delays as much longer: headroom differs by the bucket's burst in time alone."""
    spec = _spec(cable_m=100)
    slower = spec.model_copy(update={"scale": spec.scale * factor})
    assert spec.switch is not None
    on_cable = [
        headroom_bytes(each, spec.switch, 200 * 10**9 // each.scale)
        - headroom_bytes(each, spec.switch.model_copy(update={"cable_m": 0}), 200 * 10**9 // each.scale)
        for each in (spec, slower)
    ]
    assert on_cable[0] == on_cable[1] == 25_000


def test_what_is_no_headroom_is_shared() -> None:
    fabric = build(_spec(buffer=2_000_000, cable_m=0))
    for node in fabric.switches:
        links = fabric.links_of(node.name)
        headroom = sum(2 * (2 * FRAME + max(2 * FRAME, link.rate_bps // 16_000)) for link in links)
        assert shared_bytes(fabric, node.name) == 2_000_000 - headroom
        assert port_options(fabric, node.name, links[0].rate_bps).buffer == shared_bytes(fabric, node.name)


def test_a_quantum_of_pause_is_512_bits_of_the_port() -> None:
    fabric = build(_spec())
    assert port_options(fabric, "p0.s0.t0.0", 200_000_000).quantum_ns == 2560
    assert port_options(fabric, "p0.s0.t0.0", 400_000_000).quantum_ns == 1280


def test_without_classes_dscp_3_and_4_are_lossless_as_in_sonic() -> None:
    fabric = build(_spec())
    options = port_options(fabric, "p0.s0.t0.0", 200_000_000)
    assert [each.lossless for each in options.classes] == [False] * 3 + [True] * 2 + [False] * 3
    assert [options.class_of[dscp] for dscp in (0, 3, 4, 5, 8, 46, 48, 26)] == [1, 3, 4, 2, 0, 5, 6, 1]
    assert [each.quantum for each in options.classes[5:]] == [0, 0, 0], "trimmed packets, routing and control first"


def test_hosts_obey_pfc_and_mark_their_rdma_but_drop_nothing() -> None:
    options = port_options(build(_spec(watchdog={})), "p0.s0.h0", 200_000_000)
    assert (options.is_switch, options.rdma_dscp, options.cnp_dscp) == (False, 3, 48)
    assert [each.lossless for each in options.classes] == [False] * 3 + [True] * 2 + [False] * 3
    assert {each.limit for each in options.classes} == {64 << 20}
    assert options.buffer >= 4 * sum(each.limit for each in options.classes), "four ports: none is full for another"
    assert not any(each.watchdog or each.kmax or each.trim for each in options.classes)


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.lists(st.integers(0, 63), max_size=4)), max_size=8, unique_by=lambda c: c[0]
    )
)
def test_every_dscp_has_one_priority_and_the_own_classes_come_first(classes: list[tuple[int, list[int]]]) -> None:
    switch = SwitchSpec.model_validate({"classes": [{"priority": n, "dscp": dscps} for n, dscps in classes]})
    found = priority_of(switch)
    assert len(found) == 64
    assert set(found) <= set(range(8))
    for dscp in {dscp for _, dscps in classes for dscp in dscps}:
        assert found[dscp] in {n for n, dscps in classes if dscp in dscps}


NEVER = {"kmin": 9000, "kmax": "3 MB", "pmax": 1}
LOSSLESS = {"priority": 3, "dscp": [3], "lossless": True}


@pytest.mark.parametrize(
    ("switch", "at", "words"),
    [
        ({"classes": [LOSSLESS | {"limit": 3_000_000}]}, ("limit",), "above the buffer of 2000000 B"),
        ({"classes": [LOSSLESS | {"limit": 50_000, "xon_offset": 50_000}]}, ("xon_offset",), "never sent"),
        ({"classes": [LOSSLESS | {"headroom": 4217}]}, ("headroom",), "less than one frame of 4218 B"),
        ({"classes": [LOSSLESS | {"priority": 7}]}, ("lossless",), "LACP, BGP or BFD"),
        ({"classes": [LOSSLESS | {"dscp": [48]}]}, ("lossless",), "LACP, BGP or BFD"),
        ({"classes": [LOSSLESS | {"trim": True}]}, ("trim",), "drops nothing"),
        ({"classes": [{"priority": 1, "headroom": 9000}]}, ("headroom",), "for lossless classes"),
        ({"classes": [{"priority": 1, "limit": 100}]}, ("limit",), "less than one frame"),
        ({"classes": [{"priority": 1, "ecn": {"kmin": 9000, "kmax": 9000, "pmax": 1}}]}, ("ecn", "kmax"), "not above"),
        (
            {"classes": [{"priority": 1, "ecn": {"kmin": 9000, "kmax": "3 MB", "pmax": 1}}]},
            ("ecn", "kmax"),
            "never wait",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(switch: dict[str, Any], at: tuple[str, ...], words: str) -> None:
    ((where, text),) = contradictions(_spec(**switch))
    assert where == ("switch", "classes", 0, *at)
    assert words in text


def test_switches_balance_as_their_policy_says_and_hosts_never() -> None:
    for policy, gap_ms, expected in (
        ("spray", None, (Balance.BY_RANDOM, 0)),
        ("adaptive", None, (Balance.BY_QUEUE, 0)),
        ("flowlet", 0.5, (Balance.BY_RANDOM, 500)),
        ("resilient", None, (Balance.BY_HASH, 10_000_000)),
    ):
        fabric = build(_spec(balancing={"policy": policy, "gap_ms": gap_ms}))
        made = port_options(fabric, "p0.s0.t0.0", 200_000_000)
        assert (made.balance, made.gap_us) == expected
        assert (made.rate_kbps, made.seed) == (200_000, fabric.node("p0.s0.t0.0").ecmp_seed)
        assert port_options(fabric, "p0.s0.h0", 200_000_000).balance == Balance.BY_ECMP
        assert balances(fabric.spec)
    assert not balances(_spec())


def test_what_chooses_for_each_packet_has_no_gap() -> None:
    ((where, text),) = contradictions(_spec(balancing={"policy": "spray", "gap_ms": 1}))
    assert where == ("switch", "balancing", "gap_ms")
    assert "leave gap_ms out" in text


def test_a_priority_and_a_dscp_are_of_one_class() -> None:
    found = contradictions(_spec(classes=[LOSSLESS, LOSSLESS]))
    assert [where for where, _ in found] == [("switch", "classes", 1, "priority"), ("switch", "classes", 1, "dscp")]


def test_trimmed_packets_have_a_class_that_drops() -> None:
    ((where, _),) = contradictions(_spec(classes=[LOSSLESS], trimming={"priority": 3}))
    assert where == ("switch", "trimming", "priority")


@pytest.mark.parametrize(
    "key", [{"ecn": {"kmin_bytes": 9000, "kmax_bytes": 90_000, "pmax": 0.1}}, {"second_class": {"share": 0.3}}]
)
def test_keys_that_switch_replaces_are_refused_beside_it(key: dict[str, Any]) -> None:
    spec = FabricSpec.model_validate({**TINY.model_dump(), "switch": {}, **key})
    ((where, text),) = contradictions(spec)
    assert where == tuple(key)
    assert "switch.classes" in text


def test_headroom_that_leaves_nothing_is_refused_with_the_buffer_that_would_do() -> None:
    with pytest.raises(InputError, match="write at least") as refused:
        build(_spec(buffer=100_000))
    least = int(str(refused.value).split("write at least ")[1].split(" B")[0])
    assert build(_spec(buffer=least))
    with pytest.raises(InputError):
        build(_spec(buffer=least - 1))


def test_marks_that_come_after_pfc_and_a_watchdog_within_one_pause_are_told() -> None:
    """Alpha 1/8 of 1.8 MB: PFC at a ninth, 200 kB. One XOFF lasts 65,535 x 2.56 us at 200 Mbit/s."""
    late = LOSSLESS | {"alpha": 0.125, "ecn": {"kmin": 210_000, "kmax": 400_000, "pmax": 0.1}}
    (marks, watchdog) = buffer_notes(build(_spec(classes=[late], watchdog={"detect_ms": 167}, cable_m=0)))
    assert "never marked" in marks
    assert "write detect_ms: 169 or more" in watchdog
    early = LOSSLESS | {"alpha": 0.125, "ecn": {"kmin": 190_000, "kmax": 400_000, "pmax": 0.1}}
    assert list(buffer_notes(build(_spec(classes=[early], watchdog={})))) == []
    assert list(buffer_notes(build(TINY))) == []


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [({"alpha": 0.125}, 100_000), ({"limit": 50_000}, 50_000), ({}, 450_000), ({"limit": "1 GB"}, 900_000)],
)
def test_the_first_threshold_is_that_of_a_port_alone(given: dict[str, Any], bytes_: int) -> None:
    assert first_threshold(ClassSpec(priority=3, **given), 900_000) == bytes_


def test_options_are_packed_as_the_kernel_has_them() -> None:
    """struct mmu_options: its numbers, lengths and bytes in order, then 64 priorities and eight classes of 36 bytes."""
    stuck = Stuck(9, 11, 12)
    made = PortOptions(1, 2, 3, (PortClass(),) * 8, bytes(range(64)), True, 14, 15, 7, Balance.BY_QUEUE, 8, 10, stuck)
    packed = replace(made, detect_us=4, restore_us=5, trim_bytes=6, trim_class=13, trim_dscp=16).packed()
    assert len(packed) == 36 + 4 + 8 + 64 + 8 * 36
    assert struct.unpack_from("=9I2H7B", packed) == (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 1, 14, 15, 9, 3)
    assert packed[48:112] == bytes(range(64))


def test_a_class_is_packed_as_the_kernel_has_it() -> None:
    made = PortClass(True, False, True, True, 7, 1, 0.125, 2, 3, 4, 5, 0.5)
    assert struct.unpack("=9I", made.packed()) == (1 | 4 | 8, 7, 1, 128, 2, 3, 4, 5, 1 << 31)
