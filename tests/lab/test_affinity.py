"""Queue affinity in whole labs: a port lost under bound queue pairs, path control by source ports and by the adapter.

               plane 0        plane 1
host 0 ======= ToR 0 -- Agg -- ToR 0 ==x== host 1      a queue pair on each port of host 0
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.events import EventKind
from hpn.testbed.fabric.model import Nic
from hpn.testbed.lab.breaking.draining import rebind, unbind
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from hpn.testbed.routing.trace import Flow
from tests.lab.running import Recorder, cut, mend, running, tiny, whole_again

pytestmark = pytest.mark.kernel

AFFINITY = {"port_selection": "queue-affinity", "rebind_least_ms": 5, "rebind_most_ms": 20}
SPORTS = (0xC000, 0xC001)


def _bound(lab: Lab, source: Nic, target: Nic) -> list[Connection]:
    """A queue pair on each port, which its adapter and path control know."""
    ports = [link.lower.name for link in source.links]
    made = [Connection(at, target.ip, 4791, SPORTS[at], port) for at, port in enumerate(ports)]
    nic = lab.nics[source.name]
    assert nic.adapter is not None
    nic.adapter.bind(made)
    nic.connect(made)
    return made


def _used(lab: Lab, source: Nic, target: Nic) -> list[int | None]:
    return [lab.nics[source.name].port_for(target.ip, sport, 4791) for sport in SPORTS]


async def _until(lab: Lab, condition: Callable[[], bool]) -> None:
    await lab.wait_for(condition, 15)


async def test_an_adapter_moves_the_queue_pairs_of_a_lost_port_in_its_time_and_back_when_the_port_is_back() -> None:
    events = Recorder()
    async with running(tiny(nic=AFFINITY), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        before = state(lab)
        assert deviations(lab) == ()
        made = _bound(lab, source, target)
        assert _used(lab, source, target) == [0, 1]
        begun = len(events)
        cut(lab, source.links[0])
        await _until(lab, lambda: _used(lab, source, target) == [1, 1])
        mend(lab, source.links[0])
        await _until(lab, lambda: _used(lab, source, target) == [0, 1])
        told = [e for e in events[begun:] if (e.kind, e.node) == (EventKind.LAG, source.host)]
        of_nic = [e for e in told if e.subject == source.lag]
        assert [e.what for e in of_nic] == ["active", "remapped", "active", "remapped"]
        for lag, adapter in zip(of_nic[::2], of_nic[1::2], strict=True):
            assert adapter.at_ns - lag.at_ns > 4e6, "the time of nic.rebind_least_ms, less a clock's tick"
        lab.nics[source.name].disconnect([each.id for each in made])
        assert any("queue pairs of p0.s0.h0.r0" in line for line in deviations(lab))
        adapter_of = lab.nics[source.name].adapter
        assert adapter_of is not None
        adapter_of.affinity.release([each.id for each in made])
        await whole_again(lab, before)
        assert deviations(lab) == ()


@pytest.mark.parametrize("policy", ["move-source-ports", "rebind", "off"])
async def test_queue_pairs_leave_a_port_that_goes_on_receiving_and_return_to_it(policy: str) -> None:
    events = Recorder()
    async with running(tiny(nic=AFFINITY, path_control={"policy": policy}), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        before, made, begun = state(lab), _bound(lab, source, target), len(events)
        nic = lab.nics[source.name]
        assert nic.adapter is not None
        rebind(lab, source.links[0])
        await _until(lab, lambda: _used(lab, source, target) == [1, 1])
        assert {*nic.adapter.affinity.standing().values()} == {source.links[1].lower.name}
        assert nic.active == (0, 1), "no protocol took part"
        unbind(lab, source.links[0])
        await _until(lab, lambda: _used(lab, source, target) == [0, 1])
        assert {e.what for e in events[begun:] if e.kind in (EventKind.LAG, EventKind.LACP)} == {"remapped"}
        with pytest.raises(InputError, match="no adapter binds queue pairs to it"):
            rebind(lab, next(link for link in lab.fabric.links if link.is_routed))
        nic.disconnect([each.id for each in made])
        nic.adapter.affinity.release([each.id for each in made])
        await whole_again(lab, before)


@pytest.mark.parametrize(("policy", "used"), [("move-source-ports", [0, 1]), ("rebind", [1, 1])])
async def test_a_remote_nic_that_left_plane_0_is_reached_by_rebinding_alone(policy: str, used: list[int]) -> None:
    events = Recorder()
    async with running(tiny(nic=AFFINITY, path_control={"policy": policy}), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        _bound(lab, source, target)
        cut(lab, target.links[0])
        what = {"move-source-ports": "stuck", "rebind": "rebound"}[policy]
        await _until(lab, lambda: any(e.what == what for e in events.after(0, EventKind.PATH, source.host)))
        assert _used(lab, source, target) == used
        paths = [lab.path(Flow(source.name, target.name, sport)) for sport in SPORTS]
        assert [path.dropped is None for path in paths] == [policy == "rebind", True]
        assert [path.links[0] for path in paths] == [source.links[port].name for port in used]
