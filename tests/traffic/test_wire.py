"""RoCEv2 bytes and ICRC, judged by zlib, scapy and tshark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

from hpn.traffic.flows.flow import requester_qpn
from hpn.traffic.flows.framing import BTH_BYTES
from hpn.traffic.streams import wire

TABLES = {mtu: wire.DataIcrc(mtu) for mtu in (1024, 2048, 4096)}

ips = st.integers(1, 2**32 - 1).map(lambda n: ".".join(str(n >> s & 255) for s in (24, 16, 8, 0)))
ports = st.integers(0xC000, 0xFFFF)
qpns = st.integers(0, 2**24 - 1)
qpns = st.integers(0, 2**24 - 1)


def _packet(qpn: int, seq: int, index: int, sent_ns: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    header = wire.data_templates([qpn])
    header["psn"] |= np.uint32(seq & wire.PSN_MASK)
    header["index"], header["seq"], header["sent_ns"] = index, seq, sent_ns
    return header


def _body(header: np.ndarray[tuple[int], np.dtype[np.void]], mtu: int) -> bytes:
    head: bytes = header.tobytes()
    return head + bytes([wire.FILL]) * (BTH_BYTES + mtu - header.itemsize)


def _datagram(src: str, dst: str, sport: int, ip_id: int, body: bytes) -> IP:
    """The packet as scapy builds it from fields, with the ICRC left to scapy (a BTH always carries one)."""
    bth = BTH(body[:12] + bytes(4))
    bth.icrc = None
    bth.payload = Raw(body[12:])
    return IP(src=src, dst=dst, id=ip_id, flags="DF") / UDP(sport=sport, dport=4791) / bth


@settings(max_examples=30, deadline=None)
@given(ips, ips, ports, st.integers(0, 63), st.integers(0, 2**24 - 1), st.integers(0, 2**63), st.integers(0, 2**62))
def test_scapy_computes_the_same_icrc_for_a_data_packet(
    src: str, dst: str, sport: int, index: int, qpn: int, seq: int, at: int
) -> None:
    body = _body(_packet(qpn, seq, index, at), 1024)
    built = bytes(_datagram(src, dst, sport, index, body))
    assert built[-4:] == wire.icrc(src, dst, sport, index, body).to_bytes(4, "little")
    assert built[28:-4] == body


@settings(max_examples=30, deadline=None)
@given(ips, ips, ports, st.integers(0, 1000), st.integers(0, 2**24 - 1), st.sampled_from([0x1F, 0x60]))
def test_scapy_computes_the_same_icrc_for_an_acknowledgement(
    src: str, dst: str, sport: int, flow: int, psn: int, syndrome: int
) -> None:
    packed = wire.pack_ack(src, dst, sport, flow, psn, syndrome)
    assert bytes(_datagram(src, dst, sport, 0, packed[:-4]))[28:] == packed


@settings(deadline=None)
@given(
    st.sampled_from(sorted(TABLES)),
    ips,
    ips,
    ports,
    st.lists(
        st.tuples(qpns, st.integers(0, 2**64 - 1), st.integers(0, 65535), st.integers(0, 2**63 - 1)),
        min_size=1,
        max_size=6,
    ),
)  # fmt: skip
def test_table_look_ups_equal_zlib_over_the_whole_packet(
    mtu: int, src: str, dst: str, sport: int, packets: list[tuple[int, int, int, int]]
) -> None:
    headers = [_packet(*p) for p in packets]
    rows = np.frombuffer(b"".join(h.tobytes() for h in headers), np.uint8).reshape(len(packets), -1)
    table = TABLES[mtu]
    found = table.of_headers(rows) ^ np.uint32(table.of_path(src, dst, sport))
    expected = [wire.icrc(src, dst, sport, p[2], _body(h, mtu)) for p, h in zip(packets, headers, strict=True)]
    assert found.tolist() == expected


@given(st.integers(0, 2**24 - 1), st.integers(0, 2**40), st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_the_time_may_be_filled_in_afterwards(qpn: int, seq: int, times: list[int]) -> None:
    table = TABLES[4096]
    without = table.of_headers(_packet(qpn, seq, 3, 0).view(np.uint8).reshape(1, -1))[0]
    for at in times:
        full = table.of_headers(_packet(qpn, seq, 3, at).view(np.uint8).reshape(1, -1))[0]
        assert int(without) ^ table.of_time(at) == full


def test_the_icrc_ignores_what_routers_and_congestion_marking_change() -> None:
    body = bytearray(_body(_packet(77, 5, 0, 9), 1024))
    before = wire.icrc("10.0.0.1", "10.0.0.2", 0xC001, 0, bytes(body))
    body[4] = 0xC0  # FECN, BECN
    assert wire.icrc("10.0.0.1", "10.0.0.2", 0xC001, 0, bytes(body)) == before
    raw = np.frombuffer(bytes(body[:36]), np.uint8).reshape(1, -1)
    path = TABLES[1024].of_path("10.0.0.1", "10.0.0.2", 0xC001)
    assert int(TABLES[1024].of_headers(raw)[0]) ^ path == before


def test_a_golden_acknowledgement() -> None:
    assert wire.pack_ack("10.1.0.1", "10.0.0.1", 0xE123, 3, 0x010203, wire.SYNDROME_ACK).hex(" ", 4) == (
        "1140ffff 00000018 00010203 1f010204 9e1d7e89"
    )


@given(st.integers(0, 1000), st.integers(0, 2**24 - 1), st.sampled_from([0x1F, 0x60]))
def test_an_acknowledgement_is_read_back_and_any_flipped_bit_is_noticed(flow: int, psn: int, syndrome: int) -> None:
    packed = wire.pack_ack("10.1.0.1", "10.0.0.1", 0xE123, flow, psn, syndrome)
    source = bytes.fromhex("e123 0a010001")
    ack = wire.parse_ack(packed, source, "10.0.0.1")
    assert ack is not None
    assert (ack.qpn, ack.psn, ack.syndrome) == (requester_qpn(flow), psn, syndrome)
    for bit in range(len(packed) * 8):
        broken = bytearray(packed)
        broken[bit // 8] ^= 1 << bit % 8
        if bit // 8 != 4:  # the byte that the ICRC leaves out
            assert wire.parse_ack(bytes(broken), source, "10.0.0.1") is None
    assert wire.parse_ack(packed, bytes.fromhex("e124 0a010001"), "10.0.0.1") is None


@given(st.binary(max_size=40))
def test_hostile_bytes_are_no_acknowledgement(data: bytes) -> None:
    assert wire.parse_ack(data, bytes(6), "10.0.0.1") is None


def test_tshark_reads_our_data_acknowledgement_and_nak(tmp_path: Path) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    data = _body(_packet(0x123456, 0x1000007, 0, 9), 1024)
    payloads = [
        data + wire.icrc("10.0.0.1", "10.1.0.1", 0xC001, 0, data).to_bytes(4, "little"),
        wire.pack_ack("10.0.0.1", "10.1.0.1", 0xC001, 5, 0xABCDEF, wire.SYNDROME_ACK),
        wire.pack_ack("10.0.0.1", "10.1.0.1", 0xC001, 5, 0xABCDEF, wire.SYNDROME_NAK_PSN),
    ]
    head = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.1.0.1", flags="DF")
    file = str(tmp_path / "x.pcap")
    wrpcap(file, [Ether(bytes(head / UDP(sport=0xC001, dport=4791) / Raw(p))) for p in payloads])
    fields = [
        "bth.opcode",
        "bth.destqp",
        "bth.psn",
        "bth.a",
        "bth.padcnt",
        "aeth.syndrome",
        "aeth.msn",
        "invariant.crc",
    ]
    command = [tshark, "-r", file, "-T", "fields", "-E", "separator=;"]
    for field in fields:
        command += ["-e", f"infiniband.{field}"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    crcs = [f"0x{p[-4:].hex()}" for p in payloads]
    assert [line.replace("True", "1").replace("False", "0") for line in lines] == [
        f"4;0x123456;7;1;0;;;{crcs[0]}",
        f"17;0x00001c;11259375;0;0;31;11259376;{crcs[1]}",
        f"17;0x00001c;11259375;0;0;96;11259375;{crcs[2]}",
    ]
