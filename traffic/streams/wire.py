"""RoCEv2 packet format: every byte after UDP, and the invariant CRC, for one packet or whole bursts.

Data packets are RC SEND_ONLY, acknowledgements RC ACKNOWLEDGE (IBTA vol. 1, 9.2 BTH, 9.3.5 AETH, annex A17 RoCEv2). UDP
payload of a data packet: BTH 12, path MTU bytes of payload, ICRC 4. The payload begins with our measurement header.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from socket import inet_aton, inet_ntoa

import numpy as np
import numpy.typing as npt

from hpn.traffic.flows.flow import ROCE_PORT, requester_qpn
from hpn.traffic.flows.framing import ACK_BYTES, BTH_BYTES, ICRC_BYTES
from hpn.traffic.flows.ip_layer import UDP_BYTES, layer_of

U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

RC_SEND_ONLY = 0x04
RC_ACKNOWLEDGE = 0x11
BTH_FLAGS = (
    0x40  # SE 0, MigReq 1 (migrated, as drivers send it), pad count 0 (a path MTU is a multiple of 4), version 0
)
P_KEY = 0xFFFF
ACK_REQUEST = 1 << 31  # top bit of the word that holds the PSN
PSN_MASK = 0xFFFFFF
QPN_MASK = 0xFFFFFF

SYNDROME_ACK = 0x1F  # ACK, credit count 31: end-to-end credits not used (IBTA 9.7.7.2.4)
SYNDROME_NAK_PSN = 0x60  # NAK, PSN sequence error

MAGIC = 0x48504E31  # 'HPN1'
FILL = 0x5A

DATA_HEADER = np.dtype(
    [
        ("opcode", "u1"),
        ("bth_flags", "u1"),
        ("pkey", ">u2"),
        ("qpn", ">u4"),  # top byte FECN, BECN, reserved
        ("psn", ">u4"),  # top bit ackreq
        ("magic", ">u4"),
        ("index", ">u2"),  # position in the send burst = IP identification: GSO numbers segments 0, 1, 2, ...
        ("zero", ">u2"),
        ("seq", ">u8"),
        ("sent_ns", ">i8"),
    ]
)
"""BTH and measurement header, 36 bytes."""

_BTH = struct.Struct(">BBHII")
_AETH = struct.Struct(">I")
_UDP = struct.Struct(">HHHH")
_RESERVED = 4  # offset in the BTH of the byte that switches may change: masked in the ICRC
SENT_AT = 28  # offset of ``sent_ns``
_INDEX_AT = (16, 17)
PSEUDO_BYTES = 8 + 20 + 8  # bytes before the BTH that the ICRC covers: replacement for the LRH, IP, UDP
_IP_ID_AT = (8 + 4, 8 + 5)
_SOURCE_AT, _DESTINATION_AT = range(8 + 12, 8 + 16), range(8 + 16, 8 + 20)
_SPORT_AT = range(8 + 20, 8 + 22)


def icrc(src: str, dst: str, sport: int, ip_id: int, body: bytes) -> int:
    """Return the invariant CRC over ``body`` (BTH to the last byte before the ICRC), to be written little-endian.

    It is a CRC-32 over 8 x ff, IP, UDP, BTH and the rest (IBTA A17.3.3). TOS, TTL, both checksums and BTH byte 4 count
    as ff; in IPv6 traffic class, flow label and hop limit. The IP header is the one that Linux writes for us: no
    options, DF set.
    """
    masked = body[:_RESERVED] + b"\xff" + body[_RESERVED + 1 :]
    return zlib.crc32(pseudo_header(src, dst, sport, ip_id, len(body)) + masked)


@lru_cache(maxsize=4096)  # there are few paths and few sizes
def pseudo_header(src: str, dst: str, sport: int, ip_id: int, body_bytes: int) -> bytes:
    """Return the part before the BTH that the ICRC covers; ``body_bytes`` from the BTH to the last byte before the
    ICRC."""
    udp_bytes = UDP_BYTES + body_bytes + ICRC_BYTES
    udp = _UDP.pack(sport, ROCE_PORT, udp_bytes, 0xFFFF)
    return b"\xff" * 8 + layer_of(src).covered(src, dst, ip_id, udp_bytes) + udp


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement read from the wire."""

    qpn: int  # the requester's
    psn: int
    syndrome: int
    msn: int


def pack_ack(src: str, dst: str, sport: int, flow: int, psn: int, syndrome: int) -> bytes:
    """Return the UDP payload of an ACK (or NAK) of ``flow`` for ``psn``; its packet must carry IP id 0."""
    msn = (psn + (syndrome == SYNDROME_ACK)) & PSN_MASK  # one message per packet: completed messages
    body = _BTH.pack(RC_ACKNOWLEDGE, BTH_FLAGS, P_KEY, requester_qpn(flow), psn & PSN_MASK)
    body += _AETH.pack(syndrome << 24 | msn)
    return body + icrc(src, dst, sport, 0, body).to_bytes(4, "little")


def parse_ack(payload: bytes, source: bytes, dst: str) -> Ack | None:
    """Return the acknowledgement in a UDP payload; None if it is not one or its ICRC is wrong.

    ``source``: UDP source port (2 bytes) and IPv4 source address (4), as on the wire.
    """
    if len(payload) != ACK_BYTES or payload[0] != RC_ACKNOWLEDGE:
        return None
    body = payload[:-ICRC_BYTES]
    sport = int.from_bytes(source[:2], "big")
    if icrc(inet_ntoa(source[2:]), dst, sport, 0, body) != int.from_bytes(payload[-ICRC_BYTES:], "little"):
        return None
    _, _, _, qpn, psn = _BTH.unpack_from(body)
    (aeth,) = _AETH.unpack_from(body, BTH_BYTES)
    return Ack(qpn & QPN_MASK, psn & PSN_MASK, aeth >> 24, aeth & PSN_MASK)


def data_templates(qpns: Sequence[int]) -> npt.NDArray[np.void]:
    """Return the headers of data packets to ``qpns`` with index, PSN, sequence number and send time 0."""
    headers = np.zeros(len(qpns), DATA_HEADER)
    headers["opcode"], headers["bth_flags"], headers["pkey"] = RC_SEND_ONLY, BTH_FLAGS, P_KEY
    headers["qpn"], headers["psn"], headers["magic"] = qpns, ACK_REQUEST, MAGIC
    return headers


class DataIcrc:
    """The ICRC of data packets of one path MTU as table look-ups.

    CRC-32 is affine over XOR: the ICRC of a packet is a constant, XOR one table entry for each byte that differs from
    the base packet. The bytes that vary are in the addresses and in the header; payload fill is constant.
    """

    def __init__(self, path_mtu: int) -> None:
        self.path_mtu = path_mtu
        header = bytearray(DATA_HEADER.itemsize)
        header[_RESERVED] = 0xFF
        fill = bytes([FILL]) * (BTH_BYTES + path_mtu - len(header))
        pseudo = pseudo_header("0.0.0.0", "0.0.0.0", 0, 0, BTH_BYTES + path_mtu)
        base = bytearray(pseudo + header + fill)
        self._constant = zlib.crc32(base)
        self._source = np.concatenate([byte_table(base, at) for at in (*_SPORT_AT, *_SOURCE_AT)])
        self._destination = np.concatenate([byte_table(base, at) for at in _DESTINATION_AT])
        tables = [byte_table(base, PSEUDO_BYTES + at) for at in range(len(header))]
        tables[_RESERVED][:] = 0
        for at, ip_id_at in zip(_INDEX_AT, _IP_ID_AT, strict=True):
            tables[at] ^= byte_table(base, ip_id_at)  # the burst index is the IP identification too
        self._header = np.concatenate(tables)
        self._time = [table.tolist() for table in tables[SENT_AT : SENT_AT + 8]]
        self._time_high, self._time_high_crc = -1, 0

    def of_destination(self, dst: str) -> int:
        """Return the contribution of the destination address, including the constant part."""
        row = np.frombuffer(inet_aton(dst), np.uint8).reshape(1, 4)
        return int(look_up(self._destination, row)[0]) ^ self._constant

    def of_sources(self, sources: U8) -> U32:
        """Return the contribution of source ports and addresses; rows as in a sockaddr_in: port 2 bytes, address 4."""
        return look_up(self._source, sources)

    def of_path(self, src: str, dst: str, sport: int) -> int:
        """Return the part that is constant while a flow keeps its source port, including the constant part."""
        row = np.frombuffer(sport.to_bytes(2, "big") + inet_aton(src), np.uint8).reshape(1, 6)
        return int(self.of_sources(row)[0]) ^ self.of_destination(dst)

    def of_headers(self, headers: U8) -> U32:
        """Return the contribution of the 36 header bytes; ``headers`` has shape (packets, 36)."""
        return look_up(self._header, headers)

    def of_time(self, sent_ns: int) -> int:
        """Return how the ICRC changes when a ``sent_ns`` of 0 is replaced by this one."""
        high, low = sent_ns >> 32, sent_ns & 0xFFFFFFFF
        t = self._time
        if high != self._time_high:
            a, b, c, d = high.to_bytes(4, "big")
            self._time_high, self._time_high_crc = high, t[0][a] ^ t[1][b] ^ t[2][c] ^ t[3][d]
        changed: int = t[4][low >> 24] ^ t[5][low >> 16 & 255] ^ t[6][low >> 8 & 255] ^ t[7][low & 255]
        return changed ^ self._time_high_crc


def look_up(table: U32, rows: U8) -> U32:
    """Return the XOR over the columns of ``rows`` of each table entry; ``table`` holds 256 entries for each column."""
    first = np.arange(rows.shape[1], dtype=np.intp) * 256
    found: U32 = np.bitwise_xor.reduce(table[rows + first], axis=1)
    return found


def byte_table(base: bytearray, at: int, tail: bytes = b"") -> U32:
    """Return, for each value of byte ``at`` of ``base``, the change in the CRC of ``base + tail`` against value 0."""
    rest = zlib.crc32(tail, zlib.crc32(base))
    table = np.zeros(256, np.uint32)
    for bit in range(8):
        base[at] ^= 1 << bit
        table[np.arange(256) >> bit & 1 == 1] ^= np.uint32(zlib.crc32(tail, zlib.crc32(base)) ^ rest)
        base[at] ^= 1 << bit
    return table
