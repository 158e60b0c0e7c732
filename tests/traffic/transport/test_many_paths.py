"""Packets that take many paths: the batched codec against the plain one, to the byte, and tshark's reading of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from hpn.testbed.routing.srv6.packet import encapsulated
from hpn.traffic.flows.ip_layer import IPV4, layer_of
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.multipath.sack import Sack, pack_sack, read_sack
from hpn.traffic.transport import incoming, many_paths_writer, packets
from hpn.traffic.transport.many_paths_reader import ManyPathsReader
from hpn.traffic.transport.packets import CE, Envelope, Opcode, Reth
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.write_entries import many_entry, ready_entry
from hpn.traffic.transport.writer import FrameWriter
from tests.traffic.transport.test_frames import (
    AT,
    MTU,
    Ips,
    Words,
    _batch,
    _owned,
    _plainly,
    _row,
    envelopes_to,
    ips_of,
    named,
    parts,
    runs,
    versions,
)
from tests.traffic.transport.test_packets import TO, TO6, _tshark

_TRIMMED_DSCP = 11


def _plain(to: Sequence[Envelope], run: Run, words: Sequence[int], ack_every: int) -> list[bytes]:
    """What the plain codec makes of a run: each packet a WRITE of its own."""
    request, total = run.request, -(-run.request.size_bytes // MTU)
    found = []
    for k, word in enumerate(words):
        index = run.first + k
        last = index == total - 1
        size = request.size_bytes - index * MTU if last else MTU
        envelope = to[run.paths[k]]
        udp_payload = packets.pack_write(
            envelope,
            Opcode.WRITE_ONLY_IMMEDIATE if last else Opcode.WRITE_ONLY,
            run.psn + k,
            packets.pack_payload(word, AT, size),
            ack_requested=last or (index + 1) % ack_every == 0 or (run.ack_last and k == run.count - 1),
            reth=Reth((request.address + index * MTU) % 2**64, size),
            immediate=request.immediate if last else None,
        )
        found.append(packets.pack_ip(envelope, udp_payload))
    return found


@st.composite
def many(draw: st.DrawFn, ips: Ips) -> tuple[list[Envelope], Run, Words, int]:
    """A run whose packets take the paths of one queue pair."""
    run, words = draw(runs())
    to = draw(envelopes_to(ips))
    paths = draw(st.integers(1, 5))
    taken = draw(st.lists(st.integers(0, paths - 1), min_size=run.count, max_size=run.count))
    request = replace(run.request, address=run.request.address >> 8, immediate=run.request.immediate or 0)
    ways = [replace(to, sport=0xC000 + path) for path in range(paths)]
    return ways, replace(run, request=request, paths=taken), words, draw(st.sampled_from([1, 5, 16]))


several = versions.flatmap(lambda ips: st.lists(many(ips), min_size=1, max_size=5))


@settings(max_examples=60)
@given(several, st.integers(0, 3))
def test_runs_over_many_paths_are_written_as_the_plain_codec_writes_their_packets(
    added: list[tuple[list[Envelope], Run, Words, int]], first: int
) -> None:
    rows = PacketRows(200, b"\x5a" * MTU, layer_of(added[0][0][0].dst_ip))
    writer = FrameWriter(rows, MTU)
    entries, expected = [], []
    for ways, run, words, every in added:
        opened = [writer.open_path(to, every) for to in ways]
        entries.append(many_entry([opened[path] for path in run.paths], run, words, AT, MTU))
        sack = packets.pack_ip(ways[0], packets.pack_read_response(ways[0], run.psn, 0x1F, 5, b"1234"))
        entries.append(ready_entry(opened[0], sack, MTU))
        expected += [*_plain(ways, run, words.tolist(), every), sack]
    for small in (len(expected), 0):  # as a small tick is written, and as a large one is
        rows.heads[:], rows.names[:], rows.tails[:], rows.lengths[:] = 0xEE, 0xEE, 0xEE, 0
        with patch.object(many_paths_writer, "_SMALL", small):
            assert writer.write(first, entries) == first + len(expected)
        assert [_row(rows, first + k) for k in range(len(expected))] == expected
        assert named(rows, first, len(expected)) == [parts(packet).dst for packet in expected]


@settings(max_examples=60)
@given(several, st.randoms(use_true_random=False), st.booleans())
def test_whatever_order_packets_come_in_runs_are_in_the_order_of_their_psns(
    added: list[tuple[list[Envelope], Run, Words, int]], random: Random, marked: bool
) -> None:
    sent = [
        packet
        for at, (ways, run, words, every) in enumerate(added)
        for packet in _plain([replace(to, qpn=at, tos=CE * marked) for to in ways], run, words.tolist(), every)
    ]
    to = replace(added[0][0][0], qpn=TO.qpn, tos=0)
    probe = packets.pack_write(to, Opcode.WRITE_ONLY, 9, b"", ack_requested=True, reth=Reth(0, 0))
    sent.append(packets.pack_ip(to, probe)[:-1] + bytes([probe[-1] ^ 1]))  # damaged
    random.shuffle(sent)
    arrived = [_owned(packet) for packet in sent]
    plain = _plainly(arrived)
    reader = ManyPathsReader(MTU, ips_of(sent[0]))
    for small in (len(arrived), 0):
        with patch.object(incoming, "_SMALL", small):
            found = reader.read(_batch(arrived, reader.row_bytes))
        assert sorted(row for run in found.runs for row in run.rows) == [
            row for row, packet in enumerate(plain) if packet is not None and packet.intact
        ]
        keys = [(run.owner, run.qpn) for run in found.runs]
        assert keys == sorted(keys), "of one queue pair after the other"
        for got in found.runs:
            for k, row in enumerate(got.rows):
                packet = plain[row]
                assert packet is not None
                assert packet.reth is not None
                assert packet.psn == (got.psn + k) % 2**24
                assert got.values[k] == int.from_bytes(parts(sent[row]).sport, "big")
                of = got.packets
                word = packets.read_payload(packet.payload)[0]
                assert (of.opcodes[k], of.sizes[k], int(of.words[k])) == (packet.opcode, len(packet.payload), word)
                assert (of.addresses[k], of.immediates[k]) == (packet.reth.address, packet.immediate or 0)
            marks = [value for value, row in zip(got.values, got.rows, strict=True) if parts(sent[row]).tos & 3 == CE]
            assert (list(got.marks), got.marked) == (marks, len(marks))


def _trimmed(packet: bytes, left: int) -> bytes:
    """What a switch leaves of a packet."""
    tos = _TRIMMED_DSCP << 2 | 2
    if packet[0] >> 4 == 4:
        return packet[:1] + bytes([tos]) + packet[2:left]
    return (int.from_bytes(packet[:4], "big") & ~(0xFF << 20) | tos << 20).to_bytes(4, "big") + packet[4:left]


@settings(max_examples=60)
@given(several, st.randoms(use_true_random=False), st.integers(64, 1024))
def test_what_switches_trimmed_is_known_by_its_dscp_and_is_not_damaged(
    added: list[tuple[list[Envelope], Run, Words, int]], random: Random, left: int
) -> None:
    sent, cut = [], 0
    for at, (ways, run, words, every) in enumerate(added):
        for packet in _plain([replace(to, qpn=at, tos=0) for to in ways], run, words.tolist(), every):
            trims = random.random() < 0.5 and len(packet) > left
            cut += trims
            sent.append(_trimmed(packet, left) if trims else packet)
    arrived = [_owned(packet) for packet in sent]
    ips = ips_of(sent[0])
    reader, blind = ManyPathsReader(MTU, ips, _TRIMMED_DSCP), ManyPathsReader(MTU, ips)
    for small in (len(arrived), 0):
        with patch.object(incoming, "_SMALL", small):
            found = reader.read(_batch(arrived, reader.row_bytes))
            assert (len(found.trimmed), found.damaged, found.foreign) == (cut, 0, 0)
            unknown = blind.read(_batch(arrived, reader.row_bytes))
            assert unknown.damaged + unknown.foreign == cut
        heads = [of for of in map(parts, sent) if of.tos >> 2 == _TRIMMED_DSCP]
        for one, of in zip(found.trimmed, heads, strict=True):
            bth = of.udp_payload
            assert (one.qpn, one.psn) == (int.from_bytes(bth[5:8], "big"), int.from_bytes(bth[9:12], "big"))
            assert one.value == int.from_bytes(of.sport, "big")
            assert ips[one.owner] == of.layer.shown(of.dst)


@given(
    st.integers(0, 2**24 - 1),
    st.integers(0, 2**24 - 1),
    st.integers(0, 0xFFFF),
    st.sampled_from([(False, False), (True, False), (False, True)]),
    st.lists(st.integers(0, 0xFFFF), max_size=63).map(tuple),
    st.binary(max_size=64).map(lambda bits: bits + bytes(-len(bits) % 4)),
)
def test_an_acknowledgement_is_read_as_it_was_written(
    psn: int, newest: int, value: int, what: tuple[bool, bool], marked: tuple[int, ...], bitmap: bytes
) -> None:
    probe, trimmed = what
    sack = Sack(psn, newest, value, probe, marked, bitmap, trimmed)
    payload = pack_sack(sack)
    assert len(payload) % 4 == 0
    assert read_sack(psn, payload) == sack
    for cut in range(0, 8 + 2 * len(marked), 4):
        assert read_sack(psn, payload[:cut]) is None


def _bare(packet: bytes) -> bytes:
    return packet


def _carried(packet: bytes) -> bytes:
    return encapsulated(packet, "fd00::1", "fc00:0:2:a::")


@pytest.mark.parametrize(("to", "sent"), [(TO, _bare), (TO6, _bare), (TO6, _carried)], ids=["ipv4", "ipv6", "srv6"])
def test_tshark_reads_data_probes_and_acknowledgements_of_many_paths(
    to: Envelope, sent: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    sack = Sack(0xABCDEE, 0xABCDF5, 0xC123, False, (0xC001,), b"\x0a\0\0\0")
    payloads = [
        packets.pack_write(to, Opcode.WRITE_ONLY, 7, b"x" * 64, ack_requested=False, reth=Reth(0x7F00, 64)),
        packets.pack_write(to, Opcode.WRITE_ONLY, 6, b"", ack_requested=True, reth=Reth(0, 0)),
        packets.pack_read_response(to, sack.psn, 0x1F, 9, pack_sack(sack)),
    ]
    file = tmp_path / "x.pcap"
    head = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    above = IP if layer_of(to.src_ip) is IPV4 else IPv6
    wrpcap(str(file), [Ether(bytes(head / above(sent(packets.pack_ip(to, payload))))) for payload in payloads])
    fields = ("bth.opcode", "bth.psn", "bth.a", "reth.va", "reth.dmalen", "aeth.syndrome", "aeth.msn", "invariant.crc")
    options = [option for field in fields for option in ("-e", f"infiniband.{field}")]
    lines = _tshark(file, "-T", "fields", "-E", "separator=;", "-E", "occurrence=f", *options)
    crcs = [f"0x{payload[-4:].hex()}" for payload in payloads]
    assert [line.replace("True", "1").replace("False", "0") for line in lines] == [
        f"10;7;0;0x0000000000007f00;64;;;{crcs[0]}",
        f"10;6;1;0x0000000000000000;0;;;{crcs[1]}",
        f"16;11259374;0;;;31;9;{crcs[2]}",
    ]
    without = ("-o", "udp.ignore_ipv6_zero_checksum:TRUE")  # as RoCEv2 goes over IPv6 (RFC 6936; rxe_net.c)
    assert _tshark(file, *without, "-Y", "_ws.malformed || _ws.expert.severity >= error") == []
    of = parts(packets.pack_ip(to, payloads[2]))
    found = packets.parse(payloads[2], of.sport + of.src, to.dst_ip)
    assert found is not None
    assert found.intact
    assert read_sack(found.psn, found.payload) == sack
