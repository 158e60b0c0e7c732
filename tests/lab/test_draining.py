"""A drain takes a link out of use by its protocol with carrier left, and its inverse puts it back."""

from __future__ import annotations

import pytest

from hpn.testbed.lab.breaking.draining import drain, undrain
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.routing.daemons import DAEMONS
from tests.lab.running import running, tiny, whole_again

UPLINK, ACCESS = "p0.s0.t0.0-p0.a0.1", "p0.s0.h0.r0.0"

pytestmark = pytest.mark.kernel


def _sessions(lab: Lab, name: str) -> int:
    link = lab.fabric.link(name)
    return sum(end.name in lab.bgp[end.node].established for end in (link.lower, link.upper))


@pytest.mark.parametrize("daemon", ["bird", "frr"])
async def test_an_uplink_is_drained_by_bgp_and_returns(daemon: str) -> None:
    if missing := DAEMONS[daemon].missing():
        pytest.skip(missing)
    async with running(tiny(rails=1, bgp={"daemon": daemon})) as lab:
        before, link = state(lab), lab.fabric.link(UPLINK)
        drain(lab, link)
        await lab.wait_for(lambda: _sessions(lab, UPLINK) == 0, 20)
        assert lab.link_up(UPLINK)
        undrain(lab, link)
        undrain(lab, link)
        await lab.wait_for(lambda: _sessions(lab, UPLINK) == 2, 60)
        await whole_again(lab, before)


async def test_a_port_is_drained_by_lacp_and_returns() -> None:
    async with running(tiny(rails=1)) as lab:
        before, link = state(lab), lab.fabric.link(ACCESS)
        nic = lab.nics[lab.fabric.nic_of_link(ACCESS).name]
        drain(lab, link)
        await lab.wait_for(lambda: nic.active == (1,), 20)
        assert lab.link_up(ACCESS)
        undrain(lab, link)
        await lab.wait_for(lambda: nic.active == (0, 1), 20)
        await whole_again(lab, before)
