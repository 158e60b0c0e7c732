"""Packet sockets on an interface that is always there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.kernel import ns as namespaces
from hpn.testbed.kernel.packets.packet import PacketSocket, close_all

pytestmark = pytest.mark.kernel


async def test_a_process_that_is_about_to_end_leaves_no_packet_socket_open() -> None:
    made = [namespaces.create(name) for name in ("a", "b")]
    sockets = [  # kept
        PacketSocket(space, "lo", ethertype, on_frame=listener)
        for space in made
        for ethertype, listener in ((0x8809, None), (0x0806, lambda _frame, _source: None))
    ]
    assert [_packet_sockets(space) for space in made] == [2, 2]
    close_all()
    assert [_packet_sockets(space) for space in made] == [0, 0]
    assert not sockets[0].send(b"\0" * 60, "ff:ff:ff:ff:ff:ff")


def _packet_sockets(space: namespaces.NetNs) -> int:
    with space.entered():
        return len(Path("/proc/thread-self/net/packet").read_text().splitlines()) - 1
