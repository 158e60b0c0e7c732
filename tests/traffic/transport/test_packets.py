"""Packets of a reliable connection, judged by scapy (ICRC) and tshark (every field)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

from hpn.traffic.flows.ip_layer import IPV6, layer_of
from hpn.traffic.streams import wire
from hpn.traffic.transport.packets import (
    CE,
    NOTES,
    WITH_IMMEDIATE,
    WITH_RETH,
    Aeth,
    Envelope,
    Opcode,
    Packet,
    Reth,
    opcode_of,
    pack_ack,
    pack_cnp,
    pack_ip,
    pack_note,
    pack_payload,
    pack_probe,
    pack_write,
    parse,
    read_payload,
)

TO = Envelope("10.0.0.1", "10.1.0.1", 0xC123, 0xABCDE)
TO6 = replace(TO, src_ip="fd00::1", dst_ip="fd00::8")
REPLIES = {Opcode.ACKNOWLEDGE, Opcode.READ_RESPONSE_ONLY, Opcode.CNP, Opcode.PROBE, Opcode.ECHO} | NOTES
WRITES = sorted(set(Opcode) - REPLIES)


def _between(addresses: st.SearchStrategy[str]) -> st.SearchStrategy[Envelope]:
    sport, qpn, tos = st.integers(1, 2**16 - 1), st.integers(0, wire.QPN_MASK), st.integers(0, 255)
    return st.builds(Envelope, addresses, addresses, sport, qpn, tos)


envelopes = _between(st.ip_addresses(v=4).map(str)) | _between(st.ip_addresses(v=6).map(str))
psns = st.integers(0, 2**40)


def _source(to: Envelope) -> bytes:
    return to.sport.to_bytes(2, "big") + layer_of(to.src_ip).packed(to.src_ip)


def _write(to: Envelope, opcode: Opcode, psn: int, payload: bytes, *, ack_requested: bool = False) -> bytes:
    return pack_write(
        to,
        opcode,
        psn,
        payload,
        ack_requested=ack_requested,
        reth=Reth(0x7F00_1234_5678_9ABC, 70_000) if opcode in WITH_RETH else None,
        immediate=0xDEADBEEF if opcode in WITH_IMMEDIATE else None,
    )


def _read(to: Envelope, packed: bytes) -> Packet:
    """What arrived in an envelope ``to``."""
    found = parse(packed, _source(to), to.dst_ip)
    assert found is not None
    return found


def _by_scapy(to: Envelope, udp_payload: bytes, tos: int = 0) -> bytes:
    """The same UDP payload with the ICRC that scapy puts there."""
    bth = BTH(udp_payload[:12] + bytes(4))
    bth.icrc = None
    bth.payload = Raw(udp_payload[12:-4])
    if layer_of(to.src_ip) is IPV6:
        return bytes(IPv6(src=to.src_ip, dst=to.dst_ip, tc=tos) / UDP(sport=to.sport, dport=4791) / bth)[48:]
    packet = IP(src=to.src_ip, dst=to.dst_ip, id=0, flags="DF", tos=tos) / UDP(sport=to.sport, dport=4791) / bth
    return bytes(packet)[28:]


@settings(max_examples=60)
@given(envelopes, st.sampled_from(WRITES), psns, st.binary(max_size=70), st.booleans())
def test_scapy_computes_the_same_icrc_for_every_kind_and_size_of_write(
    to: Envelope, opcode: Opcode, psn: int, payload: bytes, ack_requested: bool
) -> None:
    packed = _write(to, opcode, psn, payload, ack_requested=ack_requested)
    assert _by_scapy(to, packed) == packed


@settings(max_examples=30)
@given(envelopes, psns, st.sampled_from([0x1F, 0x60]), st.integers(0, 2**24 - 1))
def test_scapy_computes_the_same_icrc_for_acknowledgements_and_cnps(
    to: Envelope, psn: int, syndrome: int, msn: int
) -> None:
    for packed in (pack_ack(to, psn, syndrome, msn), pack_ack(to, psn, syndrome, msn, becn=True), pack_cnp(to)):
        assert _by_scapy(to, packed) == packed


def test_a_congestion_mark_and_a_lower_ttl_do_not_harm_the_icrc() -> None:
    packed = _write(TO, Opcode.WRITE_ONLY, 1, b"x" * 64)
    marked = bytearray(pack_ip(TO, packed))
    marked[1] |= CE
    marked[8] -= 5
    as_scapy_sees_it = IP(bytes(marked))
    assert (as_scapy_sees_it.tos, as_scapy_sees_it.ttl) == (CE, 59)
    assert _by_scapy(TO, packed, tos=CE) == packed
    assert _read(TO, bytes(marked[28:])).intact


@given(envelopes, st.integers(0, 255), st.integers(1, 255))
def test_scapy_reads_the_header_of_ipv6_and_what_switches_change_in_it_harms_no_icrc(
    to: Envelope, tos: int, hops: int
) -> None:
    to = replace(to, src_ip=TO6.src_ip, dst_ip=TO6.dst_ip)
    packed = _write(to, Opcode.WRITE_ONLY, 1, b"x" * 64)
    seen = IPv6(pack_ip(to, packed))
    assert (seen.src, seen.dst, seen.tc, seen.fl, seen.hlim) == (to.src_ip, to.dst_ip, to.tos, to.sport, 64)
    assert (seen.plen, seen.nh, seen[UDP].sport, seen[UDP].len, seen[UDP].chksum) == (
        8 + len(packed), 17, to.sport, 8 + len(packed), 0,
    )  # fmt: skip
    seen.tc, seen.hlim, seen.fl = tos, hops, 0
    assert _by_scapy(to, packed, tos=tos) == packed
    assert _read(to, bytes(seen)[48:]).intact


@given(envelopes, st.sampled_from(WRITES), psns, st.binary(max_size=70), st.booleans())
def test_a_write_is_read_back(to: Envelope, opcode: Opcode, psn: int, payload: bytes, ack_requested: bool) -> None:
    packet = _read(to, _write(to, opcode, psn, payload, ack_requested=ack_requested))
    assert packet.intact
    assert (packet.opcode, packet.qpn, packet.psn) == (opcode, to.qpn, psn % 2**24)
    assert (packet.payload, packet.ack_requested, packet.aeth) == (payload, ack_requested, None)
    assert packet.reth == (Reth(0x7F00_1234_5678_9ABC, 70_000) if opcode in WITH_RETH else None)
    assert packet.immediate == (0xDEADBEEF if opcode in WITH_IMMEDIATE else None)


@given(envelopes, psns, st.sampled_from([0x1F, 0x60]), st.integers(0, 2**30), st.booleans())
def test_an_acknowledgement_is_read_back(to: Envelope, psn: int, syndrome: int, msn: int, becn: bool) -> None:
    packet = _read(to, pack_ack(to, psn, syndrome, msn, becn=becn))
    assert packet.becn == becn
    assert packet.intact
    assert packet.opcode is Opcode.ACKNOWLEDGE
    assert (packet.qpn, packet.psn, packet.aeth) == (to.qpn, psn % 2**24, Aeth(syndrome, msn % 2**24))
    assert packet.payload == b""


@given(envelopes, psns, st.integers(0, 2**32 - 1), st.none() | st.integers(0, wire.QPN_MASK))
def test_a_note_is_read_back(to: Envelope, psn: int, immediate: int, source_qpn: int | None) -> None:
    packed = pack_note(to, psn, immediate, source_qpn)
    packet = _read(to, packed)
    opcode = Opcode.UC_SEND_ONLY_IMMEDIATE if source_qpn is None else Opcode.UD_SEND_ONLY_IMMEDIATE
    assert packet.intact
    assert (packet.opcode, packet.qpn, packet.psn) == (opcode, to.qpn, psn % 2**24)
    assert (packet.immediate, packet.payload, packet.aeth, packet.reth) == (immediate, b"", None, None)


def test_a_datagram_with_another_q_key_is_of_nobody_here() -> None:
    packed = bytearray(pack_note(TO, 5, 7, 0x123))
    datagram = BTH(opcode=0x65, dqpn=TO.qpn, psn=5, migreq=1) / Raw(bytes(packed[12:-4]))
    by_scapy = IP(src=TO.src_ip, dst=TO.dst_ip, id=0, flags="DF") / UDP(sport=TO.sport, dport=4791) / datagram
    assert bytes(packed) == bytes(by_scapy)[28:]
    packed[12] ^= 1
    assert parse(bytes(packed), _source(TO), TO.dst_ip) is None


def test_a_cnp_is_read_back() -> None:
    packed = pack_cnp(TO)
    packet = _read(TO, packed)
    assert packet.intact
    assert (packet.opcode, packet.qpn, packet.payload) == (Opcode.CNP, TO.qpn, bytes(16))
    by_scapy = IP(src=TO.src_ip, dst=TO.dst_ip, id=0, flags="DF") / UDP(sport=TO.sport, dport=4791) / cnp(TO.qpn)
    by_scapy[BTH].migreq = 1  # as the drivers of adapters have it in every packet
    assert packed == bytes(by_scapy)[28:]


@pytest.mark.parametrize("to", [TO, TO6])
@pytest.mark.parametrize("opcode", [Opcode.WRITE_ONLY_IMMEDIATE, Opcode.WRITE_MIDDLE])
def test_any_flipped_bit_is_noticed(opcode: Opcode, to: Envelope) -> None:
    packed = _write(to, opcode, 7, b"payload")
    for bit in range(len(packed) * 8):
        broken = bytearray(packed)
        broken[bit // 8] ^= 1 << bit % 8
        found = parse(bytes(broken), _source(to), to.dst_ip)
        left_out = bit // 8 == 4  # where switches mark congestion
        assert (found is not None and found.intact) == left_out
    for other in (replace(to, sport=to.sport + 1), replace(to, src_ip=to.dst_ip), replace(to, dst_ip=to.src_ip)):
        assert not _read(other, packed).intact


@given(st.binary(max_size=60))
def test_hostile_bytes_are_never_intact(data: bytes) -> None:
    found = parse(data, bytes(6), "10.0.0.1")
    assert found is None or not found.intact


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1), st.integers(0, 100))
def test_a_payload_cut_short_keeps_the_low_bytes_of_its_word(word: int, sent_ns: int, size: int) -> None:
    payload = pack_payload(word, sent_ns, size)
    assert len(payload) == size
    assert payload[16:] == b"\x5a" * (size - 16)
    assert read_payload(payload) == (word % 2 ** (8 * min(size, 8)), sent_ns if size >= 16 else 0)


@pytest.mark.parametrize(
    ("total", "immediate", "opcodes"),
    [
        (1, None, [0x0A]),
        (1, 5, [0x0B]),
        (2, None, [0x06, 0x08]),
        (2, 0, [0x06, 0x09]),
        (4, None, [0x06, 0x07, 0x07, 0x08]),
    ],
)
def test_opcodes_of_a_message(total: int, immediate: int | None, opcodes: Sequence[int]) -> None:
    assert [opcode_of(i, total, immediate) for i in range(total)] == opcodes


def test_a_reth_on_a_packet_that_has_no_room_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="WRITE_MIDDLE with RETH"):
        pack_write(TO, Opcode.WRITE_MIDDLE, 0, b"", ack_requested=False, reth=Reth(0, 1))
    with pytest.raises(ValueError, match=r"WRITE_LAST_IMMEDIATE .* immediate None"):
        pack_write(TO, Opcode.WRITE_LAST_IMMEDIATE, 0, b"", ack_requested=False)


def _tshark(file: Path, *options: str) -> list[str]:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    command = [
        tshark,
        "--disable-protocol",
        "infiniband.eoib",
        "-r",
        str(file),
        *options,
    ]  # it takes any datagram for EoIB
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_tshark_reads_every_kind_of_packet_and_finds_nothing_malformed(tmp_path: Path) -> None:
    payloads = [
        *(_write(TO, opcode, 0x1000007, b"abcde", ack_requested=opcode in WITH_IMMEDIATE) for opcode in WRITES),
        pack_ack(TO, 0xABCDEF, wire.SYNDROME_ACK, 9),
        pack_ack(TO, 0xABCDEF, wire.SYNDROME_NAK_PSN, 9),
        pack_note(TO, 5, 0x12345678),
        pack_note(TO, 5, 0x12345678, 0x1234),
        pack_cnp(TO),
        pack_probe(TO, 1),
    ]
    file = tmp_path / "x.pcap"
    head = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    wrpcap(str(file), [Ether(bytes(head / IP(pack_ip(TO, payload)))) for payload in payloads])
    fields = [
        *("bth.opcode", "bth.destqp", "bth.psn", "bth.a", "bth.padcnt", "reth.va", "reth.dmalen"),
        *("immdt", "aeth.syndrome", "aeth.msn", "deth.srcqp", "invariant.crc"),
    ]
    options = [option for field in fields for option in ("-e", f"infiniband.{field}")]
    lines = _tshark(file, "-T", "fields", "-E", "separator=;", "-E", "occurrence=f", *options)
    reth, crcs = "0x7f00123456789abc;70000", [f"0x{p[-4:].hex()}" for p in payloads]
    lines = [line.replace("True", "1").replace("False", "0") for line in lines]
    lines[-2:] = [line.removesuffix(crc) for line, crc in zip(lines[-2:], crcs[-2:], strict=True)]
    assert lines == [
        f"6;0x0abcde;7;0;3;{reth};;;;;{crcs[0]}",
        f"7;0x0abcde;7;0;3;;;;;;;{crcs[1]}",
        f"8;0x0abcde;7;0;3;;;;;;;{crcs[2]}",
        f"9;0x0abcde;7;1;3;;;deadbeef;;;;{crcs[3]}",
        f"10;0x0abcde;7;0;3;{reth};;;;;{crcs[4]}",
        f"11;0x0abcde;7;1;3;{reth};deadbeef;;;;{crcs[5]}",
        f"17;0x0abcde;11259375;0;0;;;;31;9;;{crcs[6]}",
        f"17;0x0abcde;11259375;0;0;;;;96;9;;{crcs[7]}",
        f"37;0x0abcde;5;0;0;;;12345678;;;;{crcs[8]}",
        f"101;0x0abcde;5;0;0;;;12345678;;;0x00001234;{crcs[9]}",
        "129;0x0abcde;0;0;0;;;;;;;",  # 4.0 knows no CNP and shows no CRC; scapy does
        "192;0x0abcde;0;0;0;;;;;;;",  # a manufacturer's
    ]
    assert _tshark(file, "-Y", "_ws.malformed || _ws.expert.severity >= error") == []
