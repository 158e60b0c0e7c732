"""Preset ports of a Core: one egress port per ingress port and pod, all used alike; and it can be turned off."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.model import Fabric, Node, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec


def _cores(fabric: Fabric) -> list[Node]:
    return [node for node in fabric.nodes if node.role is Role.CORE]


def _rule(fabric: Fabric, core: Node) -> dict[tuple[str, int], str]:
    """(ingress port, pod it goes to) to egress port."""
    return {
        (port.name, pod): egress.name
        for table in preset_tables(fabric, core)
        for home, port in table.ingress.items()
        for pod, egress in table.egress.items()
        if pod != home
    }


def test_the_rule_in_two_pods_is_straight_at_the_first_core_and_crossed_at_the_second() -> None:
    fabric = build(PRESETS["tiny-pods"].spec)
    straight = {("p0a0", 1): "p1a0", ("p0a1", 1): "p1a1", ("p1a0", 0): "p0a0", ("p1a1", 0): "p0a1"}
    crossed = {("p0a0", 1): "p1a1", ("p0a1", 1): "p1a0", ("p1a0", 0): "p0a1", ("p1a1", 0): "p0a0"}
    assert {core.name: _rule(fabric, core) for core in _cores(fabric)} == {
        "c0.0": straight, "c0.1": crossed, "c1.0": straight, "c1.1": crossed
    }  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    [
        PRESETS["pods"].spec,
        FabricSpec(pods=3, segments=1, aggs=6, cores=4, core_groups=2),
        FabricSpec(pods=4, segments=1, aggs=3, cores=5),
        FabricSpec(architecture="dcn-plus", pods=3, segments=1, aggs=4, cores=6, core_groups=2, core_ports="preset"),
        FabricSpec(architecture="single-tor", pods=2, segments=1, aggs=1, cores=2),
    ],
    ids=["pods", "groups", "odd", "dcn-plus", "one-agg"],
)
def test_every_ingress_port_has_an_egress_port_in_every_other_pod_and_each_is_used_equally_often(
    spec: FabricSpec,
) -> None:
    fabric = build(spec)
    for core in _cores(fabric):
        links = {link.upper.name: link for link in fabric.links_of(core.name)}
        pod_of = {name: fabric.node(link.lower.node).pod for name, link in links.items()}
        rule = _rule(fabric, core)
        assert rule.keys() == {(port, pod) for port in links for pod in range(spec.pods) if pod != pod_of[port]}
        assert all(pod_of[egress] == pod for (_, pod), egress in rule.items())
        used = Counter(rule.values())
        assert used == dict.fromkeys(links, spec.pods - 1)
        for home in range(spec.pods):  # also from each pod by itself
            assert set(Counter(e for (port, _), e in rule.items() if pod_of[port] == home).values()) == {1}


def test_an_agg_sends_up_through_several_cores_and_comes_down_by_as_many_aggs() -> None:
    fabric = build(PRESETS["pods"].spec)
    down = Counter(
        (agg, _rule(fabric, core)[f"p0a{agg}", 1]) for core in _cores(fabric) if core.plane == 0 for agg in range(60)
    )
    assert len(down) == 60 * 8
    assert set(down.values()) == {1}


def test_a_table_is_shared_by_the_ports_of_one_place_in_all_pods() -> None:
    fabric = build(FabricSpec(pods=3, segments=1, aggs=2, cores=1))
    tables = preset_tables(fabric, _cores(fabric)[0])
    assert [(table.number, table.name) for table in tables] == [(1000, "preset0"), (1001, "preset1")]
    assert [port.name for port in tables[1].ingress.values()] == ["p0a1", "p1a1", "p2a1"]


@pytest.mark.parametrize("name", sorted(name for name, architecture in ARCHITECTURES.items() if architecture.cores))
def test_cores_preset_by_default_but_not_where_hashing_is_usual_and_the_plan_says_it(name: str) -> None:
    pods = {"pods": 2, "segments": 1, "cores": 2} | ({"hosts": 1, "aggs": 1, "cores": 1} if name == "fat-tree" else {})
    pods |= {"core_groups": 2} if name == "same-rail" else {}
    expected = "hash" if name in {"dcn-plus", "fat-tree", "same-rail"} else "preset"
    fabric = build(FabricSpec.model_validate({"architecture": name, **pods}))
    assert fabric.core_ports == expected
    assert asdict(inventory(fabric))["core_ports"] == expected
    assert all(bool(preset_tables(fabric, core)) == (expected == "preset") for core in _cores(fabric))


def test_the_key_overrules_the_architecture_either_way() -> None:
    tiny = PRESETS["tiny-pods"].spec.model_dump()
    dcn = PRESETS["tiny-dcn-plus"].spec.model_dump()
    hashing = build(FabricSpec.model_validate(tiny | {"core_ports": "hash"}))
    assert all(preset_tables(hashing, node) == () for node in hashing.switches)
    presetting = build(FabricSpec.model_validate(dcn | {"core_ports": "preset"}))
    assert all(preset_tables(presetting, core) for core in _cores(presetting))


def test_only_cores_between_pods_have_tables() -> None:
    fabric = build(PRESETS["tiny-pods"].spec)
    assert {node.role for node in fabric.switches if preset_tables(fabric, node)} == {Role.CORE}
    lonely = build(FabricSpec(cores=2))
    assert all(preset_tables(lonely, node) == () for node in lonely.switches)
    assert inventory(build(FabricSpec())).core_ports is None


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (FabricSpec(core_ports="hash"), "core_ports is hash but cores is 0; leave it out, or write cores: 2"),
        (FabricSpec(architecture="rail-only", core_ports="preset"), "core_ports means nothing to rail-only"),
    ],
)
def test_the_key_is_refused_where_there_are_no_cores(spec: FabricSpec, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        build(spec)
    assert [text.startswith(problem) for text in refused.value.problems] == [True]
