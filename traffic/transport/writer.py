"""Writer of a whole tick with numpy: runs of packets become rows of headers, words, send times and ICRCs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hpn.traffic.flows.framing import BTH_BYTES, ICRC_BYTES, RETH_BYTES, data_bytes
from hpn.traffic.flows.ip_layer import UDP_BYTES, IpLayer
from hpn.traffic.io.sendmmsg import HEAD_BYTES, PacketRows
from hpn.traffic.streams import wire
from hpn.traffic.transport.icrc import EXTENSIONS, Places, WriteIcrc
from hpn.traffic.transport.many_paths_writer import ManyPathsWriter
from hpn.traffic.transport.packets import (
    PAYLOAD_HEAD_BYTES,
    WITH_RETH,
    WRITES,
    Envelope,
    Opcode,
    extension_bytes,
    opcode_of,
)
from hpn.traffic.transport.path_tables import PathTables
from hpn.traffic.transport.small_writer import FewWriter
from hpn.traffic.transport.write_entries import Entry

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_PSN_AT = 8  # after UDP
_VARYING = np.dtype([("psn", ">u4"), ("word", "<u8"), ("sent_ns", "<i8")])
"""Varying fields of a path's packets that are neither first nor last; contiguous in their heads."""
_EXTENSION = np.dtype([("address", ">u8"), ("key", ">u4"), ("size", ">u4"), ("immediate", ">u4")])  # RETH, ImmDt
_SMALL, _FEW = 12, 6  # packets of a tick, and ends of a kind, up to which one at a time is faster
_PATH, _PSN, _COUNT, _SIZE, _IMMEDIATE, _SENT = 0, 1, 3, 5, 6, 7  # places in the numbers of an entry


_ASK = wire.ACK_REQUEST >> 24  # in the first byte of the word that holds the PSN


def _lengths(ip: IpLayer) -> np.dtype[np.void]:
    """Return the fields of a head that follow from a packet's opcode."""
    udp = ip.HEADER_BYTES
    offsets = [ip.LENGTH_AT, udp + 4, udp + UDP_BYTES]
    return np.dtype(
        {"names": ["ip", "udp", "opcode"], "formats": [">u2", ">u2", "u1"], "offsets": offsets, "itemsize": HEAD_BYTES}
    )


class _End(NamedTuple):
    """The first or last packet of a message: its row, and its offset in a run."""

    row: int
    entry: Entry
    offset: int


class FrameWriter:
    """Writer into ``rows`` for packets of one path MTU on opened paths."""

    def __init__(self, rows: PacketRows, path_mtu: int) -> None:
        self._path_mtu = path_mtu
        self._rows = rows
        self._icrcs = rows.tails.view("<u4")[:, 0]
        self._sizes = rows.heads.view(_lengths(rows.ip))[:, 0]
        self._counting = np.arange(rows.capacity)
        self._icrc = WriteIcrc(path_mtu, rows.ip)
        self._tables = PathTables(path_mtu, self._icrc)
        self._common = self._tables.common
        self._varying_at = slice(self._common - 4, self._common + PAYLOAD_HEAD_BYTES)
        self._few = FewWriter(rows, path_mtu)
        self._many = ManyPathsWriter(rows, path_mtu, self._tables, self._icrc, self._few)
        self._offsets = {extension: self._offsets_of(extension) for extension in EXTENSIONS}
        self._opcode_icrcs = {
            opcode: self._icrc.of_columns(extension_bytes(opcode), 0, np.array([[opcode]], np.uint8))[0]
            for opcode in WRITES
        }

    def _offsets_of(self, extension: int) -> Places:
        """Return the table offsets of the bytes in ``_VARYING``."""
        payload = self._icrc.offsets(extension, BTH_BYTES + extension, PAYLOAD_HEAD_BYTES)
        return np.concatenate([self._icrc.offsets(extension, _PSN_AT, 4), payload])

    @property
    def envelopes(self) -> Sequence[Envelope]:
        """Envelopes of the opened paths."""
        return self._tables.envelopes

    def open_path(self, envelope: Envelope, ack_every: int) -> int:
        """Open a path; return its number. Every ``ack_every``-th packet of a message and its last request an ACK."""
        path = self._tables.open(envelope, ack_every)
        self._few.set_path(path, envelope, ack_every)
        return path

    def move_path(self, path: int, envelope: Envelope) -> None:
        """Use another envelope for packets written to ``path`` from now on."""
        self._tables.move(path, envelope)
        self._few.set_path(path, envelope, self._tables.ack_every[path])

    def acknowledgement(self, path: int, psn: int, syndrome: int, msn: int) -> bytes:
        """Return an ACK or NAK of ``psn``, without BECN, as an IP packet; ``psn`` and ``msn`` of 24 bits."""
        return self._few.acknowledgement(path, psn, syndrome, msn)

    def write(self, first: int, entries: Sequence[Entry]) -> int:
        """Fill rows from ``first`` on with at least one entry; return the row after the last."""
        if any(entry.paths for entry in entries):
            return self._many.write(first, entries)
        if sum([entry.packets for entry in entries]) <= _SMALL:
            return self._few.write(first, entries)
        asking: list[int] = []
        ends: dict[Opcode, list[_End]] = {}
        row = first
        for entry in entries:
            if not entry.ready:
                asking += self._asking(row, entry)
                self._note_ends(row, entry, ends)
            row += entry.packets
        self._write_middles(slice(first, row), entries, asking)
        for opcode, found in ends.items():
            self._write_ends(opcode, found)
        row = first
        for entry in entries:
            if entry.ready:
                self._rows.place(row, entry.ready)
            row += entry.packets
        return row

    def _asking(self, row: int, entry: Entry) -> Sequence[int]:
        """Return the rows of a run whose packets request an acknowledgement, other than the last of a message."""
        path, _, first, count, _, _, _, _, ack_last = entry.numbers
        every = self._tables.ack_every[path]
        asking: Sequence[int] = range(row + (-1 - first) % every, row + count, every)
        return [*asking, row + count - 1] if ack_last else asking

    def _note_ends(self, row: int, entry: Entry, ends: dict[Opcode, list[_End]]) -> None:
        """Record the first and last packet of a message, if the run from ``row`` on has them, by opcode."""
        _, _, first, count, total, _, immediate, _, _ = entry.numbers
        if first == 0 and total > 1:
            ends.setdefault(Opcode.WRITE_FIRST, []).append(_End(row, entry, 0))
        if first + count == total:
            opcode = opcode_of(total - 1, total, None if immediate < 0 else immediate)
            ends.setdefault(opcode, []).append(_End(row + count - 1, entry, count - 1))

    def _write_middles(self, rows: slice, entries: Sequence[Entry], asking: Sequence[int]) -> None:
        """Write all packets as if none were the first or last of its message."""
        runs = np.array([entry.numbers for entry in entries], np.int64)
        counts = runs[:, _COUNT]
        runs[:, _PSN] -= np.cumsum(counts) - counts  # less the place of the first
        path, psn, sent_ns = runs[:, (_PATH, _PSN, _SENT)].repeat(counts, axis=0).T
        varying = np.empty(len(path), _VARYING)
        varying["psn"] = psn + self._counting[: len(path)] & wire.PSN_MASK
        varying["word"] = np.concatenate([entry.words for entry in entries])
        varying["sent_ns"] = sent_ns
        raw = varying.view(np.uint8).reshape(len(varying), -1)
        if asking:
            raw[np.array(asking) - rows.start, 0] = _ASK
        heads = self._rows.heads[rows]
        heads[:, : self._common] = self._tables.heads[path]
        heads[:, self._varying_at] = raw
        self._rows.names[rows] = self._tables.names[path]
        self._icrcs[rows] = self._tables.middle_icrcs[path] ^ self._icrc.of_offsets(self._offsets[0], raw)
        self._rows.lengths[rows] = self._varying_at.stop, self._path_mtu - PAYLOAD_HEAD_BYTES, ICRC_BYTES

    def _write_ends(self, opcode: Opcode, ends: Sequence[_End]) -> None:
        """Write first or last packets of messages over the rows of middle packets."""
        is_last = opcode is not Opcode.WRITE_FIRST
        full = [end for end in ends if not (is_last and end.entry.numbers[_SIZE] % self._path_mtu)]
        if len(full) <= _FEW:
            full = []
        else:
            self._write_full(opcode, full)
        if len(full) < len(ends):
            written = {end.row for end in full}
            for row, entry, offset in ends:
                if row not in written:
                    self._few.write_part(row - offset, entry, offset, offset + 1)

    def _write_full(self, opcode: Opcode, ends: Sequence[_End]) -> None:
        """Write packets with a full payload: another opcode, and RETH and immediate before the payload."""
        extension, heads = extension_bytes(opcode), self._rows.heads
        common, varying_at = self._common, self._varying_at
        start = common + extension
        rows = np.array([end.row for end in ends])
        if opcode is not Opcode.WRITE_FIRST:
            heads[rows, varying_at.start] |= _ASK
        raw = heads[rows, varying_at]
        between = self._extensions(opcode, ends)
        heads[rows, common:start] = between
        heads[rows, start : start + PAYLOAD_HEAD_BYTES] = raw[:, 4:]
        sizes = self._sizes
        udp_bytes = UDP_BYTES + data_bytes(self._path_mtu) + extension
        sizes["ip"][rows] = udp_bytes + self._rows.ip.LENGTH_OF_HEADER
        sizes["udp"][rows] = udp_bytes
        sizes["opcode"][rows] = opcode
        self._rows.lengths[rows, 0] = start + PAYLOAD_HEAD_BYTES
        path = [end.entry.numbers[_PATH] for end in ends]
        constant = self._tables.icrcs[path, EXTENSIONS.index(extension)] ^ self._opcode_icrcs[opcode]
        varying = self._icrc.of_offsets(self._offsets[extension], raw)
        self._icrcs[rows] = constant ^ varying ^ self._icrc.of_columns(extension, BTH_BYTES, between)

    def _extensions(self, opcode: Opcode, ends: Sequence[_End]) -> wire.U8:
        """Return the headers between BTH and payload."""
        found = np.empty(len(ends), _EXTENSION)
        found["address"] = np.array([end.entry.address for end in ends], np.uint64)
        found["key"] = [self.envelopes[end.entry.numbers[_PATH]].r_key for end in ends]
        found["size"] = [end.entry.numbers[_SIZE] for end in ends]
        found["immediate"] = [max(end.entry.numbers[_IMMEDIATE], 0) for end in ends]
        begin = 0 if opcode in WITH_RETH else RETH_BYTES
        return found.view(np.uint8).reshape(len(ends), -1)[:, begin : begin + extension_bytes(opcode)]
