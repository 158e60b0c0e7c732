"""Impairments of what arrives at a port: what gets through, and that nothing is left when they are lifted.

a e0 ======= w0 b          two namespaces and a veth; a sends, b counts
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hpn.testbed.events import now_ns
from hpn.testbed.fabric.model import Port
from hpn.testbed.kernel.nftables.nft import Nft, NftError
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.lab.breaking.impair import Corrupt, Drop, DropBucket, Traffic
from hpn.testbed.lab.breaking.impair_ingress import LAST_BYTE, IngressChains, probe
from hpn.testbed.lag.jhash import nft_jhash
from hpn.testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.framing import BTH_BYTES
from hpn.traffic.streams import wire
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.streams.receiver import Receiver
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.streams.records import RECEIVED
from tests.traffic.nets import A_IP, B_IF, B_IP, Net, chain

pytestmark = pytest.mark.kernel

MTU, SPORT = 1024, 0xC123
COUNT, BATCH = 200, 100  # a batch fits the smallest receive buffer
QUIET_S = 0.1
PAYLOAD = b"x" * 64


def needs_ingress(space: NetNs) -> None:
    if (problem := probe(space)) is not None:
        pytest.skip(f"no nftables at a port's ingress here: {problem}")


@dataclass
class Pair:
    """What b's port gets of what a sends to it."""

    net: Net
    chains: IngressChains
    port: Port

    def arrived(self, *, dport: int = 4791, count: int = COUNT) -> int:
        """How many of ``count`` datagrams come out of b's socket as they were sent."""
        found = 0
        with (
            self.net.b.socket(socket.AF_INET, socket.SOCK_DGRAM) as inlet,
            self.net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            inlet.settimeout(QUIET_S)
            inlet.bind((B_IP, dport))
            sender.bind((A_IP, SPORT))
            for _ in range(count // BATCH):
                for _ in range(BATCH):
                    sender.sendto(PAYLOAD, (B_IP, dport))
                found += _drained(inlet)
        return found


def _drained(inlet: socket.socket) -> int:
    """What comes out until nothing has for a while."""
    found = 0
    while True:
        try:
            found += inlet.recv(2048) == PAYLOAD
        except TimeoutError:
            return found


def _pair() -> Pair:
    net = chain()
    needs_ingress(net.b)
    return Pair(net, IngressChains(net.b), Port("b", "w0", B_IF, ""))


def _rules(space: NetNs) -> str:
    nft = Nft(space)
    try:
        return nft.run("list ruleset")
    finally:
        nft.close()


def test_what_is_dropped_at_ingress_does_not_arrive_and_the_sender_is_not_told() -> None:
    pair = _pair()
    assert pair.arrived() == COUNT
    pair.chains.put("hole", pair.port, Drop())
    assert pair.arrived() == 0, "every send call returned as if all were well"
    pair.chains.lift("hole")
    assert pair.arrived() == COUNT
    assert _rules(pair.net.b) == "", "the table goes with the last impairment"


def test_a_share_is_dropped_packet_by_packet() -> None:
    pair = _pair()
    pair.chains.put("dirty", pair.port, Drop(share=0.25))
    arrived = pair.arrived(count=1000)
    assert 750 - 140 < arrived < 750 + 140  # ten standard deviations


def test_a_bucket_takes_the_flows_whose_hash_is_in_it_and_no_others() -> None:
    pair, wanted = _pair(), range(0xC100, 0xC140)
    pair.chains.put("entry", pair.port, DropBucket(4, 1, 0x1234))
    addresses = socket.inet_aton(A_IP) + socket.inet_aton(B_IP)
    hashed = {sport: nft_jhash(addresses + struct.pack("!HxxHxx", sport, 4791), 4, 0x1234) for sport in wanted}
    passed = {sport for sport, bucket in hashed.items() if bucket != 1}
    assert 0 < len(passed) < len(wanted)
    for _ in range(2):
        assert _passing(pair, wanted, 4791) == passed
    assert _passing(pair, wanted, 9999) == {*wanted}
    pair.chains.lift("entry")
    assert _passing(pair, wanted, 4791) == {*wanted}


def _passing(pair: Pair, sports: Iterable[int], dport: int) -> set[int]:
    """Source ports of those whose one datagram arrives."""
    found = set()
    with pair.net.b.socket(socket.AF_INET, socket.SOCK_DGRAM) as inlet:
        inlet.settimeout(QUIET_S)
        inlet.bind((B_IP, dport))
        for sport in sports:
            with pair.net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind((A_IP, sport))
                sender.sendto(PAYLOAD, (B_IP, dport))
        with suppress(TimeoutError):
            while True:
                found.add(inlet.recvfrom(2048)[1][1])
    return found


def test_a_match_spares_everything_else() -> None:
    pair = _pair()
    pair.chains.put("data", pair.port, Drop(Traffic.DATA))
    assert (pair.arrived(), pair.arrived(dport=9999)) == (0, COUNT)
    pair.chains.put("data", pair.port, Drop(Traffic.LACP))
    assert pair.arrived() == COUNT, "the same key again replaces what it did before"
    pair.chains.put("data", pair.port, Drop(Traffic.NOT_CONTROL))
    assert (pair.arrived(), pair.arrived(dport=9999)) == (0, 0)


async def test_bgp_and_lacp_pass_when_all_but_control_is_dropped() -> None:
    pair = _pair()
    pair.chains.put("plane", pair.port, Drop(Traffic.NOT_CONTROL))
    with pair.net.b.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind((B_IP, 179))
        server.listen()
        with pair.net.a.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            client.connect((B_IP, 179))
        with pair.net.a.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
            other.settimeout(0.2)
            with pytest.raises(TimeoutError):
                other.connect((B_IP, 178))
    assert await _lacpdus(pair) == 1


async def _lacpdus(pair: Pair) -> int:
    """How many of one slow-protocol frame from a a socket of b hears, as the speaker's does."""
    heard: list[bytes] = []
    done = asyncio.Event()

    def hear(payload: bytes, _source: str) -> None:
        heard.append(payload)
        done.set()

    inlet = PacketSocket(pair.net.b, "w0", ETHERTYPE_SLOW_PROTOCOLS, group=SLOW_PROTOCOLS_MAC, on_frame=hear)
    outlet = PacketSocket(pair.net.a, "e0", ETHERTYPE_SLOW_PROTOCOLS)
    outlet.send(b"pdu", SLOW_PROTOCOLS_MAC)
    try:
        async with asyncio.timeout(0.3):
            await done.wait()
    except TimeoutError:
        pass
    inlet.close()
    outlet.close()
    return len(heard)


async def test_a_packet_socket_does_not_hear_what_ingress_dropped() -> None:
    pair = _pair()
    assert await _lacpdus(pair) == 1
    pair.chains.put("mute", pair.port, Drop(Traffic.LACP))
    assert await _lacpdus(pair) == 0
    assert pair.arrived() == COUNT
    pair.chains.lift("mute")
    assert await _lacpdus(pair) == 1


def test_several_impairments_of_one_port_add_up_and_come_off_one_by_one() -> None:
    pair = _pair()
    pair.chains.put("half", pair.port, Drop(share=0.5))
    pair.chains.put("data", pair.port, Drop(Traffic.DATA))
    pair.chains.put("mute", pair.port, Drop(Traffic.LACP))
    assert pair.arrived() == 0
    assert 0 < pair.arrived(dport=9999) < COUNT
    pair.chains.lift("half")
    assert (pair.arrived(), pair.arrived(dport=9999)) == (0, COUNT)
    pair.chains.lift("data")
    pair.chains.lift("data")  # twice is as good as once
    assert pair.arrived() == COUNT
    pair.chains.lift("mute")
    assert _rules(pair.net.b) == ""


def test_what_the_kernel_refuses_changes_nothing() -> None:
    pair = _pair()
    pair.chains.put("data", pair.port, Drop(Traffic.DATA))
    for key in ("data", "another"):
        with pytest.raises(NftError):
            pair.chains.put(key, pair.port, Corrupt(1.0, 70_000))
    assert pair.arrived() == 0, "what stood before stands"
    pair.chains.lift("another")
    pair.chains.lift("data")
    assert pair.arrived() == COUNT
    assert _rules(pair.net.b) == ""


def _data_packet(seq: int) -> bytes:
    header = wire.data_templates([7])
    header["psn"] |= np.uint32(seq)
    header["seq"], header["sent_ns"] = seq, now_ns()
    body = header.tobytes() + bytes([wire.FILL]) * (BTH_BYTES + MTU - header.itemsize)
    return body + wire.icrc(A_IP, B_IP, SPORT, 0, body).to_bytes(4, "little")


def _received(pair: Pair, folder: Path, packets: int) -> tuple[int, int]:
    """(packets, those with a bad ICRC) as the traffic receiver of b counts them."""
    records = RecordFile(folder / "received", RECEIVED)
    flow = FlowSpec(0, "a>b", "a.r0", "b.r0", A_IP, B_IP, SPORT, SPORT + 1, 1000.0, MTU)
    receiver = Receiver([flow], {"b.r0": B_IP}, [MTU], pair.net.namespaces, records, AckPolicy())
    with pair.net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: DF and IP id 0, as the ICRC has it
        sender.bind((A_IP, SPORT))
        for seq in range(packets):
            sender.sendto(_data_packet(seq), (B_IP, 4791))
    # Corrupted or not, all of them arrive: on a busy machine later.
    while select.select([receiver.fileno()], [], [], 10 if receiver.received.packets < packets else QUIET_S)[0]:
        receiver.tick(0)
    receiver.close()
    records.close()
    return receiver.received.packets, receiver.received.icrc_bad


MASKED = 4
"""The byte of the BTH that switches may change: the ICRC leaves it out."""


def test_a_flipped_bit_is_a_bad_icrc_wherever_the_icrc_looks(tmp_path: Path) -> None:
    pair = _pair()
    assert _received(pair, tmp_path, 3) == (3, 0)
    for at in (0, 5, 8, 16, 20, 28, BTH_BYTES + 100, LAST_BYTE):
        pair.chains.put("flip", pair.port, Corrupt(1.0, at))
        assert _received(pair, tmp_path, 3) == (3, 3), f"byte {at}"
    pair.chains.put("flip", pair.port, Corrupt(1.0, MASKED))
    assert _received(pair, tmp_path, 3) == (3, 0)


def test_a_packet_that_is_too_short_for_the_byte_is_left_alone() -> None:
    pair = _pair()
    pair.chains.put("flip", pair.port, Corrupt(1.0, len(PAYLOAD)))
    assert pair.arrived() == COUNT
    pair.chains.put("flip", pair.port, Corrupt(1.0, len(PAYLOAD) - 1))
    assert pair.arrived() == 0, "none as it was sent"


def test_a_share_is_corrupted(tmp_path: Path) -> None:
    pair = _pair()
    pair.chains.put("flips", pair.port, Corrupt(0.25, BTH_BYTES + 100))
    packets, bad = _received(pair, tmp_path, 200)
    assert packets == 200
    assert 10 < bad < 100
