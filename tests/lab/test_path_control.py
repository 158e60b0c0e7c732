"""Path control in whole labs: frames lost on the wire, a restarted agent, a ToR that takes many NICs' plane away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Nic
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lag.datapath import ETHERTYPE_PATH_CONTROL
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from tests.lab.running import Recorder, cut, running, tiny

pytestmark = pytest.mark.kernel

DEAF = f"""table netdev deaf {{{{
chain in {{{{
type filter hook ingress device "{{port}}" priority -10;
ether type {ETHERTYPE_PATH_CONTROL:#06x} counter drop
}}}}
}}}}
"""
QUEUE_PAIRS = range(0xC000, 0xC010)


def _connect(lab: Lab, source: Nic, targets: Sequence[Nic]) -> dict[int, tuple[str, int]]:
    """Queue pairs of one NIC to each target; connection number to target and plane."""
    made = [
        Connection(sport + 100 * at, target.ip, 4791, sport + 100 * at)
        for at, target in enumerate(targets)
        for sport in QUEUE_PAIRS
    ]
    lab.nics[source.name].connect(made)
    name_of = {target.ip: target.name for target in targets}
    port_for = lab.nics[source.name].port_for
    planes = {c.id: (name_of[c.dst_ip], port_for(c.dst_ip, c.home_sport, c.dport)) for c in made}
    assert {plane for _, plane in planes.values()} == {0, 1}
    return {number: (name, plane) for number, (name, plane) in planes.items() if plane is not None}


def _moved(events: Sequence[Event], host: str) -> dict[int, int]:
    """Connections of a host that were moved, and their source ports."""
    found = [e for e in events if e.kind is EventKind.PATH and e.node == host and e.what == "moved"]
    return {int(e.subject): int(e.detail["sport"]) for e in found}


def _away(events: Sequence[Event], host: str) -> set[int]:
    return {number for number, sport in _moved(events, host).items() if sport != number}


async def _until(condition: Callable[[], bool]) -> None:
    """For what makes no event of the lab."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def _knows(lab: Lab, events: Recorder, host: str, targets: int) -> None:
    """The host has heard of every target from both of its ToRs."""
    await lab.wait_for(lambda: sum(e.what == "reachable" for e in events.after(0, EventKind.PATH, host)) >= targets, 10)


async def test_a_notice_lost_on_the_wire_is_made_good_by_the_next_refresh() -> None:
    events = Recorder()
    async with running(tiny(path_control={"refresh_ms": 300}), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        planes = _connect(lab, source, [target])
        await _knows(lab, events, source.host, 2)
        nft = Nft(lab.wiring.namespaces[source.host])
        nft.run(DEAF.format(port=source.links[0].lower.name))
        tor = lab.tors[source.links[0].upper.node]
        cut(lab, target.links[0])
        asked = source.links[0].upper.name
        await _until(lambda: tor._agent.told(asked, target.ip) is False)
        assert "counter packets 0 " not in nft.run("list table netdev deaf")
        assert _away(events, source.host) == set()
        heard_ns = now_ns()
        nft.run("delete table netdev deaf")
        lost = {number for number, (_, plane) in planes.items() if plane == 0}
        await lab.wait_for(lambda: _away(events, source.host) == lost, 10)
        moved = [e for e in events.after(heard_ns, EventKind.PATH, source.host) if e.what == "moved"]
        assert len(moved) == len(lost)


async def test_a_restarted_agent_is_asked_again_before_the_next_refresh() -> None:
    events = Recorder()
    async with running(tiny(path_control={"refresh_ms": 60_000}), events) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        planes = _connect(lab, source, [target])
        await _knows(lab, events, source.host, 2)
        tor, asked = lab.tors[source.links[0].upper.node], source.links[0].upper.name
        assert tor._agent_io is not None
        tor._agent_io.stop()
        tor._agent = tor._make_agent()  # only this process dies: links, LACP and routes stay
        tor._agent_io._agent = tor._agent
        tor._agent_io.start()
        tor._resync_agent()
        tor._agent_io.perform(tor._agent.hello())
        await _until(lambda: tor._agent.told(asked, target.ip) is True)
        cut(lab, target.links[0])
        lost = {number for number, (_, plane) in planes.items() if plane == 0}
        await lab.wait_for(lambda: _away(events, source.host) == lost, 10)


async def test_a_tor_that_dies_moves_exactly_the_queue_pairs_into_its_plane_to_its_hosts_and_they_come_home() -> None:
    events = Recorder()
    async with running(PRESETS["small"].spec, events) as lab:
        fabric = lab.fabric
        tor = "p0.s1.t0.0"
        behind = [nic for nic in fabric.nics if any(link.upper.node == tor for link in nic.links)]
        near = [nic for nic in fabric.nics if nic.rail == behind[0].rail and nic not in behind]
        assert (len(behind), len(near)) == (4, 4)
        planes = {nic.host: _connect(lab, nic, [*behind, *(n for n in near if n is not nic)]) for nic in near}
        for nic in near:
            await _knows(lab, events, nic.host, 2 * 7)
        names = {nic.name for nic in behind}
        lost = {
            host: {number for number, (name, plane) in found.items() if plane == 0 and name in names}
            for host, found in planes.items()
        }
        lab.breakage.crash([tor])
        await lab.wait_for(lambda: all(_away(events, host) == lost[host] for host in lost), 15)
        crashed = {host: len(_moved(events, host)) for host in lost}
        assert crashed == {host: len(lost[host]) for host in lost}, "nobody else moved, nobody twice"
        await lab.breakage.boot([tor])
        await lab.converged(40)
        await lab.wait_for(lambda: not any(_away(events, host) for host in lost), 15)
        assert all(set(_moved(events, host)) == lost[host] for host in lost)
