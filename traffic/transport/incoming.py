"""Reader of large batches: received packets become runs and replies. Full-size writes use numpy, the rest is one by
one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hpn.traffic.flows.framing import BTH_BYTES, ICRC_BYTES
from hpn.traffic.flows.ip_layer import IPV4, layer_of
from hpn.traffic.io.recvmmsg import Batch
from hpn.traffic.streams import wire
from hpn.traffic.transport.arrivals import Arrivals, ArrivedRun, Trimmed, read_trimmed
from hpn.traffic.transport.icrc import EXTENSIONS, WriteIcrc
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import (
    CE,
    DSCP_SHIFT,
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
from hpn.traffic.transport.small_reader import FewReader, source_bytes

I64 = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

_HEAD_BYTES = 52  # no layout's head is longer; with the 4 bytes that rows are shifted by, a multiple of 8
_TAIL_BYTES = EXTENSIONS[-1] + ICRC_BYTES  # bytes after the end of the payload of the shortest layout
_RESERVED = 4  # offset of the byte that the ICRC excludes
_NEVER = 0xFFFFFFFF
_FILL_WORD = np.uint64(int.from_bytes(bytes([wire.FILL] * 8), "little"))
_BITS = 24  # of a PSN, and of a queue pair number
_OTHER = len(EXTENSIONS)  # the layout of everything but full-size writes
_SMALL = 14  # packets of a batch up to which one at a time is faster


class _Layouts:
    """Full-size writes as one table, so that those of all layouts are checked together.

    A packet is split into its source, head and tail. Depending on the layout, each byte is covered by the ICRC, or part
    of the ICRC, or neither. Covered bytes count from zero or, in the fill, from the fill value. The bytes of the ICRC
    are looked up too, each as itself. The XOR over all bytes is then the contribution of the destination alone.
    """

    def __init__(self, path_mtu: int, ips: Sequence[str]) -> None:
        icrc = WriteIcrc(path_mtu, layer_of(ips[0]) if ips else IPV4)
        source = source_bytes(ips)
        bytes_ = source + _HEAD_BYTES + _TAIL_BYTES
        itself = [np.arange(256, dtype=np.uint32) << np.uint32(8 * k) for k in range(ICRC_BYTES)]
        parts = [np.zeros(256, np.uint32), *itself]
        self.offsets = np.zeros((_OTHER + 1, bytes_), np.intp)
        for layout, extension in enumerate(EXTENSIONS):
            table = icrc.received(extension).reshape(-1, 256).copy()
            table[source + _RESERVED] = 0
            head = _HEAD_BYTES - BTH_BYTES - extension  # bytes of the payload in the head
            filled = icrc.filled([*range(PAYLOAD_HEAD_BYTES, head), *range(path_mtu - extension, path_mtu)])
            tail = source + _HEAD_BYTES + extension
            self.offsets[layout, :tail] = 256 * (len(parts) + np.arange(tail))
            self.offsets[layout, tail : tail + ICRC_BYTES] = 256 * np.arange(1, ICRC_BYTES + 1)
            parts += [*table, *filled]
        self.table = np.concatenate(parts)
        of_ips = [[icrc.of_destination(extension, ip) for ip in ips] for extension in EXTENSIONS]
        self.destinations = np.array([*of_ips, [0] * len(ips)], np.uint32)
        lengths = [BTH_BYTES + extension + path_mtu + ICRC_BYTES for extension in EXTENSIONS]
        self.full_bytes = np.array([*lengths, _NEVER], np.uint32)
        # By opcode and, in the byte above, the flags, as the two are in memory.
        self.of = np.full(1 << 16, _OTHER, np.uint8)
        for flags in range(256):
            if not flags & PAD_MASK << PAD_SHIFT:
                for opcode in WRITES:
                    self.of[flags << 8 | opcode] = EXTENSIONS.index(extension_bytes(opcode))


class Found:
    """Fields of the packets of a batch while it is read; those of a write are valid only if it is intact.

    ``bth_at``: offset of the BTH in each row.
    """

    def __init__(self, seen: wire.U8, path_mtu: int, bth_at: int) -> None:
        self.opcode = seen[:, bth_at]
        self.numbers = columns(seen, bth_at + 4, ">u4", 2)  # QPN and PSN, each with its flags
        self.word = columns(seen, bth_at + BTH_BYTES, "<u8", 1)[:, 0]
        self.sizes = [path_mtu] * len(seen)
        self.address = [0] * len(seen)
        self.immediate = [0] * len(seen)
        self.replies: list[tuple[int, Packet]] = []
        self.trimmed: list[Trimmed] = []
        self.foreign = 0


class FrameReader:
    """Reader of packets with up to ``path_mtu`` bytes of payload, sent to ``ips``; rows must have ``row_bytes``.

    A longer packet is truncated and so has a wrong ICRC. In full-size packets the payload after the first 16 bytes is
    compared with our fill, whose ICRC contribution is known. ``trimmed_dscp`` as in ``FewReader``.
    """

    MANY_PATHS = False  # True: the packets of a queue pair take many paths, so runs are in the order of their PSNs

    def __init__(self, path_mtu: int, ips: Sequence[str], trimmed_dscp: int | None = None) -> None:
        self.row_bytes = BTH_BYTES + EXTENSIONS[-1] + path_mtu + ICRC_BYTES
        self._path_mtu = path_mtu
        self._ips = tuple(ips)
        self.ip = layer_of(ips[0]) if ips else IPV4
        self._bth_at = source_bytes(ips)
        self._trimmed_dscp = trimmed_dscp
        self._few = FewReader(ips, many_paths=self.MANY_PATHS, trimmed_dscp=trimmed_dscp)
        self._layouts = _Layouts(path_mtu, ips)

    def read(self, batch: Batch) -> Arrivals:
        """Parse a batch; its owners are indexes in ``ips``."""
        if len(batch.lengths) <= _SMALL:
            return self._few.read(batch)
        which = slice(len(batch.lengths)) if batch.places is None else batch.places
        head, tail = batch.rows[which, :_HEAD_BYTES], batch.rows[which, self.row_bytes - _TAIL_BYTES :]
        seen = np.concatenate([batch.sources, head, tail], axis=1)
        found = Found(seen, self._path_mtu, self._bth_at)
        layout = self._layouts.of[columns(seen, self._bth_at, "<u2", 1)[:, 0]]
        full = batch.lengths == self._layouts.full_bytes[layout]
        intact = full & self._are_intact(layout, seen, batch.owners) & self._solid(batch, which)
        self._read_extended((intact & (layout != 0)).nonzero()[0], layout, seen, found)
        for row in (~full).nonzero()[0].tolist():
            intact[row] = self._read_one(row, batch, found)
        read = int(np.count_nonzero(intact)) + len(found.replies) + len(found.trimmed) + found.foreign
        return Arrivals(self._runs(batch, intact, found), found.replies, len(seen) - read, found.foreign, found.trimmed)

    def _are_intact(self, layout: wire.U8, seen: wire.U8, owners: Rows) -> npt.NDArray[np.bool_]:
        """Return True where the ICRC is right if the bytes outside head and tail are the fill."""
        of = self._layouts
        icrc = np.bitwise_xor.reduce(of.table[of.offsets[layout] + seen], axis=1)
        right: npt.NDArray[np.bool_] = icrc == of.destinations[layout, owners]
        return right

    def _solid(self, batch: Batch, which: Rows | slice) -> npt.NDArray[np.bool_] | np.bool_:
        """Return True where the bytes between head and tail are the fill."""
        last = len(batch.lengths) if isinstance(which, slice) else int(which[-1]) + 1
        same = batch.rows[:last, _HEAD_BYTES : BTH_BYTES + self._path_mtu].view(np.uint64) == _FILL_WORD
        if same.all():  # always, except for damage; rows keep stale bytes after a reply
            return np.True_
        solid: npt.NDArray[np.bool_] = same.all(axis=1)[which]
        return solid

    def _read_extended(self, rows: Rows, layout: wire.U8, seen: wire.U8, found: Found) -> None:
        """Read intact full-size packets with headers between BTH and payload: few, if messages are long."""
        for row in rows.tolist():
            self._read_ends(row, EXTENSIONS[layout[row]], seen, found)

    def _runs(self, batch: Batch, intact: npt.NDArray[np.bool_], found: Found) -> list[ArrivedRun]:
        """Return the runs of intact writes."""
        return _runs(batch, intact, found)

    def _read_ends(self, row: int, extension: int, seen: wire.U8, found: Found) -> None:
        """Read the headers between BTH and payload of a first or last packet, and the word after them."""
        begin = self._bth_at + BTH_BYTES
        between = seen[row, begin : begin + extension + 8].tobytes()
        found.word[row] = int.from_bytes(between[extension:], "little")
        if extension >= 16:
            found.address[row] = int.from_bytes(between[:8], "big")
        if extension % 16:
            found.immediate[row] = int.from_bytes(between[extension - 4 : extension], "big")

    def _read_one(self, row: int, batch: Batch, found: Found) -> bool:
        """Read a reply, a write of any size, or a foreign packet; return True if it is an intact write."""
        place = row if batch.places is None else batch.places[row]
        udp_payload, source = batch.rows[place, : batch.lengths[row]].tobytes(), batch.sources[row].tobytes()
        if batch.tos[row] >> DSCP_SHIFT == self._trimmed_dscp:
            cut = read_trimmed(udp_payload, int(batch.owners[row]), source)
            if cut is not None:
                found.trimmed.append(cut)
                return False
        packet = parse(udp_payload, source, self._ips[batch.owners[row]])
        if packet is None:
            found.foreign += 1
        elif packet.intact and packet.opcode in WRITES:
            found.sizes[row] = len(packet.payload)
            found.word[row] = read_payload(packet.payload)[0]
            found.address[row] = packet.reth.address if packet.reth else 0
            found.immediate[row] = packet.immediate or 0
            return True
        elif packet.intact:
            found.replies.append((row, packet))
        return False


def columns(rows: wire.U8, at: int, kind: str, count: int) -> npt.NDArray[np.uint64]:
    """Return ``count`` numbers that begin at byte ``at`` of each row."""
    size = count * np.dtype(kind).itemsize
    found: npt.NDArray[np.uint64] = np.ascontiguousarray(rows[:, at : at + size]).view(kind)
    return found


def _runs(batch: Batch, intact: npt.NDArray[np.bool_], found: Found) -> list[ArrivedRun]:
    """Return the intact writes: by queue pair, then in order of arrival, split where PSNs are not consecutive or
    restart."""
    rows = intact.nonzero()[0]
    if not len(rows):
        return []
    numbers = found.numbers[rows].astype(np.int64)
    pair = batch.owners[rows] << _BITS | numbers[:, 0] & wire.QPN_MASK
    psn = numbers[:, 1]
    place = pair << _BITS + 1 | psn & wire.PSN_MASK  # one bit more keeps the last PSN apart from the next pair
    step = place[1:] - place[:-1]
    cut = step != 1
    if (step < 0).any():
        if (pair[1:] < pair[:-1]).any():
            order = np.argsort(pair, kind="stable")
            rows, psn, pair, place = rows[order], psn[order], pair[order], place[order]
            step = place[1:] - place[:-1]
        cut = (step != 1) & (step != -wire.PSN_MASK)  # the latter is from the last PSN to 0
    stops = [at + 1 for at in cut.nonzero()[0].tolist()]
    marks = batch.tos[rows] & ECN_MASK == CE
    return list(_cut(rows, psn.tolist(), pair.tolist(), [*stops, len(rows)], marks, found))


def _cut(
    rows: Rows, psns: list[int], pairs: list[int], stops: list[int], marks: npt.NDArray[np.bool_], found: Found
) -> Iterator[ArrivedRun]:
    """Yield runs that end before each of ``stops``."""
    opcodes, words, places = found.opcode[rows].tobytes(), found.word[rows], rows.tolist()
    marked = bool(marks.any())
    start = 0
    for stop in stops:
        of, these = pairs[start], places[start:stop]
        packets = Packets(
            opcodes[start:stop],
            _these(found.sizes, these),
            words[start:stop],
            _these(found.address, these),
            _these(found.immediate, these),
        )
        asked = max(psns[start:stop]) >= wire.ACK_REQUEST
        count = int(np.count_nonzero(marks[start:stop])) if marked else 0
        psn = psns[start] & wire.PSN_MASK
        yield ArrivedRun(of >> _BITS, of & wire.QPN_MASK, psn, asked, count, these, packets)
        start = stop


def _these(values: list[int], rows: list[int]) -> list[int]:
    """Return the values of ``rows``, which ascend; most runs are contiguous, and a slice is the cheapest."""
    first, last = rows[0], rows[-1]
    return values[first : last + 1] if last - first == len(rows) - 1 else [values[row] for row in rows]
