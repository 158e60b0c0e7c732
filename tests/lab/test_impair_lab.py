"""Impairments of a whole lab's links: what LACP makes of a loss, and shapers that are changed and set back."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from typing import Any

import pytest

from hpn.failover.faults import OneWayLoss, PlannedFault
from hpn.failover.faults.moments import moments
from hpn.failover.faults.streams import Direction
from hpn.failover.inject.injector import Injector
from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.model import Link, Port
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.lab.breaking.impair import Delay, Drop, Slow, Traffic
from hpn.testbed.lab.breaking.impair_ingress import probe
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.lag.states import Rx
from tests.lab.running import Recorder, running, tiny, whole_again

pytestmark = pytest.mark.kernel

MS = 10**6
EXPERIMENTAL = 0x88B6  # IEEE 802 local experimental 2: nobody else's
COUNT, BATCH = 1000, 100


async def test_lacp_loss_starves_the_speaker_of_either_end_and_data_goes_on() -> None:
    events = Recorder()
    async with running(tiny(segments=1), events) as lab:
        if (problem := probe(_space(lab, "p0.s0.h0"))) is not None:
            pytest.skip(f"no nftables at a port's ingress here: {problem}")
        nic, impairments = lab.fabric.nics[0], lab.impairments
        link = nic.links[0]
        before, start = state(lab), now_ns()
        impairments.on_arrival("mute", link.upper, Drop(Traffic.LACP))
        await lab.wait_for(lambda: lab.tors[link.upper.node].status()[link.upper.name].rx is Rx.EXPIRED, 10)
        assert lab.nics[nic.name].status()[0].rx is Rx.CURRENT, "the host hears the ToR"
        impairments.on_arrival("mute", link.lower, Drop(Traffic.LACP))
        await lab.wait_for(lambda: lab.nics[nic.name].active == (1,), 10)
        assert lab.link_up(link.name)
        assert not [e for e in events.after(start, EventKind.LINK) if "carrier" in e.what]
        await impairments.lift("mute")
        await whole_again(lab, before)


@pytest.mark.parametrize("direction", Direction)
async def test_a_share_is_lost_in_one_direction_of_a_link_and_nothing_in_the_other(direction: Direction) -> None:
    events = Recorder()
    async with running(tiny(segments=1), events) as lab:
        if (problem := probe(_space(lab, "p0.s0.h0"))) is not None:
            pytest.skip(f"no nftables at a port's ingress here: {problem}")
        nic, before = lab.fabric.nics[0], state(lab)
        link, other = nic.links
        lab.breakage.ports_down([(other, other.upper.node)])  # so that the LAG has one port to choose from
        await lab.wait_for(lambda: lab.nics[nic.name].active == (0,), 10)
        host, tor, start = (link.lower.node, nic.ip), (link.upper.node, nic.gateway), now_ns()
        injector = Injector(lab)
        begin, end = moments([PlannedFault("dirty", OneWayLoss(link.name, direction, 0.25), 0, MS)])
        await injector.carry_out(begin, ())
        up, down = await _arrived(lab, host, tor), await _arrived(lab, tor, host)
        lossy, clean = (up, down) if direction is Direction.UP else (down, up)
        assert clean == COUNT
        assert 750 - 140 < lossy < 750 + 140  # ten standard deviations
        assert not events.after(start, EventKind.LAG), "nobody notices"
        await injector.carry_out(end, ())
        assert await _arrived(lab, host, tor) == await _arrived(lab, tor, host) == COUNT
        lab.breakage.ports_up([(other, other.upper.node)])
        await whole_again(lab, before)


async def _arrived(lab: Lab, sender: tuple[str, str], receiver: tuple[str, str]) -> int:
    """How many of ``COUNT`` datagrams arrive from one node and address at another; a batch fits any buffer.

    A path keeps the order of a flow: when a batch's marker arrives, the batch has arrived or is lost.
    """
    (source, from_ip), (target, to_ip) = sender, receiver
    with (
        _space(lab, target).socket(socket.AF_INET, socket.SOCK_DGRAM) as inlet,
        _space(lab, source).socket(socket.AF_INET, socket.SOCK_DGRAM) as outlet,
    ):
        inlet.setblocking(False)
        inlet.bind((to_ip, 0))
        outlet.bind((from_ip, 0))
        outlet.connect(inlet.getsockname())
        found = 0
        for number in range(COUNT // BATCH):
            for _ in range(BATCH):
                outlet.send(b"datagram")
            found += await asyncio.wait_for(_before(b"marker %d" % number, inlet, outlet), 20)
    return found


async def _before(marker: bytes, inlet: socket.socket, outlet: socket.socket) -> int:
    """How many datagrams arrive before a marker, which is sent again until one is through.

    Nothing cancels the receiver: what it has just taken from the socket would be lost.
    """

    async def count() -> int:
        found, loop = 0, asyncio.get_running_loop()
        while (datagram := await loop.sock_recv(inlet, 64)) != marker:
            found += datagram == b"datagram"
        return found

    counting = asyncio.create_task(count())
    while not counting.done():
        outlet.send(marker)
        await asyncio.wait([counting], timeout=0.2)
    return counting.result()


def _space(lab: Lab, node: str) -> NetNs:
    return lab.wiring.namespaces[node]


def _queues(port: Port) -> list[dict[str, Any]]:
    """Every queue of a port as tc shows it, from the root on."""
    command = ["ip", "netns", "exec", port.node, "tc", "-j", "qdisc", "show", "dev", port.name]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    return list(json.loads(shown))


def _without_handles(queues: list[dict[str, Any]]) -> list[str]:
    """As the kernel may give another handle to a queue that is made again, and so another place in its list."""
    return sorted(str({key: value for key, value in queue.items() if key != "handle"}) for queue in queues)


async def test_a_slower_link_is_set_back_to_the_very_same_shaper() -> None:
    async with running(tiny(segments=1), converge=False) as lab:
        link, impairments = lab.fabric.links[0], lab.impairments
        before = _queues(link.lower)
        assert sorted(queue["kind"] for queue in before) == ["bfifo", "htb", "tbf"]
        impairments.on_departure("lanes", link, link.lower, Slow(0.25))
        assert rate_of(link.lower) == link.rate_bps // 4
        impairments.on_departure("pcie", link, link.lower, Slow(0.5))
        assert rate_of(link.lower) == link.rate_bps // 8
        await impairments.lift("lanes")
        assert rate_of(link.lower) == link.rate_bps // 2
        await impairments.lift("pcie")
        assert _queues(link.lower) == before
        assert rate_of(link.upper) == link.rate_bps


def rate_of(port: Port) -> int:
    """Bits per second of a port's token bucket."""
    return int(_queues(port)[0]["options"]["rate"]) * 8


@pytest.mark.usefixtures("netem")
async def test_delays_of_one_port_add_up_and_are_set_back() -> None:
    async with running(tiny(segments=1), converge=False) as lab:
        link, impairments = lab.fabric.nics[0].links[0], lab.impairments
        before = _queues(link.lower)
        impairments.on_departure("detour", link, link.lower, Delay(300 * MS))
        assert await _flight_ns(lab, link) >= 300 * MS
        impairments.on_departure("retimer", link, link.lower, Delay(100 * MS))
        assert await _flight_ns(lab, link) >= 400 * MS
        await impairments.lift("detour")
        assert 100 * MS <= await _flight_ns(lab, link) < 300 * MS
        await impairments.lift("retimer")
        assert await _flight_ns(lab, link) < 100 * MS
        assert _without_handles(_queues(link.lower)) == _without_handles(before)


async def _flight_ns(lab: Lab, link: Link) -> int:
    """How long a frame takes up the link."""
    arrived: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    lower, upper = link.lower, link.upper

    def hear(_payload: bytes, _source: str) -> None:
        arrived.set_result(now_ns())

    inlet = PacketSocket(_space(lab, upper.node), upper.name, EXPERIMENTAL, on_frame=hear)
    outlet = PacketSocket(_space(lab, lower.node), lower.name, EXPERIMENTAL)
    sent = now_ns()
    outlet.send(b"hello", upper.mac)
    async with asyncio.timeout(10):
        took = await arrived - sent
    inlet.close()
    outlet.close()
    return took
