"""A LAG datapath from a folder outside the package, in a lab: the sticky one of examples/plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed import plugins
from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lag.states import Rx
from tests.lab.running import Recorder, cut, mend, running, tiny

pytestmark = pytest.mark.kernel
OWN = Path(__file__).parents[2] / "examples" / "plugins"
WAIT_S = 20.0


async def test_a_sticky_lag_goes_on_through_a_silent_tor_and_leaves_a_port_when_its_carrier_goes() -> None:
    plugins.use([OWN])
    events = Recorder()
    async with running(tiny(lag="sticky"), events) as lab:
        assert lab.datapath == "sticky"
        assert deviations(lab) == ()
        nic, start = lab.fabric.nics[0], now_ns()
        host, upper = lab.nics[nic.name], nic.links[0].upper
        speaker = lab.tors[upper.node].speakers[upper.name]
        speaker.stop()
        await lab.wait_for(lambda: host.status()[0].rx is Rx.EXPIRED, WAIT_S)
        assert host.active == (0, 1)
        speaker.start()
        speaker.carrier(upper.name, True)
        await lab.wait_for(lambda: host.status()[0].rx is Rx.CURRENT, WAIT_S)
        cut(lab, nic.links[0])
        await lab.wait_for(lambda: host.active == (1,), WAIT_S)
        mend(lab, nic.links[0])
        await lab.wait_for(lambda: host.active == (0, 1), WAIT_S)
        told = [event.detail["ports"] for event in events.after(start, EventKind.LAG, nic.host)]
        assert told == ["r0p1", "r0p0,r0p1"]
