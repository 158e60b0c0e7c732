"""An optical core in a lab: the kernel has the links of the schedule after each move, and packets pass by these."""

from __future__ import annotations

from functools import partial

import pytest

from hpn.failover.faults import OpticalCircuits, PlannedFault
from hpn.failover.faults.base import MS
from hpn.failover.faults.moments import moments
from hpn.failover.inject.injector import Injector
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.routing.trace import Flow
from tests.lab.running import has_carrier, ping, running, whole_again

pytestmark = pytest.mark.kernel

SIX = FabricSpec.model_validate(
    {"architecture": "full-mesh", "segments": 6, "dimensions": [6], "hosts": 1, "bgp": {"asn": "per-switch"}}
)


async def test_the_links_of_a_move_are_the_kernels_and_nobody_is_cut_off() -> None:
    async with running(SIX) as lab:
        before = state(lab)
        fault = OpticalCircuits("plane0", circuits=3, dwell_ns=3000 * MS, count=2, dark_ns=500 * MS).on(lab.fabric)
        injector, there = Injector(lab), {link.name for link in fault.links_hit(lab.fabric)}
        assert _carriers(lab, there) == there
        up, due = set(there), moments([PlannedFault("core", fault, 0, None)])
        for moment in due:
            await injector.carry_out(moment, ())
            up ^= {one.edge.part.target for one in moment.due if one.edge.part is not None}
            assert _carriers(lab, there) == up
            await lab.wait_for(partial(_reached_over, lab, frozenset(up)), 10)
        assert up == there, "all links are there again"
        await whole_again(lab, before)


def _carriers(lab: Lab, links: set[str]) -> set[str]:
    return {link for link in links if has_carrier(lab, link)}


def _reached_over(lab: Lab, up: frozenset[str]) -> bool:
    """Return True if every NIC reaches every other by links that are there, and a ping comes back."""
    nics = lab.fabric.nics
    found = [lab.path(Flow(one.name, other.name, 50_000)) for one in nics for other in nics if one is not other]
    meshed = {link.name for link in lab.fabric.links if link.is_routed}
    if any(path.dropped is not None or not {*path.links} & meshed <= up for path in found):
        return False
    return "ttl=" in ping(lab, nics[0].host, nics[-1].ip)
