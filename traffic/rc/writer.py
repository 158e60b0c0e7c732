"""Runs of packets become rows in memory: headers, words, send times and ICRCs of a whole tick, written with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from socket import inet_aton

import numpy as np
import numpy.typing as npt

from traffic import wire
from traffic.framing import BTH_BYTES, ICRC_BYTES, IP_UDP_BYTES, ip_bytes
from traffic.rc.entries import Entry
from traffic.rc.fewwrite import FewWriter, place_odd
from traffic.rc.icrc import EXTENSIONS, WriteIcrc
from traffic.rc.packets import (
    PAYLOAD_HEAD_BYTES,
    R_KEY,
    RETH_BYTES,
    Envelope,
    Opcode,
    extension_bytes,
    pack_ip,
    pack_payload,
)
from traffic.sendmmsg import HEAD_BYTES, PacketRows, sockaddr

I64 = npt.NDArray[np.int64]
Record = npt.NDArray[np.void]

_COMMON = IP_UDP_BYTES + BTH_BYTES  # what every head begins with
_PATH = np.dtype([("head", "u1", _COMMON), ("name", "u1", 16), ("icrc", "u4", len(EXTENSIONS)), ("ack_every", "i8")])
_VARYING = np.dtype([("psn", ">u4"), ("word", "<u8"), ("sent_ns", "<i8")])  # in each packet, also of one path
_PSN_AT = 8  # offset after UDP
_IP_BYTES = 20
_HEAD = np.dtype(
    {
        "names": ["ip_bytes", "udp_bytes", "opcode", "psn", "word", "sent_ns"],
        "formats": [">u2", ">u2", "u1", ">u4", "<u8", "<i8"],
        "offsets": [2, 24, 28, 36, 40, 48],
        "itemsize": HEAD_BYTES,
    }
)
_EXTENSION = np.dtype([("address", ">u8"), ("key", ">u4"), ("size", ">u4"), ("immediate", ">u4")])  # RETH, ImmDt

_FIRST, _LAST, _IMMEDIATE = 1, 2, 4  # a packet's kind is their sum
_OF_KIND = {
    _FIRST: Opcode.WRITE_FIRST,
    _LAST: Opcode.WRITE_LAST,
    _LAST | _FIRST: Opcode.WRITE_ONLY,
    _LAST | _IMMEDIATE: Opcode.WRITE_LAST_IMMEDIATE,
    _LAST | _FIRST | _IMMEDIATE: Opcode.WRITE_ONLY_IMMEDIATE,
}
_OPCODES = tuple(_OF_KIND.get(kind, Opcode.WRITE_MIDDLE) for kind in range(8))
_EXTENSIONS = tuple(extension_bytes(opcode) for opcode in _OPCODES)

_SMALL = 20  # packets of a tick up to which one at a time is faster


@dataclass(frozen=True, slots=True)
class _Packets:
    """What is known of each packet."""

    path: I64
    kind: I64
    extension: I64  # bytes between BTH and payload
    varying: Record
    size: I64  # of its message, in bytes
    immediate: I64  # -1: none
    address: npt.NDArray[np.uint64]
    odd: npt.NDArray[np.bool_]  # its payload is shorter than the path MTU

    def of(self, which: I64 | slice) -> _Packets:
        """Some of them."""
        w = which
        one = self.path[w], self.kind[w], self.extension[w], self.varying[w]
        return _Packets(*one, self.size[w], self.immediate[w], self.address[w], self.odd[w])


class FrameWriter:
    """Fills ``rows`` for packets of one path MTU on paths that it knows."""

    def __init__(self, rows: PacketRows, path_mtu: int) -> None:
        self.envelopes: list[Envelope] = []
        self._path_mtu = path_mtu
        self._rows = rows
        self._heads = rows.heads.view(_HEAD)[:, 0]
        self._icrcs = rows.tails.view("<u4")[:, 0]
        self._counting = np.arange(rows.capacity)
        self._paths = np.zeros(16, _PATH)
        self._icrc = WriteIcrc(path_mtu)
        self._few = FewWriter(rows, path_mtu)
        self._tabulate()

    def _tabulate(self) -> None:
        """What follows from a packet's kind alone."""
        icrc, kinds = self._icrc, range(len(_OPCODES))
        self._opcode = np.array(_OPCODES, np.uint8)
        self._extension = np.array(_EXTENSIONS, np.int64)
        self._layout = np.array([EXTENSIONS.index(extension) for extension in _EXTENSIONS])
        opcodes = self._opcode.reshape(-1, 1, 1)
        self._opcode_icrc = np.concatenate([icrc.of_columns(_EXTENSIONS[kind], 0, opcodes[kind]) for kind in kinds])
        self._offsets = np.array(
            [[*icrc.offsets(e, _PSN_AT, 4), *icrc.offsets(e, BTH_BYTES + e, PAYLOAD_HEAD_BYTES)] for e in _EXTENSIONS]
        )

    def open_path(self, envelope: Envelope, ack_every: int) -> int:
        """Know a path; its number. Every ``ack_every``-th packet of a message, and its last, asks for an answer."""
        path = len(self.envelopes)
        if path == len(self._paths):
            self._paths = np.concatenate([self._paths, np.zeros_like(self._paths)])
        self.envelopes.append(envelope)
        self._paths["ack_every"][path] = ack_every
        self.move_path(path, envelope)
        return path

    def move_path(self, path: int, envelope: Envelope) -> None:
        """What is written for ``path`` from now on has another envelope."""
        self.envelopes[path] = envelope
        self._few.set_path(path, envelope, int(self._paths["ack_every"][path]))
        bth = bytes([0, wire.BTH_FLAGS, *wire.P_KEY.to_bytes(2, "big"), 0, *envelope.qpn.to_bytes(3, "big"), *bytes(4)])
        row = self._paths[path : path + 1]
        row["head"] = np.frombuffer(pack_ip(envelope, bth), np.uint8)
        row["name"] = sockaddr(envelope.dst_ip)
        headers = np.frombuffer(bth, np.uint8).reshape(1, BTH_BYTES)
        source = np.frombuffer(envelope.sport.to_bytes(2, "big") + inet_aton(envelope.src_ip), np.uint8).reshape(1, 6)
        for layout, extension in enumerate(EXTENSIONS):
            varying = self._icrc.of_columns(extension, 0, headers) ^ self._icrc.of_sources(extension, source)
            row["icrc"][:, layout] = varying ^ np.uint32(self._icrc.of_destination(extension, envelope.dst_ip))

    def write(self, first: int, entries: Sequence[Entry]) -> int:
        """Fill rows from ``first`` on with at least one entry; the row behind the last."""
        if sum(entry.count for entry in entries) <= _SMALL:
            return self._few.write(first, entries)
        packets = self._spread(entries)
        end = first + len(packets.path)
        self._write_full(slice(first, end), packets)
        for extension in EXTENSIONS[1:]:
            extended = np.flatnonzero(packets.extension == extension)
            if len(extended):
                self._extend(first + extended, extension, packets.of(extended))
        odd = set(np.flatnonzero(packets.odd).tolist())
        at = first
        for entry in entries:
            last = at + entry.count - 1
            if entry.ready:
                self._rows.place(at, entry.ready)
            elif last - first in odd:
                self._write_odd(last, packets.of(slice(last - first, last - first + 1)), entry)
            at = last + 1
        return end

    def _spread(self, entries: Sequence[Entry]) -> _Packets:
        """What is known of each packet, from what is known of the runs."""
        runs = np.array([entry.numbers for entry in entries], np.int64).T
        ends = np.cumsum(runs[3])
        run = np.repeat(self._counting[: len(entries)], runs[3])
        path, psn, index, _, packets, size, immediate, sent_ns, _ = runs[:, run]
        offset = self._counting[: len(run)] - (ends - runs[3])[run]
        index += offset
        last = index == packets - 1
        ask = last | ((index + 1) % self._paths["ack_every"][path] == 0)
        ask[ends - 1] |= runs[8] != 0
        varying = np.empty(len(run), _VARYING)
        varying["psn"] = (psn + offset) & wire.PSN_MASK | np.where(ask, wire.ACK_REQUEST, 0)
        varying["word"] = np.concatenate([entry.words for entry in entries])
        varying["sent_ns"] = sent_ns
        kind = (index == 0) * _FIRST + last * _LAST + (last & (immediate >= 0)) * _IMMEDIATE
        addresses = np.array([entry.address for entry in entries], np.uint64)
        odd = last & (size != packets * self._path_mtu)
        return _Packets(path, kind, self._extension[kind], varying, size, immediate, addresses[run], odd)

    def _write_full(self, rows: slice, packets: _Packets) -> None:
        """Packets with a full payload, apart from what stands between the BTH and the payload."""
        kind, extension, varying = packets.kind, packets.extension, packets.varying
        self._rows.heads[rows, :_COMMON] = self._paths["head"][packets.path]
        self._rows.names[rows] = self._paths["name"][packets.path]
        heads = self._heads[rows]
        heads["ip_bytes"] = ip_bytes(self._path_mtu) + extension
        heads["udp_bytes"] = ip_bytes(self._path_mtu) - _IP_BYTES + extension
        heads["opcode"] = self._opcode[kind]
        for name in _VARYING.names or ():
            heads[name] = varying[name]
        raw = varying.view(np.uint8).reshape(len(varying), -1)
        constant = self._paths["icrc"][packets.path, self._layout[kind]] ^ self._opcode_icrc[kind]
        self._icrcs[rows] = constant ^ self._icrc.of_offsets(self._offsets[kind], raw)
        lengths = self._rows.lengths[rows]
        lengths[:, 0] = _COMMON + PAYLOAD_HEAD_BYTES + extension
        lengths[:, 1] = self._path_mtu - PAYLOAD_HEAD_BYTES
        lengths[:, 2] = ICRC_BYTES

    def _extend(self, rows: I64, extension: int, packets: _Packets) -> None:
        """Put RETH and immediate, as many as ``extension`` has room for, in front of the payload of ``rows``."""
        extensions = np.empty(len(rows), _EXTENSION)
        extensions["address"], extensions["key"] = packets.address, R_KEY
        extensions["size"], extensions["immediate"] = packets.size, packets.immediate & 0xFFFFFFFF
        begin = 0 if extension >= RETH_BYTES else RETH_BYTES
        raw = extensions.view(np.uint8).reshape(len(rows), -1)[:, begin : begin + extension]
        heads, start = self._rows.heads, _COMMON + extension
        heads[rows, start : start + PAYLOAD_HEAD_BYTES] = heads[rows, _COMMON : _COMMON + PAYLOAD_HEAD_BYTES]
        heads[rows, _COMMON:start] = raw
        self._icrcs[rows] ^= self._icrc.of_columns(extension, BTH_BYTES, raw)

    def _write_odd(self, row: int, packet: _Packets, entry: Entry) -> None:
        """The one packet of ``packet``, the last of a message whose size is no multiple of the path MTU."""
        word, sent_ns = int(packet.varying["word"][0]), int(packet.varying["sent_ns"][0])
        payload = pack_payload(word, sent_ns, entry.numbers[5] % self._path_mtu)
        psn = int(packet.varying["psn"][0]) & wire.PSN_MASK
        opcode = _OPCODES[int(packet.kind[0])]
        place_odd(self._rows, row, self.envelopes[entry.numbers[0]], opcode, psn, payload, entry)
