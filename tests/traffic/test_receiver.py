"""What a receiver says of itself, held against the kernel."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec
from hpn.traffic.flows.framing import data_bytes
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.streams.receiver import Receiver
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.streams.records import RECEIVED
from tests.traffic import nets

RATE_PPS = 1000


def _send(ns: NetNs, packets: int, payload: bytes) -> None:
    with ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((nets.A_IP, 0xC000))
        for _ in range(packets):
            sender.sendto(payload, (nets.B_IP, ROCE_PORT))


@pytest.mark.kernel
@pytest.mark.parametrize("path_mtu", [256, 1024, 4096])
def test_a_buffer_holds_what_arrives_in_the_time_it_is_said_to_have_room_for(tmp_path: Path, path_mtu: int) -> None:
    net = nets.chain()
    flow = FlowSpec(0, "a>b", "a.r0", "b.r0", nets.A_IP, nets.B_IP, 0xC000, 0xC001, RATE_PPS, path_mtu)
    records = RecordFile(tmp_path / "received", RECEIVED)
    receiver = Receiver([flow], {"b.r0": nets.B_IP}, [path_mtu], {"b.r0": net.b}, records, AckPolicy())
    room = receiver.room_ns() * RATE_PPS // 10**9
    payload = bytes(data_bytes(path_mtu))
    _send(net.a, room, payload)
    assert receiver.drops() == 0
    _send(net.a, 2 * room, payload)
    assert receiver.drops() > 0, "that there is no room for three times as much shows that it was a buffer that held it"
    receiver.close()
    records.close()


@pytest.mark.kernel
def test_the_nic_with_the_most_to_receive_decides(tmp_path: Path) -> None:
    net = nets.chain()
    there, back = (
        nets.flows(2, RATE_PPS),
        FlowSpec(7, "b>a", "b.r0", "a.r0", nets.B_IP, nets.A_IP, 0xC010, 0xC011, 5 * RATE_PPS, 4096),
    )
    records = RecordFile(tmp_path / "received", RECEIVED)
    ips = {"a.r0": nets.A_IP, "b.r0": nets.B_IP}

    def room_ns(*flows: FlowSpec) -> int:
        receiver = Receiver(flows, ips, [4096], net.namespaces, records, AckPolicy())
        found = receiver.room_ns()
        receiver.close()
        return found

    assert room_ns(*there, back) == room_ns(back) < room_ns(*there)
    records.close()
