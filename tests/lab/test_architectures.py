"""Labs of the baselines: they converge, and each one's own way of wiring shows in where packets can go."""

from __future__ import annotations

import subprocess

import pytest

from hpn.testbed.events import EventKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from hpn.testbed.routing.trace import Flow
from tests.lab.running import Recorder, cut, mend, running, whole_again

pytestmark = pytest.mark.kernel

SPORTS = range(50_000, 50_032)


def _nodes(lab: Lab, src: str, dst: str) -> list[list[str]]:
    """Nodes that flows of many source ports visit, where they arrive."""
    paths = [lab.path(Flow(src, dst, sport)) for sport in SPORTS]
    assert {path.dropped for path in paths} == {None}
    return [[step.node for step in path.steps] for path in paths]


def _ping(lab: Lab, host: str, *words: str) -> str:
    command = ["ip", "netns", "exec", host, "ping", "-c", "1", "-W", "5", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout


async def test_pods_meet_in_the_cores_of_the_senders_plane() -> None:
    async with running(PRESETS["tiny-pods"].spec) as lab:
        paths = _nodes(lab, "p0.s0.h0.r0", "p1.s0.h1.r0")
        assert {path[3] for path in paths} == {"c0.0", "c0.1", "c1.0", "c1.1"}
        for path in paths:
            assert len({lab.fabric.node(name).plane for name in path[1:-1]}) == 1
        assert "ttl=59" in _ping(lab, "p0.s0.h0", lab.fabric.nic("p1.s0.h1.r0").ip)  # ToR, Agg, Core, Agg, ToR


async def test_a_stacks_peer_link_is_up_carries_no_routes_and_dies_and_returns_with_its_tor() -> None:
    async with running(PRESETS["tiny-stacked"].spec) as lab:
        before = state(lab)
        stack = lab.fabric.stacks[0]
        peer = lab.fabric.link(stack.peer_link)
        assert peer.upper.address is not None
        assert "ttl=64" in _ping(lab, stack.secondary, peer.upper.address.split("/")[0])
        for path in _nodes(lab, "p0.s0.h0.r0", "p0.s1.h0.r0") + _nodes(lab, "p0.s0.h0.r0", "p0.s0.h1.r0"):
            assert len({stack.primary, stack.secondary} & set(path)) == 1, "no packet takes the peer link"
        lab.breakage.crash([stack.primary])
        await lab.wait_for(lambda: not lab.link_up(peer.name), 10)
        await lab.wait_for(lambda: not lab.bgp[stack.primary].running, 10)
        await lab.breakage.boot([stack.primary])
        await whole_again(lab, before)


async def test_in_dcn_plus_a_nic_reaches_every_other_nic_over_parallel_links_and_both_core_groups() -> None:
    async with running(PRESETS["tiny-dcn-plus"].spec) as lab:
        paths = _nodes(lab, "p0.s0.h0.r0", "p1.s1.h0.r1")
        assert {path[3] for path in paths} == {"c0.0", "c0.1", "c0.2", "c0.3"}
        used = {link for s in SPORTS for link in lab.path(Flow("p0.s0.h0.r0", "p0.s1.h0.r0", s)).links}
        tor = "p0.s0.t0.0"
        assert {link for link in used if link.startswith(f"{tor}-")} == {
            f"{tor}-p0.a0.{agg}.{k}" for agg in (0, 1) for k in (0, 1)
        }
        assert "ttl=59" in _ping(lab, "p0.s0.h0", "-I", "10.0.0.1", lab.fabric.nic("p1.s1.h0.r1").ip)


async def test_the_rails_of_a_rail_only_fabric_do_not_reach_each_other() -> None:
    async with running(PRESETS["tiny-rail-only"].spec) as lab:
        assert len({path[2] for path in _nodes(lab, "p0.s0.h0.r1", "p0.s1.h1.r1")}) == 2
        across = lab.path(Flow("p0.s0.h0.r0", "p0.s1.h1.r1", SPORTS[0]))
        assert (across.dropped, across.steps[-1].node) == ("no route", "p0.s0.t0.0")


@pytest.mark.parametrize(
    "preset",
    ["tiny", "tiny-stacked", "tiny-dcn-plus", "tiny-rail-only", "tiny-fat-tree", "tiny-pods", "tiny-same-rail"],
)
async def test_with_an_asn_per_switch_a_healthy_lab_has_the_same_routes(preset: str) -> None:
    """Shortest paths have no valley; a NIC that loses a port is found again as without."""
    spec = PRESETS[preset].spec
    changes = {"bgp": {"asn": "per-switch"}} | ({"core_ports": "hash"} if preset == "tiny-pods" else {})
    async with running(FabricSpec.model_validate(spec.model_dump() | changes)) as lab:
        assert deviations(lab) == ()
        before, link = state(lab), lab.fabric.nics[-1].links[0]
        nic = lab.fabric.nics[-1]
        cut(lab, link)
        await lab.wait_for(lambda: not lab.watcher.has_host_route(link.upper.node, f"{nic.ip}/32"), 10)
        mend(lab, link)
        await whole_again(lab, before)


@pytest.mark.parametrize("preset", ["tiny-stacked", "tiny-dcn-plus", "tiny-same-rail"])
async def test_below_one_plane_path_control_leaves_queue_pairs_where_they_are(preset: str) -> None:
    events = Recorder()
    async with running(PRESETS[preset].spec, events) as lab:
        assert lab.fabric.spec.path_control.enabled
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        lab.nics[source.name].connect(Connection(sport, target.ip, 4791, sport) for sport in SPORTS)
        twin = target.links[1].upper.node

        def by_the_twin() -> bool:
            paths = [lab.path(Flow(source.name, target.name, sport)) for sport in SPORTS]
            return all(path.dropped is None and path.steps[-2].node == twin for path in paths)

        def strayed() -> list[str]:
            last = {e.subject: e.detail["sport"] for e in events if e.kind is EventKind.PATH and e.what == "moved"}
            return [connection for connection, sport in last.items() if sport != int(connection)]

        cut(lab, target.links[0])
        await lab.wait_for(by_the_twin, 10)
        await lab.wait_for(lambda: not strayed(), 10)
        mend(lab, target.links[0])
        await lab.converged(30)
        await lab.wait_for(lambda: not strayed(), 10)


async def test_with_one_port_path_control_sees_a_destination_go_and_moves_nothing() -> None:
    events = Recorder()
    async with running(PRESETS["tiny-rail-only"].spec, events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        lab.nics[source.name].connect(Connection(sport, target.ip, 4791, sport) for sport in SPORTS)

        def said() -> list[str]:
            return [e.what for e in events if e.kind is EventKind.PATH]

        await lab.wait_for(lambda: said() == ["reachable"], 10)
        cut(lab, target.links[0])
        await lab.wait_for(lambda: said() == ["reachable", "unreachable"], 10)
        mend(lab, target.links[0])
        await lab.wait_for(lambda: said() == ["reachable", "unreachable", "reachable"], 10)
