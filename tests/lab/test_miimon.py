"""``lacp.miimon_ms`` and ``host_rate`` on either datapath: ours does what the bonding driver does.

``tests/vm`` runs this file in a guest too, whose kernel has the driver.
"""

from __future__ import annotations

import asyncio

import pytest

from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.lab.host_nic import HostNic
from hpn.testbed.lab.kernel_parts import choose
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lag.host_bond import KERNEL
from hpn.testbed.lag.lacpdu import PortState
from hpn.testbed.lag.states import Rx
from tests.lab.running import Recorder, cut, mend, running, tiny

pytestmark = [pytest.mark.kernel, pytest.mark.parametrize("lag", ["nft", "kernel"])]
MIIMON_MS = 2000
MS = 10**6
LOOK_NS = MIIMON_MS * MS
SLACK_NS = 700 * MS  # a tick of the driver's machines, and a busy machine


def needs(lag: str) -> None:
    if lag == KERNEL.name and choose("auto") is not KERNEL:
        pytest.skip("this kernel has no bonding driver")


def disabled(events: Recorder, since_ns: int, host: str) -> list[int]:
    """When LACP of a host found a port without carrier."""
    return [e.at_ns for e in events.after(since_ns, EventKind.LACP, host) if e.what == Rx.PORT_DISABLED.value]


async def until_ns(at_ns: int) -> None:
    await asyncio.sleep(max(at_ns - now_ns(), 0) / 1e9)


async def a_look(lab: Lab, host: NicLook) -> int:
    """Cut and mend a link; return when the host looked at its carrier."""
    start = now_ns()
    cut(lab, host.link)
    await lab.wait_for(lambda: bool(disabled(host.events, start, host.nic.nic.host)), 10)
    mend(lab, host.link)
    await lab.wait_for(lambda: host.nic.active == (0, 1), 20)
    return disabled(host.events, start, host.nic.nic.host)[0]


class NicLook:
    """One NIC of a lab and its first link."""

    def __init__(self, nic: HostNic, events: Recorder) -> None:
        self.nic, self.events = nic, events
        self.link = nic.nic.links[0]


async def test_a_lag_leaves_a_dark_port_at_once_and_lacp_learns_of_it_at_the_next_look(lag: str) -> None:
    needs(lag)
    events = Recorder()
    async with running(tiny(lag=lag, lacp={"miimon_ms": MIIMON_MS}), events) as lab:
        host = NicLook(lab.nics[lab.fabric.nics[0].name], events)
        looked = await a_look(lab, host)
        await until_ns(looked + (-(-(now_ns() - looked) // LOOK_NS)) * LOOK_NS + 300 * MS)  # just after a look

        start = now_ns()
        cut(lab, host.link)
        await lab.wait_for(lambda: host.nic.active == (1,), 10)
        left = events.after(start, EventKind.LAG, host.nic.nic.host)[0].at_ns
        await lab.wait_for(lambda: bool(disabled(events, start, host.nic.nic.host)), 10)
        learned = disabled(events, start, host.nic.nic.host)[0]
        assert left - start < 500 * MS, "it does not wait for a look"
        assert LOOK_NS - 300 * MS - SLACK_NS < learned - start < LOOK_NS - 300 * MS + SLACK_NS


async def test_a_blink_between_two_looks_is_none_to_lacp(lag: str) -> None:
    needs(lag)
    events = Recorder()
    async with running(tiny(lag=lag, lacp={"miimon_ms": MIIMON_MS}), events) as lab:
        host = NicLook(lab.nics[lab.fabric.nics[0].name], events)
        looked = await a_look(lab, host)
        await until_ns(looked + (-(-(now_ns() - looked) // LOOK_NS)) * LOOK_NS + 300 * MS)

        start = now_ns()
        cut(lab, host.link)
        await lab.wait_for(lambda: host.nic.active == (1,), 10)
        mend(lab, host.link)
        await lab.wait_for(lambda: host.nic.active == (0, 1), 10)
        await until_ns(start + LOOK_NS)
        assert not disabled(events, start, host.nic.nic.host)


async def test_each_end_asks_its_own_rate_of_the_other(lag: str) -> None:
    needs(lag)
    async with running(tiny(lag=lag, lacp={"rate": "fast", "host_rate": "slow"})) as lab:
        nic = lab.fabric.nics[0]
        for status in lab.nics[nic.name].status():
            assert PortState.TIMEOUT not in status.actor.state, "the host is content with one in 30 s"
            assert PortState.TIMEOUT in status.partner.state, "the ToR wants one a second"


async def test_the_listing_of_a_host_in_production_is_found_at_ours(lag: str) -> None:
    """NVIDIA/nccl PR 2150: the state of both ends is 61, which leaves LACP_Timeout (0x02) out."""
    needs(lag)
    async with running(tiny(lag=lag, profile="production", lacp={})) as lab:
        for nic in lab.nics.values():
            assert [(int(port.actor.state), int(port.partner.state)) for port in nic.status()] == [(61, 61)] * 2
            text = nic.driver_text()
            for line in ("LACP rate: slow", "MII Polling Interval (ms): 100", "Transmit Hash Policy: layer3+4 (1)"):
                assert line in text or not text
