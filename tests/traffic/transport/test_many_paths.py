"""Packets that take many paths: the batched codec against the plain one, to the byte, and tshark's reading of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.multipath.sack import Sack, pack_sack, read_sack
from hpn.traffic.transport import incoming, many_paths_writer, packets
from hpn.traffic.transport.many_paths_reader import ManyPathsReader
from hpn.traffic.transport.packets import CE, Envelope, Opcode, Reth
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.write_entries import many_entry, ready_entry
from hpn.traffic.transport.writer import FrameWriter
from tests.traffic.transport.test_frames import AT, IPS, MTU, Words, _batch, _owned, _plainly, _row, envelopes, runs
from tests.traffic.transport.test_packets import TO, _tshark

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
def many(draw: st.DrawFn) -> tuple[list[Envelope], Run, Words, int]:
    """A run whose packets take the paths of one queue pair."""
    run, words = draw(runs())
    to = draw(envelopes)
    paths = draw(st.integers(1, 5))
    taken = draw(st.lists(st.integers(0, paths - 1), min_size=run.count, max_size=run.count))
    request = replace(run.request, address=run.request.address >> 8, immediate=run.request.immediate or 0)
    ways = [replace(to, sport=0xC000 + path) for path in range(paths)]
    return ways, replace(run, request=request, paths=taken), words, draw(st.sampled_from([1, 5, 16]))


several = st.lists(many(), min_size=1, max_size=5)


@settings(max_examples=60)
@given(several, st.integers(0, 3))
def test_runs_over_many_paths_are_written_as_the_plain_codec_writes_their_packets(
    added: list[tuple[list[Envelope], Run, Words, int]], first: int
) -> None:
    rows = PacketRows(200, b"\x5a" * MTU)
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
        names = [rows.names[first + k, 4:8].tobytes() for k in range(len(expected))]
        assert names == [packet[16:20] for packet in expected]


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
    probe = packets.pack_write(TO, Opcode.WRITE_ONLY, 9, b"", ack_requested=True, reth=Reth(0, 0))
    sent.append(packets.pack_ip(replace(TO, dst_ip=IPS[0]), probe)[: -len(probe)] + probe)
    random.shuffle(sent)
    arrived = [_owned(packet) for packet in sent]
    plain = _plainly(arrived)
    reader = ManyPathsReader(MTU, IPS)
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
                assert got.values[k] == int.from_bytes(sent[row][20:22], "big")
                of = got.packets
                word = packets.read_payload(packet.payload)[0]
                assert (of.opcodes[k], of.sizes[k], int(of.words[k])) == (packet.opcode, len(packet.payload), word)
                assert (of.addresses[k], of.immediates[k]) == (packet.reth.address, packet.immediate or 0)
            marks = [value for value, row in zip(got.values, got.rows, strict=True) if sent[row][1] & 3 == CE]
            assert (list(got.marks), got.marked) == (marks, len(marks))


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
            sent.append(packet[:1] + bytes([_TRIMMED_DSCP << 2 | 2]) + packet[2:left] if trims else packet)
    arrived = [_owned(packet) for packet in sent]
    reader, blind = ManyPathsReader(MTU, IPS, _TRIMMED_DSCP), ManyPathsReader(MTU, IPS)
    for small in (len(arrived), 0):
        with patch.object(incoming, "_SMALL", small):
            found = reader.read(_batch(arrived, reader.row_bytes))
            assert (len(found.trimmed), found.damaged, found.foreign) == (cut, 0, 0)
            unknown = blind.read(_batch(arrived, reader.row_bytes))
            assert unknown.damaged + unknown.foreign == cut
        heads = [packet for packet in sent if packet[1] >> 2 == _TRIMMED_DSCP]
        for one, packet in zip(found.trimmed, heads, strict=True):
            assert (one.qpn, one.psn) == (int.from_bytes(packet[33:36], "big"), int.from_bytes(packet[37:40], "big"))
            assert one.value == int.from_bytes(packet[20:22], "big")
            assert IPS[one.owner] == ".".join(map(str, packet[16:20]))


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


def test_tshark_reads_data_probes_and_acknowledgements_of_many_paths(tmp_path: Path) -> None:
    sack = Sack(0xABCDEE, 0xABCDF5, 0xC123, False, (0xC001,), b"\x0a\0\0\0")
    payloads = [
        packets.pack_write(TO, Opcode.WRITE_ONLY, 7, b"x" * 64, ack_requested=False, reth=Reth(0x7F00, 64)),
        packets.pack_write(TO, Opcode.WRITE_ONLY, 6, b"", ack_requested=True, reth=Reth(0, 0)),
        packets.pack_read_response(TO, sack.psn, 0x1F, 9, pack_sack(sack)),
    ]
    file = tmp_path / "x.pcap"
    head = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    wrpcap(str(file), [Ether(bytes(head / IP(packets.pack_ip(TO, payload)))) for payload in payloads])
    fields = ("bth.opcode", "bth.psn", "bth.a", "reth.va", "reth.dmalen", "aeth.syndrome", "aeth.msn", "invariant.crc")
    options = [option for field in fields for option in ("-e", f"infiniband.{field}")]
    lines = _tshark(file, "-T", "fields", "-E", "separator=;", "-E", "occurrence=f", *options)
    crcs = [f"0x{payload[-4:].hex()}" for payload in payloads]
    assert [line.replace("True", "1").replace("False", "0") for line in lines] == [
        f"10;7;0;0x0000000000007f00;64;;;{crcs[0]}",
        f"10;6;1;0x0000000000000000;0;;;{crcs[1]}",
        f"16;11259374;0;;;31;9;{crcs[2]}",
    ]
    assert _tshark(file, "-Y", "_ws.malformed || _ws.expert.severity >= error") == []
    found = packets.parse(
        payloads[2], bytes.fromhex(f"{TO.sport:04x}") + bytes(map(int, TO.src_ip.split("."))), TO.dst_ip
    )
    assert found is not None
    assert found.intact
    assert read_sack(found.psn, found.payload) == sack
