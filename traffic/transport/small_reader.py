"""Reader of small batches, packet by packet: numpy's fixed cost for a batch is that of some 25 packets here."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from hpn.traffic.flows.framing import BTH_BYTES, ICRC_BYTES, IMMEDIATE_BYTES
from hpn.traffic.flows.ip_layer import IPV4, layer_of
from hpn.traffic.io.recvmmsg import Batch
from hpn.traffic.streams import wire
from hpn.traffic.transport.arrivals import NUMBERS, Arrivals, ArrivedRun, Trimmed, read_trimmed
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import (
    CE,
    DSCP_SHIFT,
    ECN_MASK,
    PAD_MASK,
    PAD_SHIFT,
    WITH_IMMEDIATE,
    WITH_RETH,
    WRITES,
    Packet,
    extension_bytes,
    icrc_seed,
    is_intact,
    parse,
)

_ADDRESS = struct.Struct(">Q")
_IMMEDIATE = struct.Struct(">I")
_QPN_BITS = 24
_BEGINS = {int(opcode): BTH_BYTES + extension_bytes(opcode) for opcode in WRITES}
_HALF = 1 << 23

_Write = tuple[int, int, int, int, int, int, bool, int]
"""PSN with the acknowledgement request, opcode, payload bytes, word, address, immediate, marked, row."""


def source_bytes(ips: Sequence[str]) -> int:
    """Return the bytes of UDP source port and IP source address of packets to these addresses, all of one version."""
    return 2 + (layer_of(ips[0]) if ips else IPV4).ADDRESS_BYTES


class FewReader:
    """Reader of batches of any size, at a cost for each packet; ``incoming`` has one for large batches."""

    def __init__(self, ips: Sequence[str], *, many_paths: bool = False, trimmed_dscp: int | None = None) -> None:
        """Create a reader; ``many_paths``: runs are in the order of their PSNs, with the source port of each packet.

        ``trimmed_dscp``: of packets that a switch has cut; None: these count as damaged.
        """
        self._ips = tuple(ips)
        self._source_bytes = source_bytes(ips)
        self._many_paths = many_paths
        self._trimmed_dscp = trimmed_dscp

    def read(self, batch: Batch) -> Arrivals:
        """Parse a batch; its owners are indexes in ``ips``."""
        found: dict[int, list[_Write]] = {}
        replies: list[tuple[int, Packet]] = []
        trimmed: list[Trimmed] = []
        foreign = damaged = 0
        sources, size = batch.sources.tobytes(), self._source_bytes
        rows = batch.rows[: len(batch.lengths)] if batch.places is None else batch.rows[batch.places]
        about = zip(rows, batch.lengths.tolist(), batch.owners.tolist(), batch.tos.tolist(), strict=True)
        for row, (memory, length, owner, tos) in enumerate(about):
            udp_payload = memory[:length].tobytes()
            source, ip = sources[size * row : size * (row + 1)], self._ips[owner]
            if tos >> DSCP_SHIFT == self._trimmed_dscp and (cut := read_trimmed(udp_payload, owner, source)):
                trimmed.append(cut)
                continue
            begin = _BEGINS.get(udp_payload[0]) if length else None
            if begin is None:
                packet = parse(udp_payload, source, ip)
                if packet is None:
                    foreign += 1
                elif packet.intact:
                    replies.append((row, packet))
                else:
                    damaged += 1
                continue
            end = length - ICRC_BYTES - (udp_payload[1] >> PAD_SHIFT & PAD_MASK) if length > 1 else 0
            if begin > end:
                foreign += 1
            elif not is_intact(udp_payload, icrc_seed(source, ip, length - ICRC_BYTES)):
                damaged += 1
            else:
                qpn, write = _read_write(udp_payload, begin, end, tos & ECN_MASK == CE, row)
                found.setdefault(owner << _QPN_BITS | qpn, []).append(write)
        runs = _runs(found)
        if self._many_paths:
            for writes in found.values():
                begin = writes[0][0]
                writes.sort(key=lambda write: (write[0] - begin + _HALF) & wire.PSN_MASK)  # used at once
            runs = (_with_values(run, sources, size, batch) for run in runs)
        return Arrivals(list(runs), replies, damaged, foreign, trimmed)


def _read_write(udp_payload: bytes, begin: int, end: int, marked: bool, row: int) -> tuple[int, _Write]:
    """Return the QPN and the other fields of an intact write with its payload from ``begin`` to ``end``."""
    qpn, psn = NUMBERS.unpack_from(udp_payload, 4)
    opcode = udp_payload[0]
    word = int.from_bytes(udp_payload[begin : min(begin + 8, end)], "little")
    address = _ADDRESS.unpack_from(udp_payload, BTH_BYTES)[0] if opcode in WITH_RETH else 0
    immediate = _IMMEDIATE.unpack_from(udp_payload, begin - IMMEDIATE_BYTES)[0] if opcode in WITH_IMMEDIATE else 0
    return qpn & wire.QPN_MASK, (psn, opcode, end - begin, word, address, immediate, marked, row)


def _runs(found: dict[int, list[_Write]]) -> Iterator[ArrivedRun]:
    """Yield runs by queue pair, then in order of arrival, split where PSNs are not consecutive."""
    for key in sorted(found):
        writes = found[key]
        start = 0
        for stop in range(1, len(writes) + 1):
            if stop == len(writes) or (writes[stop][0] - writes[stop - 1][0]) & wire.PSN_MASK != 1:
                yield _run(key, writes[start:stop])
                start = stop


def _with_values(run: ArrivedRun, sources: bytes, size: int, batch: Batch) -> ArrivedRun:
    """Return a run with the source port of each packet; ``size`` of a source in bytes."""
    at = [size * row for row in run.rows]
    values = [sources[begin] << 8 | sources[begin + 1] for begin in at]
    if not run.marked:
        return run._replace(values=values)
    marks = [value for value, row in zip(values, run.rows, strict=True) if batch.tos[row] & ECN_MASK == CE]
    return run._replace(values=values, marks=marks)


def _run(key: int, writes: list[_Write]) -> ArrivedRun:
    psns, opcodes, sizes, words, addresses, immediates, marks, rows = zip(*writes, strict=True)
    packets = Packets(bytes(opcodes), sizes, np.array(words, np.uint64), addresses, immediates)
    asked = any(psn & wire.ACK_REQUEST for psn in psns)
    first = psns[0] & wire.PSN_MASK
    return ArrivedRun(key >> _QPN_BITS, key & wire.QPN_MASK, first, asked, sum(marks), rows, packets)
