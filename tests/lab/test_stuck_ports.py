"""Faults of a lab whose switches have a buffer: each does its work, and leaves the buffer as it was.

Where the kernel has no discipline ``mmu`` they skip; tests/vm/test_uml_pfc.py runs them in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Port
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters
from hpn.testbed.lab.breaking.impair import Slow
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from tests.lab.running import cut, mend, running, tiny, whole_again

pytestmark = pytest.mark.kernel
PORT, TOR = "p0.s0.h0.r0.0", "p0.s0.t0.0"
RDMA, OTHER = 3, 4


@asynccontextmanager
async def lossless() -> AsyncIterator[Lab]:
    try:
        async with running(tiny(segments=1, switch={})) as lab:
            yield lab
    except MachineError as error:
        pytest.skip(str(error))


def counters(lab: Lab, port: Port, priority: int = RDMA) -> ClassCounters:
    return lab.requests(port.node).queues().classes[port.ifindex][priority]


async def paused(lab: Lab, port: Port, priority: int = RDMA, *, yes: bool = True) -> None:
    """Wait until the neighbour of that port has stopped it, or no longer does; no event tells."""
    async with asyncio.timeout(20):
        while bool(counters(lab, port, priority).paused) is not yes:
            await asyncio.sleep(0.01)


async def test_a_stuck_port_stops_its_tor_until_its_last_owner_lets_go_and_the_lab_tells() -> None:
    async with lossless() as lab:
        link, before = lab.fabric.link(PORT), state(lab)
        lab.impairments.stick("one", link, RDMA)
        lab.impairments.stick("two", link, RDMA)
        lab.impairments.stick("two", lab.fabric.link("p0.s0.h1.r0.0"), OTHER)
        await paused(lab, link.upper)
        await paused(lab, lab.fabric.link("p0.s0.h1.r0.0").upper, OTHER)
        await lab.impairments.lift("one")
        assert [line for line in deviations(lab) if f"rate of {link.lower.label}: is" in line and "stuck" in line]
        assert counters(lab, link.lower).tx_xon == 0, "another owner holds it"
        await lab.impairments.lift("two")
        await paused(lab, link.upper, yes=False)
        assert counters(lab, link.lower).tx_xon == 1
        assert not deviations(lab)
        await whole_again(lab, before)


async def test_a_lower_rate_keeps_the_buffer_and_its_counters() -> None:
    async with lossless() as lab:
        link = lab.fabric.link(PORT)
        lab.impairments.stick("storm", link, RDMA)
        await paused(lab, link.upper)
        told = counters(lab, link.lower).tx_xoff
        for port in (link.lower, link.upper):
            lab.impairments.on_departure("slow", link, port, Slow(0.25))
        assert counters(lab, link.lower).tx_xoff >= told > 0
        assert counters(lab, link.upper).paused
        await lab.impairments.lift("slow")
        await lab.impairments.lift("storm")
        await paused(lab, link.upper, yes=False)
        assert not deviations(lab)


async def _refreshed(lab: Lab, port: Port, seconds: float) -> int:
    """XOFF that a port sends in a time, which is what is measured."""
    before = counters(lab, port).tx_xoff
    await asyncio.sleep(seconds)
    return counters(lab, port).tx_xoff - before


async def test_quanta_are_those_of_the_rate_that_the_port_has() -> None:
    """XOFF is repeated after 32,767 quanta of 512 bits: 83.9 ms at 200 Mbit/s, 335.5 ms at a quarter of that."""
    async with lossless() as lab:
        link = lab.fabric.link(PORT)
        lab.impairments.stick("storm", link, RDMA)
        await paused(lab, link.upper)
        assert await _refreshed(lab, link.lower, 1.0) in (11, 12)
        for port in (link.lower, link.upper):
            lab.impairments.on_departure("slow", link, port, Slow(0.25))
        await asyncio.sleep(0.1)  # the last of the old ones
        assert await _refreshed(lab, link.lower, 1.0) in (2, 3)
        assert counters(lab, link.upper).paused, "the neighbour counts in the same quanta"
        await lab.impairments.lift("slow")
        await asyncio.sleep(0.4)
        assert await _refreshed(lab, link.lower, 1.0) in (11, 12)
        await lab.impairments.lift("storm")
        await paused(lab, link.upper, yes=False)
        assert not deviations(lab)


async def test_a_storm_outlives_its_link_and_its_tor_and_ends_with_its_repair() -> None:
    async with lossless() as lab:
        link, before = lab.fabric.link(PORT), state(lab)
        lab.impairments.stick("storm", link, RDMA)
        cut(lab, link)
        await paused(lab, link.upper, yes=False)
        mend(lab, link)
        await paused(lab, link.upper)
        lab.breakage.crash([TOR])
        await lab.wait_for(lambda: not lab.link_up(PORT), 5)
        await lab.breakage.boot([TOR])
        await lab.converged(60)
        await paused(lab, link.upper)
        await lab.impairments.lift("storm")
        await paused(lab, link.upper, yes=False)
        await whole_again(lab, before)
        assert not deviations(lab)
