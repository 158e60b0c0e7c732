"""A large batch of received packets becomes runs and replies: full-size writes with numpy, all else one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traffic import wire
from traffic.framing import BTH_BYTES, ICRC_BYTES
from traffic.rc.arrivals import Arrivals, ArrivedRun
from traffic.rc.fewread import FewReader
from traffic.rc.icrc import EXTENSIONS, WriteIcrc
from traffic.rc.inbox import Packets
from traffic.rc.packets import (
    CE,
    ECN_MASK,
    IMMEDIATE_BYTES,
    PAD_MASK,
    PAD_SHIFT,
    PAYLOAD_HEAD_BYTES,
    RETH_BYTES,
    WRITES,
    Packet,
    extension_bytes,
    parse,
    read_payload,
)
from traffic.recvmmsg import Batch

I64 = npt.NDArray[np.int64]
Which = npt.NDArray[np.intp] | slice

_HEAD_BYTES = 52  # no layout's head is longer; with the 4 bytes that rows are shifted by, a multiple of 8
_HEAD = np.dtype(
    {
        "names": ["opcode", "flags", "qpn", "psn"],
        "formats": ["u1", "u1", ">u4", ">u4"],
        "offsets": [0, 1, 4, 8],
        "itemsize": _HEAD_BYTES,
    }
)
_RESERVED = 4  # offset of the byte that the ICRC leaves out
_NEVER = 0xFFFFFFFF
_FILL_WORD = np.uint64(int.from_bytes(bytes([wire.FILL] * 8), "little"))
_QPN_BITS = 24
_ZERO = np.zeros(1, np.intp)
_FEW = 5  # packets of a layout up to which one at a time is faster
_SMALL = 24  # and of a batch


class _Found:
    """What is known of the rows of a batch while it is read; of a write only where it is intact."""

    def __init__(self, opcode: wire.U8, path_mtu: int) -> None:
        count = len(opcode)
        self.intact = np.zeros(count, np.bool_)  # and a write
        self.opcode = opcode
        self.size_bytes = np.full(count, path_mtu, np.int64)
        self.word = np.zeros(count, np.uint64)
        self.address = np.zeros(count, np.uint64)
        self.immediate = np.zeros(count, np.uint32)
        self.replies: list[tuple[int, Packet]] = []
        self.foreign = 0

    def packets(self, rows: npt.NDArray[np.intp]) -> Packets:
        """The writes at ``rows``."""
        return Packets(
            self.opcode[rows].tobytes(),
            self.size_bytes[rows].tolist(),
            self.word[rows],
            self.address[rows].tolist(),
            self.immediate[rows].tolist(),
        )


class FrameReader:
    """Reads packets with up to ``path_mtu`` bytes of payload, sent to ``ips``; rows must have ``row_bytes``.

    A longer packet is cut to fit and so has a wrong ICRC. Of full-size packets the payload behind the first 16 bytes is
    compared with our fill, which then stands for itself in the ICRC.
    """

    def __init__(self, path_mtu: int, ips: Sequence[str]) -> None:
        self.row_bytes = BTH_BYTES + EXTENSIONS[-1] + path_mtu + ICRC_BYTES
        self._path_mtu = path_mtu
        self._ips = tuple(ips)
        self._few = FewReader(ips)
        self._icrc = WriteIcrc(path_mtu)
        self._destinations = {
            extension: np.array([self._icrc.of_destination(extension, ip) for ip in ips], np.uint32)
            for extension in EXTENSIONS
        }
        self._extension = np.zeros(256, np.uint8)
        self._full_bytes = np.full(256, _NEVER, np.uint32)
        for opcode in WRITES:
            self._extension[opcode] = extension_bytes(opcode)
            self._full_bytes[opcode] = BTH_BYTES + extension_bytes(opcode) + path_mtu + ICRC_BYTES

    def read(self, batch: Batch) -> Arrivals:
        """Take a batch apart; its owners are indexes in ``ips``."""
        if len(batch.lengths) <= _SMALL:
            return self._few.read(batch)
        raw = np.ascontiguousarray(batch.rows[:, :_HEAD_BYTES])
        head = raw.view(_HEAD)[:, 0]
        full = batch.lengths == self._full_bytes[head["opcode"]]
        full &= head["flags"] & (PAD_MASK << PAD_SHIFT) == 0
        found = _Found(head["opcode"], self._path_mtu)
        extensions = self._extension[head["opcode"]]
        layouts = [(extension, np.flatnonzero(full & (extensions == extension))) for extension in EXTENSIONS]
        alone = np.concatenate([np.flatnonzero(~full), *(which for _, which in layouts if len(which) <= _FEW)])
        if len(alone) < len(raw):
            solid = self._solid(batch)
            for extension, which in layouts:
                if len(which) > _FEW:
                    found.intact[which] = solid[which]
                    self._read_layout(extension, which if len(which) < len(raw) else slice(None), batch, raw, found)
        for row in alone.tolist():
            self._read_one(row, batch, found)
        damaged = len(raw) - int(np.count_nonzero(found.intact)) - len(found.replies) - found.foreign
        return Arrivals(_runs(batch, head, found), found.replies, damaged, found.foreign)

    def _solid(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Whether what is payload behind the head in full-size packets of every layout is the fill."""
        words = batch.rows[:, _HEAD_BYTES : BTH_BYTES + self._path_mtu].view(np.uint64)
        solid: npt.NDArray[np.bool_] = (words == _FILL_WORD).all(axis=1)
        return solid

    def _read_layout(self, extension: int, which: Which, batch: Batch, raw: wire.U8, found: _Found) -> None:
        """Full-size writes with ``extension`` bytes between BTH and payload; they are intact if ``found`` says so."""
        begin, end = BTH_BYTES + extension, BTH_BYTES + extension + self._path_mtu
        head = raw[which, : begin + PAYLOAD_HEAD_BYTES]
        payload = np.ascontiguousarray(head[:, begin:])
        masked = head.copy()
        masked[:, _RESERVED] = 0
        expected = self._icrc.of_columns(extension, 0, masked) ^ self._icrc.of_sources(extension, batch.sources[which])
        expected ^= self._destinations[extension][batch.owners[which]]
        carried = np.ascontiguousarray(batch.rows[which, end : end + ICRC_BYTES]).view("<u4")[:, 0]
        edges = (raw[which, begin + PAYLOAD_HEAD_BYTES :], batch.rows[which, BTH_BYTES + self._path_mtu : end])
        for edge in edges:
            found.intact[which] &= (edge == wire.FILL).all(axis=1)
        found.intact[which] &= expected == carried
        found.word[which] = payload.view("<u8")[:, 0]
        if extension >= RETH_BYTES:
            found.address[which] = np.ascontiguousarray(head[:, BTH_BYTES : BTH_BYTES + 8]).view(">u8")[:, 0]
        if extension % RETH_BYTES:
            found.immediate[which] = np.ascontiguousarray(head[:, begin - IMMEDIATE_BYTES : begin]).view(">u4")[:, 0]

    def _read_one(self, row: int, batch: Batch, found: _Found) -> None:
        """A reply, a write of any size, or neither."""
        udp_payload = batch.rows[row, : batch.lengths[row]].tobytes()
        packet = parse(udp_payload, batch.sources[row].tobytes(), self._ips[batch.owners[row]])
        if packet is None:
            found.foreign += 1
        elif packet.intact and packet.opcode in WRITES:
            found.intact[row] = True
            found.size_bytes[row] = len(packet.payload)
            found.word[row] = read_payload(packet.payload)[0]
            found.address[row] = packet.reth.address if packet.reth else 0
            found.immediate[row] = packet.immediate or 0
        elif packet.intact:
            found.replies.append((row, packet))


def _runs(batch: Batch, head: npt.NDArray[np.void], found: _Found) -> list[ArrivedRun]:
    """The intact writes: by queue pair, then as they came, cut where PSNs are not consecutive."""
    rows = np.flatnonzero(found.intact)
    if not len(rows):
        return []
    key = batch.owners[rows] << _QPN_BITS | head["qpn"][rows].astype(np.int64) & wire.QPN_MASK
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        rows, key = rows[order], key[order]
    numbers = head["psn"][rows].astype(np.int64)
    cuts = (key[1:] != key[:-1]) | ((numbers[1:] - numbers[:-1] & wire.PSN_MASK) != 1)
    starts = np.concatenate([_ZERO, np.flatnonzero(cuts) + 1])
    asked = np.bitwise_or.reduceat(numbers & wire.ACK_REQUEST, starts) != 0
    marked = np.add.reduceat((batch.tos[rows] & ECN_MASK == CE).astype(np.int64), starts)
    packets = found.packets(rows)
    stops = [*starts[1:].tolist(), len(rows)]
    about = zip(key[starts].tolist(), numbers[starts].tolist(), asked.tolist(), marked.tolist(), strict=True)
    places = rows.tolist()
    return [
        ArrivedRun(
            *(owner_qpn >> _QPN_BITS, owner_qpn & wire.QPN_MASK, number & wire.PSN_MASK, ask, marks),
            places[start:stop],
            packets.part(start, stop),
        )
        for start, stop, (owner_qpn, number, ask, marks) in zip(starts.tolist(), stops, about, strict=True)
    ]
