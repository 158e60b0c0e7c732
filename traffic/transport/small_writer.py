"""Writer of a few packets, one at a time: numpy's fixed cost for a tick is that of some 20 packets here."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from hpn.traffic.flows.framing import BTH_BYTES, ICRC_BYTES
from hpn.traffic.flows.ip_layer import IpLayer
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.streams import wire
from hpn.traffic.transport.packets import (
    PAYLOAD_HEAD_BYTES,
    WITH_IMMEDIATE,
    WITH_RETH,
    Envelope,
    Opcode,
    Reth,
    extension_bytes,
    opcode_of,
    pack_ip,
    pack_payload,
    pack_write,
)
from hpn.traffic.transport.write_entries import Entry

_PSN = struct.Struct(">I")
_RETH = struct.Struct(">QII")
_IMMEDIATE = struct.Struct(">I")
_PAYLOAD = struct.Struct("<Qq")
_ACK = struct.Struct(">II")  # PSN, AETH
_PSN_AT = 8  # offset after UDP


@dataclass(frozen=True, slots=True)
class _Layout:
    """Common part of full-size packets of one path with one opcode, or of its acknowledgements."""

    head: bytes  # IP, UDP and the BTH up to the PSN
    seed: int  # the CRC over the covered part of it


class _Path:
    """An envelope with its derived data."""

    def __init__(self, envelope: Envelope, ack_every: int, ip: IpLayer) -> None:
        self.envelope = envelope
        self.ack_every = ack_every
        self.name = ip.sockaddr(envelope.via or envelope.dst_ip)
        self.layouts: dict[Opcode, _Layout] = {}


class FewWriter:
    """Writer into ``rows`` at a cost for each packet; ``traffic.transport.writer`` has one for large ticks."""

    def __init__(self, rows: PacketRows, path_mtu: int) -> None:
        self._rows = rows
        self._path_mtu = path_mtu
        self._fill_bytes = path_mtu - PAYLOAD_HEAD_BYTES
        self._fill = bytes([wire.FILL]) * self._fill_bytes
        self._paths: dict[int, _Path] = {}

    def set_path(self, number: int, envelope: Envelope, ack_every: int) -> None:
        """Use this envelope for packets written to that path from now on."""
        self._paths[number] = _Path(envelope, ack_every, self._rows.ip)

    def acknowledgement(self, path: int, psn: int, syndrome: int, msn: int) -> bytes:
        """Return an acknowledgement as ``traffic.transport.packets.pack_ack``, in its IP packet; ``psn`` and ``msn`` of
        24 bits."""
        of = self._paths[path]
        layout = of.layouts.get(Opcode.ACKNOWLEDGE) or self._lay_out(of, Opcode.ACKNOWLEDGE, 0)
        rest = _ACK.pack(psn, syndrome << 24 | msn)
        return layout.head + rest + zlib.crc32(rest, layout.seed).to_bytes(ICRC_BYTES, "little")

    def write(self, first: int, entries: Sequence[Entry]) -> int:
        """Fill rows from ``first`` on; return the row after the last."""
        at = first
        for entry in entries:
            if entry.ready:
                self._rows.place(at, entry.ready)
                self._rows.address(at, self._paths[entry.numbers[0]].name)
            else:
                self.write_part(at, entry, 0, entry.packets)
            at += entry.packets
        return at

    def write_part(self, at: int, entry: Entry, start: int, stop: int) -> None:
        """Fill the rows of a run's packets from ``start`` to before ``stop``; the first of them has row ``at``."""
        number, psn, first, count, packets, size, immediate, sent_ns, ack_last = entry.numbers
        path, rows, fill = self._paths[number], self._rows, self._fill
        tag = None if immediate < 0 else immediate
        for k, word in enumerate(entry.words[start:stop].tolist(), start):
            index = first + k
            last = index == packets - 1
            asks = (last and not entry.quiet) or (index + 1) % path.ack_every == 0 or (ack_last and k == count - 1)
            opcode = opcode_of(index, packets, tag)
            rows.address(at + k, path.name)
            if last and size % self._path_mtu:
                payload = pack_payload(word, sent_ns, size % self._path_mtu)
                place_odd(rows, at + k, path.envelope, opcode, (psn + k) & wire.PSN_MASK, payload, entry)
                continue
            layout = path.layouts.get(opcode) or self._lay_out(path, opcode, self._path_mtu)
            rest = _PSN.pack((psn + k) & wire.PSN_MASK | (wire.ACK_REQUEST if asks else 0))
            if opcode in WITH_RETH:
                rest += _RETH.pack(entry.address, path.envelope.r_key, size)
            if opcode in WITH_IMMEDIATE:
                rest += _IMMEDIATE.pack(immediate)
            rest += _PAYLOAD.pack(word, sent_ns)
            icrc = zlib.crc32(fill, zlib.crc32(rest, layout.seed))
            rows.place(at + k, layout.head + rest, self._fill_bytes, icrc.to_bytes(ICRC_BYTES, "little"))

    def _lay_out(self, path: _Path, opcode: Opcode, payload_bytes: int) -> _Layout:
        to = path.envelope
        body_bytes = BTH_BYTES + extension_bytes(opcode) + payload_bytes
        bth = bytes([opcode, wire.BTH_FLAGS, *wire.P_KEY.to_bytes(2, "big"), 0, *to.qpn.to_bytes(3, "big")])
        masked = bth[:4] + b"\xff" + bth[5:]
        seed = zlib.crc32(wire.pseudo_header(to.src_ip, to.dst_ip, to.sport, 0, body_bytes) + masked)
        whole = pack_ip(to, bth + bytes(body_bytes + ICRC_BYTES - len(bth)))
        layout = path.layouts[opcode] = _Layout(whole[: -(body_bytes + ICRC_BYTES - _PSN_AT)], seed)
        return layout


def place_odd(rows: PacketRows, row: int, to: Envelope, opcode: Opcode, psn: int, payload: bytes, entry: Entry) -> None:
    """Write the last packet of a message whose size is no multiple of the path MTU."""
    size, immediate = entry.numbers[5], entry.numbers[6]
    udp_payload = pack_write(
        to,
        opcode,
        psn,
        payload,
        ack_requested=True,
        reth=Reth(entry.address, size) if opcode in WITH_RETH else None,
        immediate=immediate if opcode in WITH_IMMEDIATE else None,
    )
    whole = pack_ip(to, udp_payload)
    head = len(whole) - len(udp_payload) + BTH_BYTES + extension_bytes(opcode) + PAYLOAD_HEAD_BYTES
    fill = max(len(payload) - PAYLOAD_HEAD_BYTES, 0)
    rows.place(row, whole[:head], fill, whole[head + fill :])
