"""The oracle: it shares nothing with hpn, and sees what is planted."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.strangers import oracle
from tests.strangers.oracle.faults import Span, spans
from tests.strangers.oracle.judge import (
    CONGESTION,
    CONVERGENCE,
    DETECTION,
    NO_CONTROL,
    NO_MOVE,
    NO_PATH,
    Finding,
    judge,
)
from tests.strangers.oracle.network import Link, Network
from tests.strangers.oracle.story import AtEdge, Edge, Flow, Story, Way

_MS = 1_000_000
_RATE = 100_000_000
_PLANES = {"path_control": {"enabled": True, "policy": "move-source-ports"}, "lacp": {"rate": "fast"}}
_SPEC = {**_PLANES, "bgp": {"daemon": "bird", "hold_s": 9, "bfd": None}}
_DEATHS = "queue pair deaths at most 0"


def _network() -> Network:
    """Hosts a and b, each with a port in two planes that share nothing: a0-x0-b0 and a1-x1-b1."""
    links = {}
    for plane in (0, 1):
        for host in "ab":
            tor = f"{host}{plane}"
            links[f"{host}.{plane}"] = Link(f"{host}.{plane}", (host, tor), _RATE, access=True)
            links[f"{tor}-x{plane}"] = Link(f"{tor}-x{plane}", (tor, f"x{plane}"), _RATE, access=False)
    roles = {"a": "host", "b": "host"} | {f"{host}{plane}": "tor" for host in "ab" for plane in (0, 1)}
    roles |= {"x0": "agg", "x1": "agg"}
    planes = {node: None if role == "host" else int(node[-1]) for node, role in roles.items()}
    return Network(roles, links, {"a.nic": ("a.0", "a.1"), "b.nic": ("b.0", "b.1")}, 2, planes, _SPEC)


def _story(**changes: Any) -> Story:
    """One flow from a to b in plane 0; b's port of plane 0 is cut from 1,500 to 3,500 ms; the flow dies at 2,037 ms."""
    flow = Flow(0, "a>b", "a.nic", "b.nic", 40e6, 1200.0, 2037 * _MS, 640, 0)
    hit = AtEdge(640, 537.0, control=False, never=True, first_loss_ns=1500 * _MS, last_loss_ns=2037 * _MS)
    none = AtEdge(0, 0.0, control=False, never=True, first_loss_ns=None, last_loss_ns=None)
    edges = (
        Edge("cut failure 0", "failure", 1500 * _MS, 3500 * _MS, {0: hit}),
        Edge("cut repair 0", "repair", 3500 * _MS, 8500 * _MS, {0: none}),
    )
    asked = {"text": _DEATHS, "metric": "queue_pair_deaths", "edge": "any", "limit": 0.0}
    drill = {
        "expects": [asked],
        "workload": {"ib_timeout": 14, "retry_count": 7, "path_control": True},
        "end_ns": 8500 * _MS,
    }
    verdict = {"outcome": "fail", "checks": [{"text": _DEATHS, "outcome": "fail"}]}
    cut = Span(1500 * _MS, 3500 * _MS, frozenset({"b.0"}), 0, "link-down")
    ways = {0: [Way(0, 0, ("a.0", "a0-x0", "b0-x0", "b.0"), True)]}
    story = Story(_network(), drill, verdict, {0: flow}, edges, (cut,), ways, 0, 8500 * _MS, "")
    return replace(story, **changes)


def _causes(found: Finding) -> set[str]:
    return {cause for broken in found.broken for cause in broken.causes}


def _modules() -> Iterator[tuple[Path, str]]:
    for file in Path(oracle.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from ((file, each.name) for each in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield file, node.module or ""


def test_it_shares_no_code_with_what_it_judges() -> None:
    found = list(_modules())
    assert len(found) > 10
    for file, module in found:
        ours = module.startswith("tests.strangers.oracle")
        assert ours or module.partition(".")[0] in sys.stdlib_module_names, f"{file.name} imports {module}"


def test_ways_go_up_and_down_within_a_plane() -> None:
    network = _network()
    assert network.has_way("a.nic", "b.nic", {"b.0"})
    assert not network.has_way("a.nic", "b.nic", {"b.0"}, port=0)
    assert not network.has_way("a.nic", "b.nic", {"b.0", "a.1"})
    assert not network.has_way("a.nic", "b.nic", {"a0-x0", "b1-x1"})
    assert list(network.directions("a.nic", ("a.0", "a0-x0", "b0-x0"))) == [
        ("a.0", "a"),
        ("a0-x0", "a0"),
        ("b0-x0", "x0"),
    ]
    with pytest.raises(ValueError, match="does not begin at"):
        list(network.directions("a.nic", ("b.0",)))


def test_ways_go_anywhere_between_tors_that_are_joined() -> None:
    """Ring of t0, t1 and t2: round by t2, the link to it is entered at its upper end and left at its lower one."""
    cables = {"0-1": ("t0", "t1"), "0-2": ("t0", "t2"), "1-2": ("t1", "t2"), "a": ("a", "t0"), "b": ("b", "t1")}
    links = {name: Link(name, ends, _RATE, access=name in "ab", flat="-" in name) for name, ends in cables.items()}
    roles = {end: "tor" if end.startswith("t") else "host" for ends in cables.values() for end in ends}
    ring = Network(roles, links, {"a.nic": ("a",), "b.nic": ("b",)}, 1, {}, _SPEC)
    assert ring.has_way("a.nic", "b.nic", {"0-1"})
    assert not ring.has_way("a.nic", "b.nic", {"0-1", "1-2"})


def test_a_queue_pair_that_path_control_could_have_moved_is_stranded() -> None:
    found = judge(_story())
    assert len(found.stranded) == 1
    assert found.defects[0].startswith("stranded: a>b died 2037 ms")


@pytest.mark.parametrize(
    ("cut", "spec", "cause"),
    [
        ({"b.0", "b.1"}, {}, NO_PATH),
        ({"b.0"}, {"path_control": {"enabled": False, "policy": "move-source-ports"}}, NO_CONTROL),
        ({"b.0"}, {"path_control": {"enabled": True, "policy": "off"}}, NO_CONTROL),
    ],
)
def test_one_that_could_not_is_told_why(cut: set[str], spec: Mapping[str, Any], cause: str) -> None:
    network = replace(_network(), spec={**_SPEC, **spec})
    found = judge(_story(network=network, spans=(Span(1500 * _MS, 3500 * _MS, frozenset(cut), 0, "nic-down"),)))
    assert _causes(found) == {cause}
    assert found.defects == []
    assert found.gaps == [f"{_DEATHS}: {cause}"]


def test_a_silent_fault_kills_before_anybody_can_know() -> None:
    faults = [{"kind": "silent-drop", "target": "b.0", "moments": [{"at_ns": 1500 * _MS, "kind": "failure"}]}]
    (span,) = spans(_network(), {"faults": faults, "end_ns": 8500 * _MS}, 0)
    assert span.found_ns == 6_000 * _MS
    assert _causes(judge(_story(spans=(span,)))) == {DETECTION}


def test_a_link_that_is_offered_more_than_it_carries_explains_a_loss() -> None:
    story = _story()
    second = replace(story.flows[0], id=1, name="c>b", bps=80e6, dead_ns=None, lost=0)
    flows = {0: replace(story.flows[0], dead_ns=None), 1: second}
    lossy = AtEdge(400, 300.0, control=False, never=False, first_loss_ns=1600 * _MS, last_loss_ns=3400 * _MS)
    clean = AtEdge(0, 0.0, control=False, never=False, first_loss_ns=None, last_loss_ns=None)
    asked = {"text": "worst outage", "metric": "worst_outage", "edge": "failure", "limit": 100e6}
    found = judge(
        replace(
            story,
            flows=flows,
            drill={**story.drill, "expects": [asked]},
            verdict={"outcome": "fail", "checks": [{"text": "worst outage", "outcome": "fail"}]},
            edges=(Edge("cut failure 0", "failure", 1500 * _MS, 3500 * _MS, {0: lossy, 1: clean}),),
            spans=(Span(1500 * _MS, 3500 * _MS, frozenset({"b.0"}), 0, "link-down"),),
            ways={flow: [Way(1502 * _MS, 1, ("a.1", "a1-x1", "b1-x1", "b.1"), True)] for flow in (0, 1)},
        )
    )
    assert _causes(found) == {CONGESTION}
    assert found.overloads["cut failure 0"]["a1-x1 from a1"] == pytest.approx(1.2)


def test_a_way_that_changed_is_known_from_the_next_look_and_a_drop_loads_what_is_before_it() -> None:
    before, after = ("a.0", "a0-x0", "b0-x0", "b.0"), ("a.1", "a1-x1", "b1-x1", "b.1")
    moved = [Way(0, 0, before, True), Way(1500 * _MS, None, (), True), Way(3400 * _MS, 1, after, True)]
    story = _story(ways={0: moved})
    assert [story.taken_at(0, at * _MS) for at in (1000, 2000, 3450)] == [before, after, after]
    assert [story.way_at(0, at * _MS) for at in (1000, 2000, 3450)] == [before, (), after]
    dropped = _story(ways={0: [Way(0, 0, before[:2], False)]})
    assert set(dropped.load_at(1000 * _MS)) == {("a.0", "a"), ("a0-x0", "a0")}
    assert dropped.way_at(0, 1000 * _MS) == ()


@pytest.mark.parametrize(("last_ms", "defects"), [(5150, 0), (5300, 1)])
def test_losses_after_a_repair_are_convergence_until_the_last_route_changed(last_ms: int, defects: int) -> None:
    story = _story()
    lossy = AtEdge(400, 300.0, control=False, never=False, first_loss_ns=5000 * _MS, last_loss_ns=last_ms * _MS)
    edge = Edge("cut repair 0", "repair", 3500 * _MS, 8500 * _MS, {0: lossy}, settled_ns=5100 * _MS)
    asked = {"text": "worst outage", "metric": "worst_outage", "edge": "repair", "limit": 100e6}
    found = judge(
        replace(
            story,
            flows={0: replace(story.flows[0], dead_ns=None)},
            drill={**story.drill, "expects": [asked]},
            verdict={"outcome": "fail", "checks": [{"text": "worst outage", "outcome": "fail"}]},
            edges=(edge,),
        )
    )
    assert len(found.defects) == defects
    assert _causes(found) == (set() if defects else {CONVERGENCE})


def test_a_cause_that_the_verdict_names_must_be_the_right_one() -> None:
    cut = (Span(1500 * _MS, 3500 * _MS, frozenset({"b.0", "b.1"}), 0, "nic-down"),)
    assert judge(_story(spans=cut, words="b.nic has no path left")).gaps == []
    (wrong,) = judge(_story(spans=cut, words="offered 133 %: congestion")).defects
    assert wrong == f"{_DEATHS}: told another cause than {NO_PATH}"


def test_a_flow_without_a_way_cannot_have_lost_nothing() -> None:
    story = _story(spans=(Span(1500 * _MS, 3500 * _MS, frozenset({"b.0", "b.1"}), 0, "nic-down"),))
    unhurt = replace(story.flows[0], dead_ns=None, lost=0)
    passed = {"outcome": "pass", "checks": [{"text": _DEATHS, "outcome": "pass"}]}
    clean = tuple(replace(edge, flows={0: AtEdge(0, 0.0, False, False, None, None)}) for edge in story.edges)
    found = judge(replace(story, flows={0: unhurt}, verdict=passed, edges=clean, ways={}))
    assert found.impossible == ["a>b had no way for 2000 ms and lost nothing"]


@pytest.mark.parametrize(("cut", "explained"), [(set(), True), ({"b.0"}, False)])
def test_a_move_that_did_not_come_is_explained_where_no_flow_needed_one(cut: set[str], explained: bool) -> None:
    text = "order carrier, moved at failure"
    story = _story(spans=(Span(1500 * _MS, 3500 * _MS, frozenset(cut), 0, "link-down"),))
    found = judge(
        replace(
            story,
            flows={0: replace(story.flows[0], dead_ns=None, lost=1)},
            drill={**story.drill, "expects": [{"text": text, "metric": "order", "edge": "failure", "limit": 0.0}]},
            verdict={
                "checks": [{"text": text, "outcome": "fail", "evidence": "no moved event at cut"}],
                "outcome": "fail",
            },
            words="no moved event at cut",
        )
    )
    assert (NO_MOVE in _causes(found)) is explained


def test_a_limit_that_nothing_explains_is_a_defect() -> None:
    story = _story()
    flow = replace(story.flows[0], dead_ns=None)
    late = AtEdge(600, 500.0, control=False, never=False, first_loss_ns=1500 * _MS, last_loss_ns=2000 * _MS)
    asked = {"text": "worst outage", "metric": "worst_outage", "edge": "failure", "limit": 100e6}
    verdict = {"outcome": "fail", "checks": [{"text": "worst outage", "outcome": "fail"}]}
    edges = (replace(story.edges[0], flows={0: late}),)
    found = judge(
        replace(
            story, flows={0: flow}, drill={**story.drill, "expects": [asked]}, verdict=verdict, edges=edges, ways={}
        )
    )
    assert found.defects == ["worst outage: a>b at cut failure 0: 600 lost, outage 500.0 ms"]
