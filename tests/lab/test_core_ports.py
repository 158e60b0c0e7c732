"""Preset ports of Cores in a whole lab: one way out per way in, the hash when that is gone, and back after repair."""

from __future__ import annotations

import pytest

from hpn.testbed.fabric.model import Link, LinkKind, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service.inspect import report
from hpn.testbed.lab.state import differences, state
from hpn.testbed.routing.trace import Flow
from hpn.testbed.routing.trace import Path as FlowPath
from tests.lab.running import cut, mend, running
from tests.taps import Taps, send

pytestmark = pytest.mark.kernel

SOURCE, TARGET = "p0.s0.h0.r0", "p1.s0.h0.r0"
SPORTS = range(50_000, 50_160)
Ways = dict[str, set[str]]


def _three_aggs(**changes: object) -> FabricSpec:
    """Two pods with three Aggs per plane, so that losing one leaves something to choose from."""
    return FabricSpec.model_validate(PRESETS["tiny-pods"].spec.model_dump() | {"aggs": 3} | changes)


def _paths(lab: Lab) -> list[FlowPath]:
    """Flows that differ in their source port only."""
    return [lab.path(Flow(SOURCE, TARGET, sport)) for sport in SPORTS]


def _ways(lab: Lab, core: str = "c0.0") -> Ways:
    """Ingress port of a Core to the egress ports that those flows leave by; all of them must arrive."""
    found: Ways = {}
    for path in _paths(lab):
        assert path.dropped is None, path
        for step in path.steps:
            if step.node == core:
                found.setdefault(step.in_port, set()).add(step.out_port)
    return found


STRAIGHT: Ways = {f"p0a{k}": {f"p1a{k}"} for k in range(3)}


async def _cut(lab: Lab, link: Link) -> None:
    """Cut a link between switches and wait until both ends have lost their session."""
    cut(lab, link)
    ends = (link.lower, link.upper)
    await lab.wait_for(lambda: not any(end.name in lab.bgp[end.node].established for end in ends), 10)


def _core_link(lab: Lab, agg: str, core: str = "c0.0") -> Link:
    return lab.fabric.link(f"{agg}-{core}")


async def test_what_comes_in_by_one_port_of_a_core_leaves_by_one_port() -> None:
    async with running(_three_aggs()) as lab:
        assert _ways(lab) == STRAIGHT
        assert _ways(lab, "c0.1") == {f"p0a{k}": {f"p1a{(k + 1) % 3}"} for k in range(3)}
        rows = report(lab, "ecmp")
        assert isinstance(rows, list)
        prefix = f"{lab.fabric.nic(TARGET).ip}/32"
        [row] = [r for r in rows if isinstance(r, dict) and (r["node"], r["prefix"]) == ("c0.1", prefix)]
        assert row["next_hops"] == ["p1a0", "p1a1", "p1a2"]
        assert row["preset"] == ["p0a0>p1a1", "p0a1>p1a2", "p0a2>p1a0"]


async def test_a_core_that_hashes_uses_every_port() -> None:
    async with running(_three_aggs(core_ports="hash")) as lab:
        assert _ways(lab) == {f"p0a{k}": {"p1a0", "p1a1", "p1a2"} for k in range(3)}
        assert not any("in table" in key for key in state(lab))


async def test_packets_take_the_traced_preset_ports() -> None:
    async with running(PRESETS["tiny-pods"].spec) as lab:
        spaces = lab.wiring.namespaces
        taps = Taps(spaces)
        source, target = lab.fabric.nic(SOURCE), lab.fabric.nic(TARGET)
        switches = [node.name for node in lab.fabric.switches]
        crossed = set()
        for sport in SPORTS[:60]:
            path = lab.path(Flow(SOURCE, TARGET, sport))
            send(spaces[source.host], source.ip, sport, target.ip)
            await taps.arrival(target.host)
            assert taps.seen_by(switches) == {(step.node, step.in_port) for step in path.steps[1:-1]}
            crossed |= {step.node for step in path.steps if lab.fabric.node(step.node).role is Role.CORE}
        assert crossed == {"c0.0", "c0.1", "c1.0", "c1.1"}


async def test_the_kernel_passes_over_a_preset_port_without_carrier_all_by_itself() -> None:
    async with running(_three_aggs()) as lab:
        link = _core_link(lab, "p1.a0.0")
        lab.bgp["c0.0"].freeze()  # nobody is there to change a route
        watcher = lab.watcher
        cut(lab, link)
        await lab.wait_for(lambda: not watcher.carrier("c0.0", link.upper.ifindex), 10)
        assert _ways(lab) == STRAIGHT | {"p0a0": {"p1a1", "p1a2"}}
        lab.bgp["c0.0"].thaw()


async def test_a_cut_preset_link_leaves_its_flows_to_the_hash_until_it_is_mended() -> None:
    async with running(_three_aggs()) as lab:
        before = state(lab)
        assert any("in table 1000" in key for key in before)
        link = _core_link(lab, "p1.a0.0")
        watcher = lab.watcher
        await _cut(lab, link)
        await lab.wait_for(lambda: link.upper.ifindex not in watcher.presets("c0.0").values(), 10)
        assert _ways(lab) == STRAIGHT | {"p0a0": {"p1a1", "p1a2"}}
        mend(lab, link)
        await lab.converged(30)
        assert _ways(lab) == STRAIGHT
        assert differences(before, state(lab)) == ()


async def test_an_agg_that_lost_its_tor_takes_back_what_was_preset_to_it() -> None:
    async with running(_three_aggs()) as lab:
        before = state(lab)
        tor_link = lab.fabric.link("p1.s0.t0.0-p1.a0.0")
        await _cut(lab, tor_link)
        await lab.wait_for(lambda: _taken_back(lab, "p1.a0.0"), 10)
        assert _ways(lab) == STRAIGHT | {"p0a0": {"p1a1", "p1a2"}}
        mend(lab, tor_link)
        await lab.converged(30)
        assert differences(before, state(lab)) == ()


async def test_a_subnet_route_at_a_preset_port_does_not_hide_the_host_route_elsewhere() -> None:
    """Below one plane: Agg 0 still hears the subnet from the ToR that lost the host, not the host from the other."""
    async with running(
        FabricSpec.model_validate(PRESETS["tiny-pods"].spec.model_dump() | {"architecture": "dual-tor-clos"})
    ) as lab:
        target = lab.fabric.nic(TARGET)
        cut(lab, target.links[1])
        await _cut(lab, lab.fabric.link("p1.s0.t0.0-p1.a0.0"))
        await lab.wait_for(lambda: _taken_back(lab, "p1.a0.0"), 10)
        assert lab.watcher.routes("c0.0")[target.subnet] == 2, "both Aggs offer the subnet"
        assert _ways(lab) == {"p0a0": {"p1a1"}, "p0a1": {"p1a1"}}


def _taken_back(lab: Lab, agg: str) -> bool:
    """Whether no Core has a preset route to the target by this Agg any more."""
    prefix = f"{lab.fabric.nic(TARGET).ip}/32"
    for link in lab.fabric.links_of(agg):
        routes = lab.watcher.presets(link.upper.node) if link.kind is LinkKind.CORE else {}
        if any(oif == link.upper.ifindex and key[1] == prefix for key, oif in routes.items()):
            return False
    return True


async def test_a_core_that_died_comes_back_with_its_preset_ports() -> None:
    async with running(_three_aggs()) as lab:
        before = state(lab)
        watcher = lab.watcher
        lab.breakage.crash(["c0.0"])
        assert watcher.presets("c0.0") == {}
        await lab.wait_for(lambda: not lab.bgp["c0.0"].running, 10)
        aggs = [link.lower for link in lab.fabric.links_of("c0.0")]
        await lab.wait_for(lambda: not any(watcher.carrier(end.node, end.ifindex) for end in aggs), 10)
        assert _ways(lab) == {}, "everything goes by the other Core"
        await lab.breakage.boot(["c0.0"])
        await lab.converged(30)
        assert _ways(lab) == STRAIGHT
        assert differences(before, state(lab)) == ()


async def test_every_core_link_of_the_small_preset_is_used_by_preset_ports() -> None:
    async with running(PRESETS["tiny-pods"].spec) as lab:
        used = {name for src, dst in ((SOURCE, TARGET), (TARGET, SOURCE)) for s in SPORTS
                for name in lab.path(Flow(src, dst, s)).links}  # fmt: skip
        assert {link.name for link in lab.fabric.links if link.kind is LinkKind.CORE} <= used
