"""A large batch of received packets becomes runs and replies: full-size writes with numpy, all else one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traffic import wire
from traffic.framing import BTH_BYTES, ICRC_BYTES, IMMEDIATE_BYTES, RETH_BYTES
from traffic.rc.arrivals import Arrivals, ArrivedRun
from traffic.rc.fewread import FewReader
from traffic.rc.icrc import EXTENSIONS, WriteIcrc
from traffic.rc.inbox import Packets
from traffic.rc.packets import (
    CE,
    ECN_MASK,
    PAD_MASK,
    PAD_SHIFT,
    PAYLOAD_HEAD_BYTES,
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
_BITS = 24  # of a PSN, and of a queue pair number
_OTHER = len(EXTENSIONS)  # the layout of all that is no full-size write
_ZERO = np.zeros(1, np.intp)
_FEW = 5  # packets of a layout up to which one at a time is faster
_SMALL = 14  # and of a batch


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
        self._destinations = [
            np.array([self._icrc.of_destination(extension, ip) for ip in ips], np.uint32) for extension in EXTENSIONS
        ]
        self._tables = [self._icrc.received(extension) for extension in EXTENSIONS]
        self._layout = np.full(256, _OTHER, np.uint8)
        self._full_bytes = np.full(256, _NEVER, np.uint32)
        for opcode in WRITES:
            self._layout[opcode] = EXTENSIONS.index(extension_bytes(opcode))
            self._full_bytes[opcode] = BTH_BYTES + extension_bytes(opcode) + path_mtu + ICRC_BYTES

    def read(self, batch: Batch) -> Arrivals:
        """Take a batch apart; its owners are indexes in ``ips``."""
        if len(batch.lengths) <= _SMALL:
            return self._few.read(batch)
        raw = np.ascontiguousarray(batch.rows[:, :_HEAD_BYTES])
        found = _Found(raw[:, 0], self._path_mtu)
        for row in self._read_full(batch, raw, found):
            self._read_one(row, batch, found)
        damaged = len(raw) - int(np.count_nonzero(found.intact)) - len(found.replies) - found.foreign
        return Arrivals(_runs(batch, raw.view(_HEAD)[:, 0], found), found.replies, damaged, found.foreign)

    def _read_full(self, batch: Batch, raw: wire.U8, found: _Found) -> list[int]:
        """Full-size writes of layouts that many have; the rows of all other packets."""
        opcode = raw[:, 0]
        full = (batch.lengths == self._full_bytes[opcode]) & (raw[:, 1] & (PAD_MASK << PAD_SHIFT) == 0)
        layouts = np.where(full, self._layout[opcode], _OTHER)
        counts = np.bincount(layouts, minlength=_OTHER + 1).tolist()
        many = [layout for layout in range(_OTHER) if counts[layout] > _FEW]
        if not many:
            return list(range(len(raw)))
        solid = self._solid(batch)
        for layout in many:
            which = slice(None) if counts[layout] == len(raw) else (layouts == layout).nonzero()[0]
            found.intact[which] = solid[which]
            self._read_layout(layout, which, batch, raw, found)
        if sum(counts[layout] for layout in many) == len(raw):
            return []
        others = [layout not in many for layout in range(_OTHER + 1)]
        alone: list[int] = np.array(others)[layouts].nonzero()[0].tolist()
        return alone

    def _solid(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """Whether what is payload behind the head in full-size packets of every layout is the fill."""
        words = batch.rows[:, _HEAD_BYTES : BTH_BYTES + self._path_mtu].view(np.uint64)
        solid: npt.NDArray[np.bool_] = (words == _FILL_WORD).all(axis=1)
        return solid

    def _read_layout(self, layout: int, which: Which, batch: Batch, raw: wire.U8, found: _Found) -> None:
        """Full-size writes with one extension between BTH and payload; they are intact if ``found`` says so."""
        extension = EXTENSIONS[layout]
        begin, end = BTH_BYTES + extension, BTH_BYTES + extension + self._path_mtu
        head = raw[which, : begin + PAYLOAD_HEAD_BYTES]
        covered = np.concatenate([batch.sources[which], head], axis=1)
        covered[:, 6 + _RESERVED] = 0
        expected = wire.look_up(self._tables[layout], covered) ^ self._destinations[layout][batch.owners[which]]
        carried = np.ascontiguousarray(batch.rows[which, end : end + ICRC_BYTES]).view("<u4")[:, 0]
        intact = found.intact[which] & (expected == carried)
        intact &= (raw[which, begin + PAYLOAD_HEAD_BYTES :] == wire.FILL).all(axis=1)
        if extension:  # its payload ends that much later
            intact &= (batch.rows[which, BTH_BYTES + self._path_mtu : end] == wire.FILL).all(axis=1)
        found.intact[which] = intact
        found.word[which] = _column(head, begin, "<u8")
        if extension >= RETH_BYTES:
            found.address[which] = _column(head, BTH_BYTES, ">u8")
        if extension % RETH_BYTES:
            found.immediate[which] = _column(head, begin - IMMEDIATE_BYTES, ">u4")

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


def _column(rows: wire.U8, at: int, kind: str) -> npt.NDArray[np.uint64]:
    """The numbers that stand at byte ``at`` of each row."""
    size = np.dtype(kind).itemsize
    found: npt.NDArray[np.uint64] = np.ascontiguousarray(rows[:, at : at + size]).view(kind)[:, 0]
    return found


def _runs(batch: Batch, head: npt.NDArray[np.void], found: _Found) -> list[ArrivedRun]:
    """The intact writes: by queue pair, then as they came, cut where PSNs are not consecutive or begin again."""
    rows = found.intact.nonzero()[0]
    if not len(rows):
        return []
    number = head["psn"][rows].astype(np.int64)
    pair = batch.owners[rows] << _BITS | head["qpn"][rows] & wire.QPN_MASK
    if (pair[1:] < pair[:-1]).any():
        order = np.argsort(pair, kind="stable")
        rows, number, pair = rows[order], number[order], pair[order]
    place = pair << _BITS + 1 | number & wire.PSN_MASK  # one bit more: the last PSN of a pair is not next to another's
    step = place[1:] - place[:-1]
    cuts = ((step != 1) & (step != -wire.PSN_MASK)).nonzero()[0]  # the latter is from the last PSN to 0
    starts = np.concatenate([_ZERO, cuts + 1])
    asked = np.bitwise_or.reduceat(number, starts)
    marks = batch.tos[rows] & ECN_MASK == CE
    marked = np.add.reduceat(marks, starts, dtype=np.int64)
    packets, places = found.packets(rows), rows.tolist()
    stops = [*starts[1:].tolist(), len(rows)]
    firsts = zip(pair[starts].tolist(), number[starts].tolist(), asked.tolist(), marked.tolist(), strict=True)
    return [
        ArrivedRun(
            *(of >> _BITS, of & wire.QPN_MASK, psn & wire.PSN_MASK, bool(asks & wire.ACK_REQUEST), count),
            places[start:stop],
            packets.part(start, stop),
        )
        for start, stop, (of, psn, asks, count) in zip(starts.tolist(), stops, firsts, strict=True)
    ]
