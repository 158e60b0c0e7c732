"""The failures of an audit are every element of the fabric, whatever it is called, and each is a drill that loads."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.scenarios.audit.audit import plan
from hpn.scenarios.audit.drill import flows_for, names_of, planned, workload_of
from hpn.scenarios.audit.failures import DEFAULT_KINDS, KINDS, Breakage, Failure, single_failures
from hpn.scenarios.audit.pairs import pairs_of
from hpn.scenarios.audit.promises import default_promises
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.schema import NAME
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.model import Fabric, LinkKind, Role
from hpn.testbed.fabric.spec import BfdSpec, BgpSpec, FabricSpec, LacpSpec
from hpn.testbed.files.document import parse

SMALL = (
    "tiny",
    "tiny-spare",
    "tiny-pods",
    "tiny-stacked",
    "tiny-dcn-plus",
    "tiny-rail-only",
    "tiny-fat-tree",
    "tiny-same-rail",
    "tiny-torus",
    "tiny-slim-fly",
)


def _fabric(name: str) -> Fabric:
    return build(load_topology(name))


def _targets(fabric: Fabric, kind: str) -> list[str]:
    return [failure.breakages[0].target for failure in single_failures(fabric, (kind,))]


@pytest.mark.parametrize("name", SMALL)
def test_every_element_that_can_carry_traffic_fails_once(name: str) -> None:
    fabric = _fabric(name)
    idle = {host.name for host in fabric.hosts if host.spare}
    links = [link for link in fabric.links if link.lower.node not in idle]
    access = [link for link in links if link.kind is LinkKind.ACCESS]
    assert _targets(fabric, "link") == [link.name for link in links]
    assert sorted(_targets(fabric, "port")) == sorted([link.name for link in access] * 2)
    assert _targets(fabric, "host") == [host.name for host in fabric.hosts if host.name not in idle]
    assert _targets(fabric, "switch") == [node.name for node in fabric.nodes if node.role is not Role.HOST]
    several = [link.name for link in access if len(fabric.nic_of_link(link.name).links) > 1]
    assert _targets(fabric, "member") == several
    assert _targets(fabric, "session") == [link.name for link in fabric.links if link.is_routed]
    assert _targets(fabric, "silent") == _targets(fabric, "session")


def test_tiny_has_112_single_failures() -> None:
    found = single_failures(_fabric("tiny"), DEFAULT_KINDS)
    assert len(found) == 32 + 32 + 4 + 12 + 16 + 16
    assert len({failure.key for failure in found}) == len(found)


def test_a_nic_with_one_port_has_no_member_to_lose() -> None:
    assert _targets(build(FabricSpec(architecture="single-tor")), "member") == []


@pytest.mark.parametrize("name", SMALL)
def test_each_failure_is_a_drill_whose_file_loads(name: str, tmp_path: Path) -> None:
    found = plan(load_topology(name), tuple(KINDS), 5, default_promises(), tmp_path)
    assert found.left_out == ()
    for each in found.failures[:: max(1, len(found.failures) // 20)]:
        again = drill_from(parse(each.text, each.drill.source), tmp_path)
        assert replace(again, expectations=()) == replace(each.drill, expectations=())
        assert [one.text for one in again.expectations] == [one.text for one in each.drill.expectations]


def test_names_are_valid_and_apart_whatever_elements_are_called() -> None:
    targets = ("Leaf/1", "leaf-1", "leaf.1", "x" * 80, "x" * 81, "Ä", "ö")
    failures = [Failure("link", (Breakage("link-down", target),)) for target in targets]
    names = names_of(failures)
    assert len(set(names)) == len(targets)
    assert all(re.fullmatch(NAME, name) for name in names)
    assert names_of(failures) == names


def test_pairs_that_leave_a_flow_without_a_path_come_first() -> None:
    fabric = _fabric("tiny")
    found = pairs_of(fabric, flows_for(fabric), 8)
    assert [each.targets for each in found[:4]] == [
        (f"p0.s{segment}.t{rail}.0", f"p0.s{segment}.t{rail}.1") for segment in (0, 1) for rail in (0, 1)
    ]
    assert all(each.kind == "pair" for each in found)
    both = {frozenset(each.targets) for each in found[4:]}
    assert frozenset({"p0.s0.h0.r0.0", "p0.s0.h0.r0.1"}) in both


def test_pairs_that_contradict_each_other_are_left_out() -> None:
    fabric = _fabric("tiny")
    found = {frozenset(each.targets) for each in pairs_of(fabric, flows_for(fabric), 10_000)}
    assert frozenset({"p0.s0.h0.r0.0", "p0.s0.t0.0"}) not in found, "the ToR takes the link's carrier"
    assert found


def test_queue_pairs_cover_the_ways_out_of_a_rack() -> None:
    assert workload_of(_fabric("tiny")).queue_pairs == 4, "two ToRs with two Aggs each"
    assert workload_of(build(FabricSpec(aggs=60))).queue_pairs == 16, "no more than a machine carries"


def test_an_element_is_down_for_longer_than_its_limit_and_its_timer() -> None:
    fabric = _fabric("tiny")
    slow = build(FabricSpec(name="slow", lacp=LacpSpec(rate="slow")))
    quick = build(FabricSpec(name="quick", bgp=BgpSpec(bfd=BfdSpec())))
    for one, kind, least_ns in (
        (fabric, "member", 3 * 10**9),
        (slow, "member", 90 * 10**9),
        (fabric, "silent", 9 * 10**9),
        (quick, "silent", 3 * 10**9),
    ):
        failure = single_failures(one, (kind,))[0]
        drill = planned(one, failure, kind, default_promises(), Path()).drill
        assert (drill.timeline.faults[0].for_ns or 0) > least_ns


def test_a_promise_that_cannot_be_judged_is_told_and_the_others_stay() -> None:
    fabric = _fabric("tiny")
    agg = Failure("switch", (Breakage("agg-crash", "p0.a0.0"),))
    found = planned(fabric, agg, "agg", default_promises(), Path())
    texts = [each.text for each in found.drill.expectations]
    assert ("packets lost of other flows at most 0" in texts) == (not found.unfit)
    assert "state restored" in texts


def test_a_fabric_without_partners_is_refused(tmp_path: Path) -> None:
    lonely = FabricSpec(segments=1, hosts=1)
    with pytest.raises(InputError, match="near-and-far"):
        plan(lonely, tuple(KINDS), 0, default_promises(), tmp_path)
