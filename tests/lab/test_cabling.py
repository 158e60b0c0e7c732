r"""Every port learns by LLDP who is at the other end, and two cables whose far ends are exchanged are found.

h0 port 0 --.  .-- t0 port of h0
             \/
h1 port 0 --'  '-- t0 port of h1
"""

from __future__ import annotations

import random

import pytest

from hpn.failover.faults import CablesSwapped, settled
from hpn.failover.inject.lab_actions import LabActions
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.cabling import FarEnd, far_ends
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from tests.lab.running import Recorder, ping, running, tiny, whole_again

pytestmark = pytest.mark.kernel

HERE, BESIDE, OTHER_PLANE = "p0.s0.h0.r0.0", "p0.s0.h1.r0.0", "p0.s0.h0.r0.1"


async def _wrong(lab: Lab) -> dict[str, FarEnd]:
    return {end.here: end for end in await far_ends(lab) if end.wrong}


def _exchanged(fabric: Fabric, one: str, other: str) -> dict[str, tuple[str, ...]]:
    """Which port each of the four hears, if the upper ends of two links are exchanged."""
    here, there = fabric.link(one), fabric.link(other)
    return {
        here.lower.label: (there.upper.label,),
        here.upper.label: (there.lower.label,),
        there.lower.label: (here.upper.label,),
        there.upper.label: (here.lower.label,),
    }


@pytest.mark.parametrize("lag", ["auto", "nft"])
async def test_every_port_of_a_healthy_lab_hears_the_one_that_the_fabric_has_there(lag: str) -> None:
    async with running(tiny(lag=lag)) as lab:
        found = await far_ends(lab)
        assert len(found) == 2 * len(lab.fabric.links)
        assert [end for end in found if not end.fits or end.wrong] == []


async def test_a_port_without_carrier_hears_nobody_which_is_no_wrong_cable() -> None:
    async with running(tiny()) as lab:
        link = lab.fabric.link(HERE)
        lab.breakage.ports_down([(link, link.lower.node)])
        await lab.wait_for(lambda: not lab.link_up(HERE), 10)
        silent = [end for end in await far_ends(lab) if not end.fits]
        assert [(end.here, end.heard, end.wrong) for end in silent] == [
            (link.lower.label, (), False),
            (link.upper.label, (), False),
        ]


async def test_a_lag_refuses_the_cable_of_another_host_and_both_ends_of_both_cables_are_named() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        action = settled(CablesSwapped(HERE, BESIDE), lab.fabric).act(LabActions.of(lab))
        action.do()
        await lab.wait_for(lambda: not lab.link_up(HERE), 10)
        await lab.wait_for(lambda: lab.link_up(HERE) and lab.link_up(BESIDE), 10)
        assert {label: end.heard for label, end in (await _wrong(lab)).items()} == _exchanged(lab.fabric, HERE, BESIDE)
        assert [lab.nics[link.removesuffix(".0")].active for link in (HERE, BESIDE)] == [(1,), (1,)]
        assert {gap.kind for gap in lab.missing()} == {"lacp", "route"}
        await action.undo()
        await whole_again(lab, before)
        assert await _wrong(lab) == {}


async def test_bgp_refuses_the_cable_of_another_switch() -> None:
    recorder = Recorder()
    async with running(tiny(bgp={"hold_s": 3, "keepalive_s": 1}), recorder) as lab:
        before = state(lab)
        one, other = (link for link in lab.fabric.links_of("p0.s0.t0.0") if link.kind is LinkKind.FABRIC)
        action = CablesSwapped(one.name, other.name).act(LabActions.of(lab))
        action.do()
        await lab.wait_for(lambda: not lab.link_up(one.name), 10)
        await lab.wait_for(lambda: lab.link_up(one.name) and lab.link_up(other.name), 10)
        assert {label: end.heard for label, end in (await _wrong(lab)).items()} == _exchanged(
            lab.fabric, one.name, other.name
        )
        assert not lab.bgp["p0.s0.t0.0"].established
        await action.undo()
        await whole_again(lab, before)


async def test_nothing_but_cabling_tells_of_a_nics_own_cables_in_the_wrong_planes() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        action = CablesSwapped(HERE, OTHER_PLANE).act(LabActions.of(lab))
        action.do()
        await lab.wait_for(lambda: not lab.link_up(HERE), 10)
        await whole_again(lab, before)
        assert "ttl=" in ping(lab, "p0.s0.h0", lab.fabric.nic("p0.s0.h1.r0").ip)
        assert {label: end.heard for label, end in (await _wrong(lab)).items()} == _exchanged(
            lab.fabric, HERE, OTHER_PLANE
        )
        await action.undo()
        await whole_again(lab, before)


def _drawn(seed: int) -> FabricSpec:
    """A small fabric: any architecture, some hosts, rails and Aggs."""
    draw = random.Random(seed)
    presets = [each.spec for name, each in PRESETS.items() if name.startswith("tiny") and each.spec.switch is None]
    spec = draw.choice(presets)
    changes = {"seed": draw.randint(1, 99)} | ({} if spec.architecture == "fat-tree" else {"hosts": draw.randint(2, 4)})
    return FabricSpec.model_validate(spec.model_dump() | changes)


@pytest.mark.parametrize("seed", range(8))
async def test_on_any_fabric_any_two_cables_of_a_kind_are_found_and_put_back(seed: int) -> None:
    fabric = build(_drawn(seed))
    draw = random.Random(seed)
    async with running(fabric) as lab:
        before = state(lab)
        link = draw.choice(fabric.links)
        fault = settled(CablesSwapped(link.name, unplugged_ns=10_000_000), fabric)
        action = fault.act(LabActions.of(lab))
        action.do()
        assert isinstance(fault, CablesSwapped)
        await lab.wait_for(lambda: not lab.link_up(link.name), 10)
        await lab.wait_for(lambda: lab.link_up(link.name) and lab.link_up(fault.other), 10)
        wrong = await _wrong(lab)
        assert {label: end.heard for label, end in wrong.items()} == _exchanged(fabric, link.name, fault.other)
        await action.undo()
        await whole_again(lab, before)
