"""Writer of packets that take many paths: each is a WRITE of its own, with its own address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hpn.traffic.flows.framing import BTH_BYTES, ICRC_BYTES, RETH_BYTES, data_bytes
from hpn.traffic.flows.ip_layer import UDP_BYTES
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.streams import wire
from hpn.traffic.transport.icrc import EXTENSIONS, WriteIcrc
from hpn.traffic.transport.packets import PAYLOAD_HEAD_BYTES, Opcode
from hpn.traffic.transport.path_tables import PathTables
from hpn.traffic.transport.small_writer import FewWriter
from hpn.traffic.transport.write_entries import Entry

_PSN_AT = 8  # after UDP
_VARYING = np.dtype(
    [("psn", ">u4"), ("address", ">u8"), ("key", ">u4"), ("size", ">u4"), ("word", "<u8"), ("sent_ns", "<i8")]
)
"""Varying fields of full-size packets, contiguous in their heads: PSN, RETH and the payload's head."""
_SMALL = 8  # packets up to which one at a time is faster
_LAYOUT = EXTENSIONS.index(RETH_BYTES)
_U64 = (1 << 64) - 1
_ASK = wire.ACK_REQUEST >> 24  # in the first byte of the word that holds the PSN


class ManyPathsWriter:
    """Writer into ``rows`` for packets of one path MTU on the paths of ``tables``."""

    def __init__(self, rows: PacketRows, path_mtu: int, tables: PathTables, icrc: WriteIcrc, few: FewWriter) -> None:
        self._rows, self._path_mtu, self._tables, self._few = rows, path_mtu, tables, few
        self._icrc = icrc
        self._icrcs = rows.tails.view("<u4")[:, 0]
        self._offsets = np.concatenate(
            [
                icrc.offsets(RETH_BYTES, _PSN_AT, 4),
                icrc.offsets(RETH_BYTES, BTH_BYTES, RETH_BYTES),
                icrc.offsets(RETH_BYTES, BTH_BYTES + RETH_BYTES, PAYLOAD_HEAD_BYTES),
            ]
        )
        self._opcode_icrc = icrc.of_columns(RETH_BYTES, 0, np.array([[Opcode.WRITE_ONLY]], np.uint8))[0]
        ip, udp_bytes = rows.ip, UDP_BYTES + data_bytes(path_mtu) + RETH_BYTES
        self._ip_at, self._udp_at = ip.LENGTH_AT, ip.HEADER_BYTES + 4
        self._ip_size = np.frombuffer((udp_bytes + ip.LENGTH_OF_HEADER).to_bytes(2, "big"), np.uint8)
        self._udp_size = np.frombuffer(udp_bytes.to_bytes(2, "big"), np.uint8)

    def write(self, first: int, entries: Sequence[Entry]) -> int:
        """Fill rows from ``first`` on; return the row after the last."""
        at = first
        full: list[tuple[int, Entry, int]] = []  # row, entry and count of its packets that are not the last
        for entry in entries:
            if entry.ready:
                self._few.write(at, [entry])
            else:
                _, _, index, count, packets = entry.numbers[:5]
                ends = index + count == packets
                if count > ends:
                    full.append((at, entry, count - ends))
                if ends:
                    self._one(at + count - 1, entry, count - 1, ends=True)
            at += entry.packets
        if sum([count for _, _, count in full]) > _SMALL:
            self._write_full(full)
        else:
            for row, entry, count in full:
                for k in range(count):
                    self._one(row + k, entry, k, ends=False)
        return at

    def _one(self, row: int, entry: Entry, k: int, *, ends: bool) -> None:
        """Write packet ``k`` of an entry by itself."""
        _, psn, first, _, _, size, immediate, sent_ns, _ = entry.numbers
        address = (first + k) * self._path_mtu
        payload = min(self._path_mtu, size - address)
        path = entry.paths[k]
        numbers = (path, psn + k & wire.PSN_MASK, 0, 1, 1, payload, immediate if ends else -1, sent_ns, 0)
        asks = ends or self._asks(entry, k)
        alone = Entry(1, numbers, entry.address + address, entry.words[k : k + 1], quiet=not asks)
        self._few.write_part(row, alone, 0, 1)

    def _asks(self, entry: Entry, k: int) -> bool:
        """Return True if packet ``k`` of an entry, not the last of its message, requests an acknowledgement."""
        _, _, first, count, _, _, _, _, ack_last = entry.numbers
        return (first + k + 1) % self._tables.ack_every[entry.paths[0]] == 0 or (bool(ack_last) and k == count - 1)

    def _write_full(self, runs: Sequence[tuple[int, Entry, int]]) -> None:
        """Write full-size packets."""
        rows = np.concatenate([np.arange(row, row + count) for row, _, count in runs])
        path = np.array([path for _, entry, count in runs for path in entry.paths[:count]])
        raw = self._varying(runs)
        heads, common = self._rows.heads, self._tables.common
        end = common + RETH_BYTES + PAYLOAD_HEAD_BYTES
        heads[rows, :common] = self._tables.heads[path]
        heads[rows, common - 4 : end] = raw
        heads[rows, common - BTH_BYTES] = Opcode.WRITE_ONLY
        heads[rows, self._ip_at : self._ip_at + 2] = self._ip_size
        heads[rows, self._udp_at : self._udp_at + 2] = self._udp_size
        self._rows.names[rows] = self._tables.names[path]
        constant = self._tables.icrcs[path, _LAYOUT] ^ self._opcode_icrc
        self._icrcs[rows] = constant ^ self._icrc.of_offsets(self._offsets, raw)
        self._rows.lengths[rows] = end, self._path_mtu - PAYLOAD_HEAD_BYTES, ICRC_BYTES

    def _varying(self, runs: Sequence[tuple[int, Entry, int]]) -> wire.U8:
        """Return the varying bytes of the first ``count`` packets of each entry."""
        of_runs, asking, total = [], list[int](), 0
        for _, entry, count in runs:
            path, number, index, _, _, _, _, at_ns, _ = entry.numbers
            address = entry.address + (index - total) * self._path_mtu
            of_runs.append((number - total & _U64, address & _U64, self._tables.envelopes[path].r_key, at_ns))
            asking += [total + at for at in self._asking(entry, count)]
            total += count
        psn, begin, key, sent_ns = (
            np.array(column, np.uint64).repeat([count for _, _, count in runs]) for column in zip(*of_runs, strict=True)
        )
        place = np.arange(total, dtype=np.uint64)
        varying = np.empty(total, _VARYING)
        varying["psn"] = psn + place & np.uint64(wire.PSN_MASK)
        varying["address"] = begin + place * np.uint64(self._path_mtu)
        varying["key"], varying["size"] = key, self._path_mtu
        varying["word"] = np.concatenate([entry.words[:count] for _, entry, count in runs])
        varying["sent_ns"] = sent_ns
        raw = varying.view(np.uint8).reshape(total, -1)
        raw[asking, 0] |= _ASK
        return raw

    def _asking(self, entry: Entry, count: int) -> Iterator[int]:
        """Yield those of the first ``count`` packets of an entry that request an acknowledgement."""
        _, _, first, whole, _, _, _, _, ack_last = entry.numbers
        every = self._tables.ack_every[entry.paths[0]]
        yield from range((-1 - first) % every, count, every)
        if ack_last and count == whole:
            yield count - 1
