"""A lab on the Linux bonding driver: it aggregates with our ToRs and does what IEEE 802.1AX asks for when they fail.

Skipped where the kernel has no bonding; ``tests/vm`` runs this file and ``test_lab`` inside a guest that has it.
"""

from __future__ import annotations

import pytest

from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.model import Nic
from hpn.testbed.fabric.spec import SHARED_SYSTEM_ID
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_HOST_ROUTE
from hpn.testbed.lab.kernel_parts import choose
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lag.host_bond import KERNEL
from hpn.testbed.lag.lacpdu import PortState
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Mux, Rx
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from hpn.testbed.routing.trace import Flow
from tests.lab.running import Recorder, cut, mend, running, tiny

pytestmark = pytest.mark.kernel
WAIT_S = 20.0
_TICK_MS = 100


def needs_bonding() -> None:
    if choose("auto") is not KERNEL:
        pytest.skip("this kernel has no bonding driver")


def _driver_text(lab: Lab, nic: Nic) -> str:
    return lab.nics[nic.name].driver_text()


async def _port_becomes(lab: Lab, nic: Nic, rx: Rx, mux: Mux) -> PortStatus:
    """Wait until the driver has port 0 in these states."""

    def found() -> bool:
        status = lab.nics[nic.name].status()[0]
        return (status.rx, status.mux) == (rx, mux)

    await lab.wait_for(found, WAIT_S)
    return lab.nics[nic.name].status()[0]


async def test_both_ports_are_in_one_aggregator_with_the_shared_system_and_two_port_numbers() -> None:
    needs_bonding()
    async with running(tiny()) as lab:
        assert lab.datapath == "kernel"
        nic = lab.fabric.nics[0]
        text = _driver_text(lab, nic)
        assert "Number of ports: 2" in text
        assert f"Partner Mac Address: {SHARED_SYSTEM_ID}" in text
        ports = lab.nics[nic.name].status()
        assert [port.mux for port in ports] == [Mux.COLLECTING_DISTRIBUTING] * 2
        assert {port.partner.system for port in ports} == {SHARED_SYSTEM_ID}
        assert [port.partner.port for port in ports] == [link.upper.port_id for link in nic.links]
        assert {port.actor.system for port in ports} == {nic.mac}
        for port in ports:
            assert PortState.COLLECTING | PortState.DISTRIBUTING in port.partner.state


async def test_carrier_loss_and_repair_take_a_port_out_of_the_aggregate_and_back() -> None:
    needs_bonding()
    events = Recorder()
    async with running(tiny(), events) as lab:
        nic = lab.fabric.nics[0]
        start = now_ns()
        cut(lab, nic.links[0])
        await lab.wait_for(lambda: lab.nics[nic.name].active == (1,), WAIT_S)
        # Nothing is sent through the port from here on; what the driver says of it follows when miimon has looked.
        await lab.wait_for(lambda: lab.nics[nic.name].status()[0].rx is Rx.PORT_DISABLED, WAIT_S)
        await lab.wait_for(lambda: "Number of ports: 1" in _driver_text(lab, nic), WAIT_S)
        told = events.after(start, EventKind.LAG, nic.host)
        assert [event.detail for event in told] == [{"ports": nic.links[1].lower.name}], "the stamp is the driver's"
        mend(lab, nic.links[0])
        await lab.converged(WAIT_S)
        assert lab.nics[nic.name].active == (0, 1)


async def test_a_trace_right_after_a_cut_asks_the_driver_not_what_was_last_heard_of_it() -> None:
    needs_bonding()
    events = Recorder()
    async with running(tiny(), events) as lab:
        nic, other = lab.fabric.nic("p0.s0.h0.r0"), "p0.s1.h0.r0"
        flow = next(f for f in (Flow(nic.name, other, p) for p in range(50000, 50064)) if _first_link(lab, f) == 0)
        start = now_ns()
        cut(lab, nic.links[0])
        assert _first_link(lab, flow) == 1  # nothing has been read of the kernel's news in between
        (told,) = events.after(start, EventKind.LAG, nic.host)
        assert told.detail["ports"] == nic.links[1].lower.name


def _first_link(lab: Lab, flow: Flow) -> int:
    """Index of the port by which a flow leaves its NIC."""
    links = [link.name for link in lab.fabric.nic(flow.src_nic).links]
    return links.index(lab.path(flow).links[0])


async def test_a_tor_that_falls_silent_is_expired_then_defaulted_and_taken_back_when_it_speaks() -> None:
    needs_bonding()
    events = Recorder()
    async with running(tiny(), events) as lab:
        nic = lab.fabric.nics[0]
        start, upper = now_ns(), nic.links[0].upper
        speaker = lab.tors[upper.node].speakers[upper.name]
        speaker.stop()
        await lab.wait_for(lambda: lab.nics[nic.name].active == (1,), WAIT_S)
        told = [event.what for event in events.after(start, EventKind.LACP, nic.host)]
        assert Rx.EXPIRED in told
        (switched,) = events.after(start, EventKind.LAG, nic.host)
        assert 0 < float(switched.detail["late_ms"]) <= _TICK_MS, "the driver's machines decided, at one of their ticks"
        defaulted = await _port_becomes(lab, nic, Rx.DEFAULTED, Mux.DETACHED)
        assert defaulted.partner.system != SHARED_SYSTEM_ID
        assert "Number of ports: 1" in _driver_text(lab, nic)
        speaker.start()
        speaker.carrier(upper.name, True)
        await lab.wait_for(lambda: lab.nics[nic.name].active == (0, 1), WAIT_S)
        assert "Number of ports: 2" in _driver_text(lab, nic)


async def test_a_bond_with_one_port_is_followed_too() -> None:
    needs_bonding()
    async with running(tiny(architecture="single-tor")) as lab:
        assert {nic.active for nic in lab.nics.values()} == {(0,)}


async def test_path_control_is_heard_on_the_member_ports() -> None:
    needs_bonding()
    events = Recorder()
    async with running(tiny(), events) as lab:
        source, target = lab.fabric.nic("p0.s1.h0.r0"), lab.fabric.nic("p0.s0.h0.r0")
        sport = next(s for s in range(50_000, 50_064) if lab.nics[source.name].port_for(target.ip, s, 4791) == 0)
        lab.nics[source.name].connect([Connection(1, target.ip, 4791, sport)])
        start = now_ns()
        cut(lab, target.links[0])
        await lab.wait_for(
            lambda: any(e.what == "moved" for e in events.after(start, EventKind.PATH, source.host)), WAIT_S
        )


async def test_every_tor_has_the_route_of_every_host_that_announced_itself_over_the_bond() -> None:
    needs_bonding()
    async with running(tiny()) as lab:
        for nic in lab.fabric.nics:
            for link in nic.links:
                found = lab.requests(link.upper.node).routes()
                assert f"{nic.ip}/32" in {r.prefix for r in found if r.protocol == PROTO_HOST_ROUTE}
