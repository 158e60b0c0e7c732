"""Packets of a reliable connection in RoCEv2, one at a time: RDMA WRITE, ACK, CNP and probe, packed and parsed.

Layouts: IBTA vol. 1, 9.2 (BTH), 9.3.3 (RETH), 9.3.5 (AETH), 9.3.6 (ImmDt), annex A17 (RoCEv2, with A17.9.3 CNP).
``outgoing`` and ``incoming`` do the same for batches; this plain module is their reference implementation.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from hpn.traffic.flows.flow import ROCE_PORT
from hpn.traffic.flows.framing import AETH_BYTES, BTH_BYTES, DETH_BYTES, ICRC_BYTES, IMMEDIATE_BYTES, RETH_BYTES
from hpn.traffic.flows.ip_layer import UDP_BYTES, layer_of, layer_of_packed
from hpn.traffic.streams import wire
from hpn.traffic.transport.telemetry import EMPTY, TRAILER_BYTES, Telemetry, read_trailer

CNP_BYTES = 16
PAYLOAD_HEAD_BYTES = 16
"""Bytes at the start of a payload: the word of its packet (8 bytes) and its send time (8)."""

R_KEY = 0x48504E31
"""Remote key. A host's memory is one region, so one key serves all of ours; connections to other memory use its key."""

ECN_MASK, ECT_0, CE = 0b11, 0b10, 0b11
"""The two low bits of the TOS byte, and two of their values: ECN-capable, marked by a switch (RFC 3168)."""

DSCP_SHIFT = 2
"""Shift of the DSCP in the TOS byte (RFC 2474)."""

PAD_SHIFT, PAD_MASK = 4, 0x3
_BECN = 1 << 30
_RESERVED = 4  # offset of the byte that the ICRC excludes
_BTH = struct.Struct(">BBHII")
_RETH = struct.Struct(">QII")
_WORD = struct.Struct(">I")
_DETH = struct.Struct(">II")
_NOTE_Q_KEY = 0x1234_ABCD  # of RCCL's recovery queue pairs
_PAYLOAD = struct.Struct("<Qq")
_SENT = struct.Struct("<q")
_UDP = struct.Struct(">HHHH")
_INTACT_BYTES = BTH_BYTES + _SENT.size + ICRC_BYTES  # of a probe: what its ICRC covers, and the ICRC
PROBE_BYTES = _INTACT_BYTES + TRAILER_BYTES
"""UDP payload of a probe, and of its echo."""


class Opcode(IntEnum):
    """The first byte of a BTH."""

    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_LAST_IMMEDIATE = 0x09
    WRITE_ONLY = 0x0A
    WRITE_ONLY_IMMEDIATE = 0x0B
    READ_RESPONSE_ONLY = 0x10  # of the multipath transport: its selective acknowledgement
    ACKNOWLEDGE = wire.RC_ACKNOWLEDGE
    UC_SEND_ONLY_IMMEDIATE = 0x25
    UD_SEND_ONLY_IMMEDIATE = 0x65
    CNP = 0x81
    PROBE = 0xC0  # of the manufacturer's range: collects telemetry
    ECHO = 0xC1

    __hash__ = int.__hash__  # Enum's own is Python, and costs as much as the look-up


WITH_TELEMETRY = frozenset({Opcode.PROBE, Opcode.ECHO})
NOTES = frozenset({Opcode.UC_SEND_ONLY_IMMEDIATE, Opcode.UD_SEND_ONLY_IMMEDIATE})
WITH_AETH = frozenset({Opcode.ACKNOWLEDGE, Opcode.READ_RESPONSE_ONLY})
WRITES = frozenset(Opcode) - {Opcode.CNP} - WITH_AETH - NOTES - WITH_TELEMETRY
WITH_RETH = frozenset({Opcode.WRITE_FIRST, Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMMEDIATE})
WITH_IMMEDIATE = frozenset({Opcode.WRITE_LAST_IMMEDIATE, Opcode.WRITE_ONLY_IMMEDIATE}) | NOTES


def extension_bytes(opcode: Opcode) -> int:
    """Return the bytes between the BTH and the payload."""
    if opcode in WITH_AETH:
        return AETH_BYTES
    deth = (opcode is Opcode.UD_SEND_ONLY_IMMEDIATE) * DETH_BYTES
    return deth + (opcode in WITH_RETH) * RETH_BYTES + (opcode in WITH_IMMEDIATE) * IMMEDIATE_BYTES


@dataclass(frozen=True, slots=True)
class Envelope:
    """Common fields of all packets that a queue pair sends on one path."""

    src_ip: str
    dst_ip: str
    sport: int
    qpn: int  # the receiving queue pair's
    tos: int = ECT_0  # DSCP and ECN
    r_key: int = R_KEY  # of the memory that the receiving queue pair writes to
    via: str = ""  # address by whose route the kernel sends; '': ``dst_ip``


class Reth(NamedTuple):
    """Target of a message in the other end's memory."""

    address: int  # 64 bit
    size_bytes: int  # of the message


class Aeth(NamedTuple):
    """Contents of an acknowledgement."""

    syndrome: int
    msn: int


class Packet(NamedTuple):
    """A packet read from the wire."""

    opcode: Opcode
    qpn: int
    psn: int
    ack_requested: bool
    payload: bytes  # without pad
    reth: Reth | None
    immediate: int | None
    aeth: Aeth | None
    intact: bool  # the ICRC is right; if not, no other field is reliable
    becn: bool = False  # the packets that its sender received carried congestion marks
    telemetry: Telemetry | None = None  # of a probe and its echo, which have no payload


def opcode_of(index: int, total: int, immediate: int | None) -> Opcode:
    """Return the opcode of packet ``index`` (from 0) of a message of ``total`` packets."""
    first, last = index == 0, index == total - 1
    if not last:
        return Opcode.WRITE_FIRST if first else Opcode.WRITE_MIDDLE
    if immediate is None:
        return Opcode.WRITE_ONLY if first else Opcode.WRITE_LAST
    return Opcode.WRITE_ONLY_IMMEDIATE if first else Opcode.WRITE_LAST_IMMEDIATE


def pack_payload(word: int, sent_ns: int, size: int) -> bytes:
    """Return a payload of ``size`` bytes: ``word`` and ``sent_ns`` in little endian, then fill; truncated if it is
    shorter."""
    head = _PAYLOAD.pack(word, sent_ns)[:size]
    return head + bytes([wire.FILL]) * (size - len(head))


def read_payload(payload: bytes) -> tuple[int, int]:
    """Return word and send time of a payload; a truncated word is its low bytes, a truncated send time is 0."""
    word = int.from_bytes(payload[:8], "little")
    whole = len(payload) >= PAYLOAD_HEAD_BYTES
    return word, int.from_bytes(payload[8:PAYLOAD_HEAD_BYTES], "little", signed=True) if whole else 0


def pack_write(
    to: Envelope,
    opcode: Opcode,
    psn: int,
    payload: bytes,
    *,
    ack_requested: bool,
    reth: Reth | None = None,
    immediate: int | None = None,
) -> bytes:
    """Return the UDP payload of one packet of an RDMA WRITE, BTH to ICRC; its IP packet must carry id 0 and DF.

    ``reth`` and ``immediate`` must be given exactly if ``opcode`` has them. ValueError if not.
    """
    if (reth is not None) != (opcode in WITH_RETH) or (immediate is not None) != (opcode in WITH_IMMEDIATE):
        raise ValueError(f"{opcode.name} with RETH {reth} and immediate {immediate}")
    pad = -len(payload) & PAD_MASK
    body = _bth(opcode, to.qpn, psn, pad=pad, ack_requested=ack_requested)
    if reth is not None:
        body += _RETH.pack(reth.address, to.r_key, reth.size_bytes)
    if immediate is not None:
        body += _WORD.pack(immediate)
    return _closed(to, body + payload + bytes(pad))


def pack_ack(to: Envelope, psn: int, syndrome: int, msn: int, *, becn: bool = False) -> bytes:
    """Return the UDP payload of an ACK or NAK (``syndrome``) of ``psn``, with the number of completed messages.

    ``becn``: the acknowledged packets carried congestion marks.
    """
    body = _bth(Opcode.ACKNOWLEDGE, to.qpn, psn, marks=becn * _BECN)
    return _closed(to, body + _WORD.pack(syndrome << 24 | msn & wire.PSN_MASK))


def pack_read_response(to: Envelope, psn: int, syndrome: int, msn: int, payload: bytes) -> bytes:
    """Return the UDP payload of an RDMA READ response of one packet; ``payload`` of a multiple of 4 bytes."""
    body = _bth(Opcode.READ_RESPONSE_ONLY, to.qpn, psn) + _WORD.pack(syndrome << 24 | msn & wire.PSN_MASK)
    return _closed(to, body + payload)


def pack_cnp(to: Envelope) -> bytes:
    """Return the UDP payload of a CNP to a queue pair whose packets arrived marked: BECN and 16 zero bytes."""
    return _closed(to, _bth(Opcode.CNP, to.qpn, 0, marks=_BECN) + bytes(CNP_BYTES))


def pack_note(to: Envelope, psn: int, immediate: int, source_qpn: int | None = None) -> bytes:
    """Return the UDP payload of an unreliable message that consists of its immediate only.

    It goes over an unreliable connection, or as a datagram of queue pair ``source_qpn``.
    """
    if source_qpn is None:
        return _closed(to, _bth(Opcode.UC_SEND_ONLY_IMMEDIATE, to.qpn, psn) + _WORD.pack(immediate))
    deth = _DETH.pack(_NOTE_Q_KEY, source_qpn)
    return _closed(to, _bth(Opcode.UD_SEND_ONLY_IMMEDIATE, to.qpn, psn) + deth + _WORD.pack(immediate))


def pack_probe(to: Envelope, sent_ns: int) -> bytes:
    """Return the UDP payload of a probe to a responder, with an empty trailer."""
    return _closed(to, _bth(Opcode.PROBE, to.qpn, 0) + _SENT.pack(sent_ns)) + EMPTY


def pack_echo(to: Envelope, telemetry: Telemetry) -> bytes:
    """Return the UDP payload of the answer to a probe: its send time and its trailer, to the requester."""
    return _closed(to, _bth(Opcode.ECHO, to.qpn, 0) + _SENT.pack(telemetry.sent_ns)) + telemetry.trailer


def pack_ip(to: Envelope, udp_payload: bytes) -> bytes:
    """Return the IP packet around a UDP payload, for a raw socket, which fills in the IP checksum.

    IP id 0 and DF as the ICRC requires. The UDP checksum is 0, that is none: the ICRC protects everything that matters.
    Over IPv6 too (RFC 6936).
    """
    return _ip_udp(to.src_ip, to.dst_ip, to.sport, to.tos, UDP_BYTES + len(udp_payload)) + udp_payload


@lru_cache(maxsize=4096)  # there are few paths, and replies have one size
def _ip_udp(src_ip: str, dst_ip: str, sport: int, tos: int, udp_bytes: int) -> bytes:
    return layer_of(src_ip).header(src_ip, dst_ip, sport, tos, udp_bytes) + _UDP.pack(sport, ROCE_PORT, udp_bytes, 0)


def parse(udp_payload: bytes, source: bytes, dst_ip: str) -> Packet | None:
    """Return the packet in a UDP payload; None if it is too short for its opcode, or of an unknown kind.

    So is a datagram with another Q_Key: a queue pair drops it silently (IBTA vol. 1, 9.6.1.4).
    ``source``: UDP source port (2 bytes) and IP source address (4 or 16), as on the wire.
    """
    opcode = _OPCODES.get(udp_payload[0]) if len(udp_payload) >= BTH_BYTES + ICRC_BYTES else None
    if opcode is None:
        return None
    if opcode in WITH_TELEMETRY:
        return _parse_telemetry(opcode, udp_payload, source, dst_ip)
    _, flags, _, qpn, psn = _BTH.unpack_from(udp_payload)
    begin = BTH_BYTES + _EXTENSION_BYTES[opcode]
    end = len(udp_payload) - ICRC_BYTES - (flags >> PAD_SHIFT & PAD_MASK)
    if begin > end:
        return None
    if opcode is Opcode.UD_SEND_ONLY_IMMEDIATE and _DETH.unpack_from(udp_payload, BTH_BYTES)[0] != _NOTE_Q_KEY:
        return None
    return Packet(
        opcode,
        qpn & wire.QPN_MASK,
        psn & wire.PSN_MASK,
        bool(psn & wire.ACK_REQUEST),
        udp_payload[begin:end],
        _read_reth(udp_payload) if opcode in WITH_RETH else None,
        _WORD.unpack_from(udp_payload, begin - IMMEDIATE_BYTES)[0] if opcode in WITH_IMMEDIATE else None,
        _read_aeth(udp_payload) if opcode in WITH_AETH else None,
        is_intact(udp_payload, icrc_seed(source, dst_ip, len(udp_payload) - ICRC_BYTES)),
        bool(qpn & _BECN),
    )


def _parse_telemetry(opcode: Opcode, udp_payload: bytes, source: bytes, dst_ip: str) -> Packet | None:
    covered, trailer = udp_payload[:_INTACT_BYTES], udp_payload[_INTACT_BYTES:]
    hops = read_trailer(trailer)
    if hops is None:
        return None
    _, _, _, qpn, psn = _BTH.unpack_from(covered)
    (sent_ns,) = _SENT.unpack_from(covered, BTH_BYTES)
    intact = is_intact(covered, icrc_seed(source, dst_ip, _INTACT_BYTES - ICRC_BYTES))
    found = Telemetry(sent_ns, hops, trailer)
    rest = (psn & wire.PSN_MASK, False, b"", None, None, None, intact, False, found)
    return Packet(opcode, qpn & wire.QPN_MASK, *rest)


@lru_cache(maxsize=4096)
def icrc_seed(source: bytes, dst_ip: str, body_bytes: int) -> int:
    """Return the CRC of the covered part before the BTH; ``source`` as in ``parse``, the rest as in ``wire``."""
    sport, address = int.from_bytes(source[:2], "big"), source[2:]
    return zlib.crc32(wire.pseudo_header(layer_of_packed(address).shown(address), dst_ip, sport, 0, body_bytes))


def is_intact(udp_payload: bytes, seed: int) -> bool:
    """Return True if a UDP payload, no shorter than BTH and ICRC, ends with the correct ICRC."""
    crc = zlib.crc32(udp_payload[:_RESERVED] + b"\xff", seed)
    crc = zlib.crc32(memoryview(udp_payload)[_RESERVED + 1 : -ICRC_BYTES], crc)
    return crc == int.from_bytes(udp_payload[-ICRC_BYTES:], "little")


_OPCODES = {int(opcode): opcode for opcode in Opcode}
_EXTENSION_BYTES = {opcode: extension_bytes(opcode) for opcode in Opcode}


def _bth(opcode: Opcode, qpn: int, psn: int, *, pad: int = 0, ack_requested: bool = False, marks: int = 0) -> bytes:
    flags = wire.BTH_FLAGS | pad << PAD_SHIFT
    return _BTH.pack(opcode, flags, wire.P_KEY, marks | qpn, ack_requested * wire.ACK_REQUEST | psn & wire.PSN_MASK)


def _closed(to: Envelope, body: bytes) -> bytes:
    return body + wire.icrc(to.src_ip, to.dst_ip, to.sport, 0, body).to_bytes(ICRC_BYTES, "little")


def _read_reth(udp_payload: bytes) -> Reth:
    address, _, size_bytes = _RETH.unpack_from(udp_payload, BTH_BYTES)
    return Reth(address, size_bytes)


def _read_aeth(udp_payload: bytes) -> Aeth:
    (word,) = _WORD.unpack_from(udp_payload, BTH_BYTES)
    return Aeth(word >> 24, word & wire.PSN_MASK)
