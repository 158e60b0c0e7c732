"""Steering by destination in whole labs: plain UDP that nobody registered, under a cut, a crash, and both planes lost.

               plane 0        plane 1
host 0 ======= ToR 0 -- Agg -- ToR 0 ==x== host 1      32 source ports from host 0, three packets each
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from hpn.testbed.events import EventKind
from hpn.testbed.fabric.model import Nic
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service.inspect import report
from hpn.testbed.lab.state import differences, state
from hpn.testbed.routing.pathcontrol.actions import Steer
from tests.lab.running import Recorder, cut, mend, running, tiny, whole_again

pytestmark = pytest.mark.kernel

SPORTS, TIMES, PORT = range(0xC000, 0xC020), 3, 7007
ALL = len(SPORTS) * TIMES


async def _answered(lab: Lab, source: Nic, target: Nic) -> int:
    """How many of 96 datagrams are answered."""
    with ExitStack() as opened:
        spaces = lab.wiring.namespaces
        echo = opened.enter_context(spaces[target.host].socket(socket.AF_INET, socket.SOCK_DGRAM))
        echo.bind((target.ip, PORT))
        asking = []
        for sport in SPORTS:
            asking.append(opened.enter_context(spaces[source.host].socket(socket.AF_INET, socket.SOCK_DGRAM)))
            asking[-1].bind((source.ip, sport))
        for each in (echo, *asking):
            each.setblocking(False)
        for _ in range(TIMES):
            for each in asking:
                each.sendto(b"?", (target.ip, PORT))
        await asyncio.sleep(0.1)
        for _, address in _heard(echo):
            echo.sendto(b"!", address)
        await asyncio.sleep(0.1)
        return sum(len(_heard(each)) for each in asking)


def _heard(from_: socket.socket) -> list[tuple[bytes, tuple[str, int]]]:
    found = []
    try:
        while True:
            found.append(from_.recvfrom(64))
    except BlockingIOError:
        return found


def _steered(lab: Lab, source: Nic) -> dict[tuple[str, str], str]:
    steering = lab.nics[source.name].steering
    assert steering is not None
    return dict(steering.standing())


def _known(events: Recorder, source: Nic, target: Nic) -> set[str]:
    """The ports whose ToRs have told the source of the target; nobody else did."""
    heard = events.after(0, EventKind.PATH, source.host)
    return {str(e.detail["port"]) for e in heard if e.subject == target.ip and e.what == "reachable"} & {
        link.lower.name for link in source.links
    }


async def _until(lab: Lab, condition: Callable[[], bool]) -> None:
    await lab.wait_for(condition, 15)


@pytest.mark.parametrize("policy", ["steer-destinations", "both"])
async def test_plain_udp_to_a_nic_without_its_plane_0_link_is_answered_from_every_source_port(policy: str) -> None:
    events = Recorder()
    async with running(tiny(path_control={"policy": policy}), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        ports = [link.lower.name for link in source.links]
        before, steering = state(lab), lab.nics[source.name].steering
        assert steering is not None
        assert await _answered(lab, source, target) == ALL
        await _until(lab, lambda: _known(events, source, target) == set(ports))
        cut(lab, target.links[0])
        await _until(lab, lambda: bool(_steered(lab, source)))
        assert _steered(lab, source) == {(ports[0], target.ip): ports[1]}
        assert await _answered(lab, source, target) == ALL
        row = {"nic": source.name, "destination": target.ip, "destination_nic": target.name}
        rows = report(lab, "steering")
        assert isinstance(rows, list)
        assert row | {"from_port": ports[0], "to_port": ports[1]} in rows
        assert {lab.nics[source.name].port_for(target.ip, sport, PORT) for sport in SPORTS} == {1}
        steering.apply([Steer(target.ip, ports[0], None)])
        without = await _answered(lab, source, target)
        assert 0 < without < ALL, "what it is good for"
        steering.apply([Steer(target.ip, ports[0], ports[1])])
        assert any("steering of p0.s0.h0.r0: was nothing" in line for line in differences(before, state(lab)))
        assert (
            f"steering of p0.s0.h0.r0: is {target.ip} from {ports[0]} to {ports[1]}, should be nothing"
            in deviations(lab)
        )
        mend(lab, target.links[0])
        await whole_again(lab, before)
        assert deviations(lab) == ()
        assert await _answered(lab, source, target) == ALL
        what = [e.what for e in events.after(0, EventKind.PATH, source.host) if e.subject == target.ip]
        assert what[-2:] == ["reachable", "released"]


@pytest.mark.parametrize("policy", ["steer-destinations", "both"])
async def test_a_lab_is_not_converged_while_path_control_still_steers_what_every_switch_can_reach(policy: str) -> None:
    events = Recorder()
    spec = tiny(path_control={"policy": policy, "hold_ms": 3000})
    async with running(spec, events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        ports = [link.lower.name for link in source.links]
        await _until(lab, lambda: _known(events, source, target) == set(ports))
        for flap in range(2):
            cut(lab, target.links[0])
            await _until(lab, lambda: bool(_steered(lab, source)))
            mend(lab, target.links[0])
            if not flap:
                await _until(lab, lambda: not _steered(lab, source))
        held = "p0.s0.h0.r0: path control steers"
        await _until(lab, lambda: any(e.what == "held" for e in events.after(0, EventKind.PATH, source.host)))
        assert not lab.stands
        assert any(gap.kind == "path" and gap.text.startswith(held) for gap in lab.missing())
        await lab.converged(1)  # however short: the hold has its time
        assert deviations(lab) == ()
        assert all(_steered(lab, nic) == {} for nic in lab.fabric.nics)


async def test_steering_follows_a_tor_that_dies_and_gives_way_when_both_planes_lost_a_nic() -> None:
    events = Recorder()
    async with running(tiny(path_control={"policy": "steer-destinations"}), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        ports = [link.lower.name for link in source.links]
        before = state(lab)
        await _until(
            lab, lambda: all(len(_known(events, source, nic)) == 2 for nic in lab.fabric.nics if nic != source)
        )
        tor = target.links[0].upper.node
        lab.breakage.crash([tor])
        behind = {nic.ip for nic in lab.fabric.nics if any(link.upper.node == tor for link in nic.links)}
        await _until(lab, lambda: set(_steered(lab, source)) == {(ports[0], ip) for ip in behind})
        assert await _answered(lab, source, target) == ALL
        cut(lab, target.links[1])
        await _until(lab, lambda: (ports[0], target.ip) not in _steered(lab, source))
        assert set(_steered(lab, source)) == {(ports[0], ip) for ip in behind - {target.ip}}
        mend(lab, target.links[1])
        await _until(lab, lambda: _steered(lab, source).get((ports[0], target.ip)) == ports[1])
        assert await _answered(lab, source, target) == ALL
        cut(lab, source.links[1])  # the member that it is steered to
        await _until(lab, lambda: not _steered(lab, source))
        mend(lab, source.links[1])
        await lab.breakage.boot([tor])
        await lab.converged(40)
        await whole_again(lab, before)
        assert await _answered(lab, source, target) == ALL
