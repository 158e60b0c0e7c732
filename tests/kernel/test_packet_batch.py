"""Many frames at a time over two cables between two namespaces.

a:left ---- b:left
a:right --- b:right
"""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass

import pytest

from hpn.testbed.kernel import ns as namespaces
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet_batch import Frame, PacketBatch
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from tests.traffic.nets import until_running

pytestmark = pytest.mark.kernel
SLOW, GROUP = 0x8809, "01:80:c2:00:00:02"


@dataclass
class Pair:
    """Both ends listen on both cables; interfaces 11 and 12 in ``a``, 21 and 22 in ``b``."""

    spaces: tuple[NetNs, NetNs]
    a: PacketBatch
    b: PacketBatch

    async def heard(self, count: int) -> list[tuple[int, bytes]]:
        """So many frames that arrived in ``b``."""
        loop, found = asyncio.get_running_loop(), list[tuple[int, bytes]]()
        came = asyncio.Event()
        loop.add_reader(self.b.socket, came.set)
        async with asyncio.timeout(10):
            while len(found) < count:
                await came.wait()
                came.clear()
                found += self.b.receive()
        loop.remove_reader(self.b.socket)
        return found


def _pair() -> Pair:
    """To be called in a test's body: a fixture would run outside of its sandbox."""
    home, a, b = namespaces.current("home"), namespaces.create("a"), namespaces.create("b")
    link = Netlink(home)
    for at, name in enumerate(("left", "right"), 1):
        near, far = f"02:00:00:00:00:1{at}", f"02:00:00:00:00:2{at}"
        link.run([rtnl.add_veth(name, 10 + at, a, name, 20 + at, b, mtu=1500, mac=near, peer_mac=far)])
    ends = []
    for space, first in ((a, 10), (b, 20)):
        Netlink(space).run([rtnl.set_link(first + at, up=True) for at in (1, 2)])
        end = PacketBatch(space, SLOW, GROUP)
        for at in (1, 2):
            end.listen(first + at)
        ends.append(end)
    until_running(a, b)
    return Pair((a, b), *ends)


def _laid_out(frames: list[tuple[int, bytes]]) -> list[Frame]:
    return [Frame(ifindex, SLOW, GROUP, payload) for ifindex, payload in frames]


async def test_a_frame_can_be_sent_again_and_keeps_what_it_needs() -> None:
    pair = _pair()
    frames = _laid_out([(11, b"%03d" % number + bytes(107)) for number in range(3)])
    gc.collect()
    for _ in range(2):
        pair.a.send(frames)
    assert await pair.heard(6) == [(21, b"%03d" % number + bytes(107)) for number in (0, 1, 2, 0, 1, 2)]


async def test_frames_beyond_one_call_arrive_in_order_each_by_its_interface() -> None:
    pair = _pair()
    frames = [(11 + number % 2, b"%04d" % number + bytes(106)) for number in range(150)]
    pair.a.send(_laid_out(frames))
    assert await pair.heard(150) == [(ifindex + 10, payload) for ifindex, payload in frames]
    assert pair.b.receive() == []
    assert pair.a.receive() == [], "what it sent itself"


async def test_a_frame_that_cannot_leave_keeps_no_other_back() -> None:
    pair = _pair()
    Netlink(pair.spaces[0]).run([rtnl.set_link(11, up=False)])
    pair.a.receive()
    sent = [(12, b"one" + bytes(107)), (11, b"lost" + bytes(106)), (99, b"nowhere" + bytes(103)), (12, bytes(110))]
    pair.a.send(_laid_out(sent))
    assert await pair.heard(2) == [(22, sent[0][1]), (22, sent[3][1])]
