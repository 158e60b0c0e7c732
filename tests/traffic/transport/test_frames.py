"""The batched codec against the plain one, to the byte, both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.flows.ip_layer import IPV4, IPV6, IpLayer, layer_of
from hpn.traffic.io.recvmmsg import Batch
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.streams.wire import PSN_MASK
from hpn.traffic.transport import incoming, packets
from hpn.traffic.transport import writer as writer_module
from hpn.traffic.transport.arrivals import Arrivals
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.incoming import FrameReader
from hpn.traffic.transport.outgoing import Outgoing
from hpn.traffic.transport.packets import CE, WITH_IMMEDIATE, WITH_RETH, Envelope, Opcode, Reth
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.work import WorkRequest
from hpn.traffic.transport.write_entries import ready_entry, run_entry
from hpn.traffic.transport.writer import FrameWriter

Words = npt.NDArray[np.uint64]

MTU = 256
Ips = tuple[str, str]

IPS: Ips = ("10.1.0.1", "10.1.0.2")
IPS6: Ips = ("fd00::7", "fd00::8")
AT = 1_234_567_890_123

_SOURCES: dict[Ips, list[str]] = {
    IPS: ["10.0.0.1", "10.0.0.77", "192.168.255.3"],
    IPS6: ["fd00::1", "2001:db8::ff:ffff", "fd00:1::"],
}
versions = st.sampled_from(sorted(_SOURCES))


def envelopes_to(ips: Ips) -> st.SearchStrategy[Envelope]:
    """Envelopes of packets of one version of IP."""
    return st.builds(
        Envelope,
        st.sampled_from(_SOURCES[ips]),
        st.sampled_from(ips),
        st.integers(0xC000, 0xFFFF),
        st.integers(0, 2**24 - 1),
        st.integers(0, 255),
    )


envelopes = versions.flatmap(envelopes_to)
sizes = st.one_of(
    st.integers(1, 40),
    st.sampled_from([MTU - 1, MTU, MTU + 1, 2 * MTU, 3 * MTU - 15, 12 * MTU]),
    st.integers(1, 20 * MTU),
)
requests = st.builds(WorkRequest, st.just(1), sizes, st.integers(0, 2**64 - 1), st.none() | st.integers(0, 2**32 - 1))


@st.composite
def runs(draw: st.DrawFn) -> tuple[Run, Words]:
    """Part of a message, or all of it, often across the end of the PSNs."""
    request = draw(requests)
    total = -(-request.size_bytes // MTU)
    first = draw(st.integers(0, total - 1))
    count = draw(st.integers(1, total - first))
    psn = draw(st.integers(2**24 - 4, 2**24 + 4) | st.integers(0, 2**40))
    words = draw(st.lists(st.integers(0, 2**64 - 1), min_size=count, max_size=count))
    return Run(request, first, count, psn, again=False, ack_last=draw(st.booleans())), np.array(words, np.uint64)


def _plain(to: Envelope, run: Run, words: Sequence[int], ack_every: int) -> list[bytes]:
    """What the plain codec makes of a run."""
    request, total = run.request, -(-run.request.size_bytes // MTU)
    found = []
    for k, word in enumerate(words):
        index = run.first + k
        last = index == total - 1
        opcode = packets.opcode_of(index, total, request.immediate)
        udp_payload = packets.pack_write(
            to,
            opcode,
            run.psn + k,
            packets.pack_payload(word, AT, request.size_bytes - index * MTU if last else MTU),
            ack_requested=last or (index + 1) % ack_every == 0 or (run.ack_last and k == run.count - 1),
            reth=Reth(request.address, request.size_bytes) if opcode in WITH_RETH else None,
            immediate=request.immediate if opcode in WITH_IMMEDIATE else None,
        )
        found.append(packets.pack_ip(to, udp_payload))
    return found


def _row(rows: PacketRows, row: int) -> bytes:
    """The packet as the kernel would gather it."""
    head, fill, tail = rows.lengths[row].tolist()
    packet: bytes = rows.heads[row, :head].tobytes() + b"\x5a" * fill + rows.tails[row, :tail].tobytes()
    return packet


def some(ips: Ips) -> st.SearchStrategy[list[tuple[Envelope, tuple[Run, Words], int]]]:
    """Runs of a tick."""
    return st.lists(st.tuples(envelopes_to(ips), runs(), st.sampled_from([1, 2, 5, 16])), min_size=1, max_size=6)


several = versions.flatmap(some)


class Parts(NamedTuple):
    """An IP packet of UDP, taken apart."""

    layer: IpLayer
    src: bytes
    dst: bytes
    tos: int
    sport: bytes
    udp_payload: bytes


def parts(packet: bytes) -> Parts:
    """Take an IP packet apart, by RFC 791 and RFC 8200."""
    if packet[0] >> 4 == 4:
        return Parts(IPV4, packet[12:16], packet[16:20], packet[1], packet[20:22], packet[28:])
    tos = int.from_bytes(packet[:2], "big") >> 4 & 0xFF
    return Parts(IPV6, packet[8:24], packet[24:40], tos, packet[40:42], packet[48:])


@settings(max_examples=80)
@given(several, st.integers(0, 3))
def test_a_tick_of_runs_is_written_as_the_plain_codec_writes_its_packets(
    added: list[tuple[Envelope, tuple[Run, Words], int]], first: int
) -> None:
    rows = PacketRows(200, b"\x5a" * MTU, layer_of(added[0][0].dst_ip))
    writer = FrameWriter(rows, MTU)
    entries, expected = [], []
    for to, (run, words), ack_every in added:
        path = writer.open_path(to, ack_every)
        entries.append(run_entry(path, run, words, AT, MTU))
        entries.append(ready_entry(path, writer.acknowledgement(path, run.psn & PSN_MASK, 0x60, 5), MTU))
        expected += _plain(to, run, words.tolist(), ack_every)
        expected.append(packets.pack_ip(to, packets.pack_ack(to, run.psn, 0x60, 5)))
    for small in (len(expected), 0):  # as a small tick is written, and as a large one is
        rows.heads[:], rows.names[:], rows.tails[:], rows.lengths[:] = 0xEE, 0xEE, 0xEE, 0
        with patch.object(writer_module, "_SMALL", small):
            assert writer.write(first, entries) == first + len(expected)
        assert [_row(rows, first + k) for k in range(len(expected))] == expected
        assert named(rows, first, len(expected)) == [parts(packet).dst for packet in expected]


def named(rows: PacketRows, first: int, count: int) -> list[bytes]:
    """Destination addresses of rows from ``first`` on."""
    at = rows.ip.SOCKADDR_AT
    return [rows.names[first + k, at : at + rows.ip.ADDRESS_BYTES].tobytes() for k in range(count)]


@pytest.mark.parametrize("small", [0, 100])
@pytest.mark.parametrize("immediate", [None, 7])
@pytest.mark.parametrize("size", [1, 15, MTU, MTU + 1, 2 * MTU, 3 * MTU])
def test_many_messages_in_one_tick(
    monkeypatch: pytest.MonkeyPatch, size: int, immediate: int | None, small: int
) -> None:
    monkeypatch.setattr(writer_module, "_SMALL", small)
    rows = PacketRows(64, b"\x5a" * MTU)
    writer = FrameWriter(rows, MTU)
    entries, expected = [], []
    for k in range(8):
        to = Envelope("10.0.0.1", IPS[k % 2], 0xC000 + k, k, r_key=k << 28)
        run = Run(WorkRequest(k, size, k << 60, immediate), 0, -(-size // MTU), 2**24 - 1 + k, again=False)
        words = np.arange(run.count, dtype=np.uint64) + np.uint64(k << 50)
        entries.append(run_entry(writer.open_path(to, 3), run, words, AT, MTU))
        expected += _plain(to, run, words.tolist(), 3)
    writer.write(0, entries)
    assert [_row(rows, k) for k in range(len(expected))] == expected


@pytest.mark.parametrize("small", [0, 20])
def test_rows_are_written_anew_in_each_tick(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr(writer_module, "_SMALL", small)
    rows = PacketRows(8, b"\x5a" * MTU)
    writer = FrameWriter(rows, MTU)
    to = Envelope("10.0.0.1", IPS[0], 0xC000, 7)
    path = writer.open_path(to, 1)
    odd = Run(WorkRequest(0, 5, 99, 1), 0, 1, 0, again=False)
    full = Run(WorkRequest(1, 4 * MTU, 99, 1), 0, 4, 1, again=False)
    for run in (odd, full, odd, full):
        words = np.arange(run.count, dtype=np.uint64)
        writer.write(0, [run_entry(path, run, words, AT, MTU)])
        assert [_row(rows, k) for k in range(run.count)] == _plain(to, run, words.tolist(), 1)
    assert writer.acknowledgement(path, 3, 0x1F, 9) == packets.pack_ip(to, packets.pack_ack(to, 3, 0x1F, 9))
    moved = replace(to, sport=0xD000, src_ip="10.0.0.9", qpn=8)
    writer.move_path(path, moved)
    writer.write(0, [run_entry(path, full, words, AT, MTU)])
    assert [_row(rows, k) for k in range(4)] == _plain(moved, full, words.tolist(), 1)
    assert writer.acknowledgement(path, 3, 0x1F, 9) == packets.pack_ip(moved, packets.pack_ack(moved, 3, 0x1F, 9))


def test_an_acknowledgement_says_what_came_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []

    def hand_over(rows: PacketRows, _fd: int, first: int, end: int) -> tuple[int, int]:
        sent.extend(_row(rows, row) for row in range(first, end))
        return end - first, 0

    monkeypatch.setattr(PacketRows, "hand_over", hand_over)
    outgoing, to = Outgoing(4, MTU), Envelope("10.0.0.1", IPS[0], 0xC000, 7)
    path = outgoing.open_path(9, to)
    for becn in (False, True, False):
        outgoing.add_ack(path, 5, 0x1F, 3, becn=becn)
    outgoing.send()
    plain = [packets.pack_ip(to, packets.pack_ack(to, 5, 0x1F, 3, becn=becn)) for becn in (False, True, False)]
    assert sent == plain
    assert plain[0] != plain[1]


def _batch(arrived: Sequence[tuple[bytes, int]], row_bytes: int, garbage: int = 0xEE) -> Batch:
    """IP packets as a receive batch: rows begin 4 bytes into 8, as those of ``BatchReceiver`` do."""
    memory = np.full((len(arrived), -(-(row_bytes + 4) // 64) * 64), garbage, np.uint8)
    rows = memory[:, 4 : 4 + row_bytes]
    apart = [parts(packet) for packet, _ in arrived]
    for row, of in zip(rows, apart, strict=True):
        row[: len(of.udp_payload)] = np.frombuffer(of.udp_payload, np.uint8)[:row_bytes]
    return Batch(
        rows,
        np.array([min(len(of.udp_payload), row_bytes) for of in apart], np.uint32),
        np.array([list(of.sport + of.src) for of in apart], np.uint8).reshape(len(arrived), -1),
        np.zeros(len(arrived), np.int64),
        np.array([owner for _, owner in arrived], np.intp),
        np.array([of.tos for of in apart], np.uint8),
    )


def _plainly(arrived: Sequence[tuple[bytes, int]]) -> list[packets.Packet | None]:
    """Each packet as the plain codec reads it."""
    found = []
    for packet, owner in arrived:
        of = parts(packet)
        found.append(packets.parse(of.udp_payload, of.sport + of.src, ips_of(packet)[owner]))
    return found


def ips_of(packet: bytes) -> Ips:
    """The receivers' addresses of a packet's version of IP."""
    return IPS if packet[0] >> 4 == 4 else IPS6


def _values(found: Packets) -> list[tuple[int, ...]]:
    columns = (found.opcodes, found.sizes, found.words.tolist(), found.addresses, found.immediates)
    return list(zip(*columns, strict=True))


def _check(arrived: Sequence[tuple[bytes, int]], found: Arrivals) -> None:
    """Every intact packet is in one run or one reply, with all that the plain codec sees in it."""
    plain = _plainly(arrived)
    rows: list[int] = []
    for run in found.runs:
        rows += run.rows
        for k, (row, values) in enumerate(zip(run.rows, _values(run.packets), strict=True)):
            packet, owner = plain[row], arrived[row][1]
            assert packet is not None
            assert (run.owner, run.qpn, (run.psn + k) % 2**24) == (owner, packet.qpn, packet.psn)
            address = packet.reth.address if packet.reth else 0
            word = packets.read_payload(packet.payload)[0]
            assert values == (packet.opcode, len(packet.payload), word, address, packet.immediate or 0)
        these = [plain[row] for row in run.rows]
        assert run.ack_requested == any(p is not None and p.ack_requested for p in these)
        assert run.marked == sum(parts(arrived[row][0]).tos & 3 == CE for row in run.rows)
    intact = [row for row, p in enumerate(plain) if p is not None and p.intact]
    is_write = {row: p is not None and p.opcode in packets.WRITES for row, p in enumerate(plain)}
    assert sorted(rows) == [row for row in intact if is_write[row]]
    assert found.replies == [(row, plain[row]) for row in intact if not is_write[row]]
    assert found.foreign == plain.count(None)
    assert found.damaged == len(plain) - len(intact) - found.foreign


def _read(arrived: Sequence[tuple[bytes, int]]) -> Iterator[Arrivals]:
    """As a small batch is read, and as a large one is."""
    reader = FrameReader(MTU, ips_of(arrived[0][0]))
    for small in (len(arrived), 0):
        with patch.object(incoming, "_SMALL", small):
            yield reader.read(_batch(arrived, reader.row_bytes))


def _owned(packet: bytes) -> tuple[bytes, int]:
    of = parts(packet)
    return packet, [of.layer.packed(ip) for ip in ips_of(packet)].index(of.dst)


@settings(max_examples=80)
@given(several, st.randoms(use_true_random=False), st.booleans())
def test_a_batch_is_read_as_the_plain_codec_reads_its_packets(
    added: list[tuple[Envelope, tuple[Run, Words], int]], random: Random, shuffled: bool
) -> None:
    sent = [packet for to, (run, words), every in added for packet in _plain(to, run, words.tolist(), every)]
    sent += [packets.pack_ip(to, packets.pack_ack(to, run.psn, 0x1F, 3)) for to, (run, _), _ in added[:2]]
    sent += [packets.pack_ip(to, packets.pack_cnp(to)) for to, _, _ in added[:1]]
    sent += [packets.pack_ip(to, packets.pack_probe(to, run.psn)) for to, (run, _), _ in added[:1]]
    if shuffled:
        random.shuffle(sent)
    arrived = [_owned(packet) for packet in sent]
    for found in _read(arrived):
        _check(arrived, found)


@settings(max_examples=80)
@given(envelopes, runs(), st.data())
def test_damage_anywhere_is_noticed_as_the_plain_codec_notices_it(
    to: Envelope, added: tuple[Run, Words], data: st.DataObject
) -> None:
    arrived = []
    for packet in _plain(to, added[0], added[1].tolist(), 16):
        broken = bytearray(packet)
        if data.draw(st.booleans()):
            begin = len(broken) - len(parts(packet).udp_payload)
            broken[data.draw(st.integers(begin, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        arrived.append(_owned(bytes(broken)))
    for found in _read(arrived):
        _check(arrived, found)


@pytest.mark.parametrize("ips", [IPS, IPS6])
def test_every_single_bit_of_every_layout_counts(ips: Ips) -> None:
    to = Envelope(_SOURCES[ips][0], ips[1], 0xC111, 5)
    for size, immediate in ((3 * MTU, 77), (MTU, 77), (MTU, None)):
        run = Run(WorkRequest(0, size, 2**63 + 9, immediate), 0, size // MTU, 2**24 - 1, again=False)
        for packet in _plain(to, run, range(run.count), 16):
            whole = [_owned(packet)] * 6
            assert [found.damaged for found in _read(whole)] == [0, 0]
            flipped = []
            begin = len(packet) - len(parts(packet).udp_payload)
            for bit in range(begin * 8, len(packet) * 8):
                broken = bytearray(packet)
                broken[bit // 8] ^= 1 << bit % 8
                if bit // 8 != begin + 4:  # the byte that switches may change
                    flipped.append(_owned(bytes(broken)))
            assert [found.runs for found in _read(flipped)] == [[], []]


@given(st.lists(st.tuples(st.binary(max_size=400), st.integers(0, 1)), min_size=1, max_size=9), st.booleans())
def test_hostile_datagrams_are_damaged_or_foreign(datagrams: list[tuple[bytes, int]], over_ipv4: bool) -> None:
    head = b"\x40" + bytes(27) if over_ipv4 else b"\x60" + bytes(47)
    arrived = [(head + datagram, owner) for datagram, owner in datagrams]
    for found in _read(arrived):
        assert (found.runs, found.replies) == ([], [])
        assert found.damaged + found.foreign == len(arrived)


def test_a_longer_packet_is_not_taken_for_one_that_was_cut_to_fit() -> None:
    to = Envelope("10.0.0.1", IPS[0], 0xC111, 5)
    packet = packets.pack_write(to, Opcode.WRITE_MIDDLE, 0, bytes(MTU * 2), ack_requested=False)
    found = _read([_owned(packets.pack_ip(to, packet))] * 8)
    assert [each.damaged for each in found] == [8, 8]


def test_a_payload_that_pad_makes_full_is_read_without_its_pad() -> None:
    to = Envelope("10.0.0.1", IPS[0], 0xC111, 5)
    arrived = []
    for k in range(8):
        run = Run(WorkRequest(0, MTU - 1, 0), 0, 1, k, again=False)
        arrived += [_owned(packet) for packet in _plain(to, run, [k], 1)]
    for found in _read(arrived):
        _check(arrived, found)
        assert [list(run.packets.sizes) for run in found.runs] == [[MTU - 1] * 8]


def test_runs_end_where_psns_are_not_consecutive_and_go_on_over_the_wrap() -> None:
    to = Envelope("10.0.0.1", IPS[0], 0xC111, 5)
    psns = [2**24 - 2, 2**24 - 1, 0, 1, 3, 4, 4, 2]
    sent = [packets.pack_write(to, Opcode.WRITE_MIDDLE, psn, bytes([90] * MTU), ack_requested=psn == 1) for psn in psns]
    for found in _read([_owned(packets.pack_ip(to, packet)) for packet in sent]):
        assert [(run.psn, len(run.packets), run.ack_requested) for run in found.runs] == [
            (2**24 - 2, 4, True),
            (3, 2, False),
            (4, 1, False),
            (2, 1, False),
        ]


def test_the_last_psn_of_a_queue_pair_is_not_followed_by_the_first_of_the_next() -> None:
    arrived = []
    for qpn, psn in ((6, 2**24 - 1), (7, 0), (7, 1), (5, 0)):
        to = Envelope("10.0.0.1", IPS[0], 0xC111, qpn)
        packet = packets.pack_write(to, Opcode.WRITE_MIDDLE, psn, bytes([90] * MTU), ack_requested=False)
        arrived.append(_owned(packets.pack_ip(to, packet)))
    for found in _read(arrived):
        assert [(run.qpn, run.psn, list(run.rows)) for run in found.runs] == [
            (5, 0, [3]),
            (6, 2**24 - 1, [0]),
            (7, 0, [1, 2]),
        ]


def test_full_packets_bear_a_congestion_mark_in_their_bth() -> None:
    to = Envelope("10.0.0.1", IPS[0], 0xC111, 5)
    run = Run(WorkRequest(0, 8 * MTU, 0), 0, 8, 0, again=False)
    arrived = [_owned(packet[:32] + b"\xc0" + packet[33:]) for packet in _plain(to, run, range(8), 1)]
    for found in _read(arrived):
        _check(arrived, found)
        assert found.damaged == 0
