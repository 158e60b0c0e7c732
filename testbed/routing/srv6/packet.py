"""Packets of a sender that knows its path: IPv6 in IPv6, the outer destination a carrier of uSIDs. Pure.

Without a segment routing header, as RFC 8986 section 5.2 (H.Encaps.Red) has it for one SID: next header 41 (RFC 2473).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from socket import AF_INET6, inet_pton

IPV6_BYTES, UDP_BYTES = 40, 8
CARRIED_BYTES = 2 * IPV6_BYTES - 20
"""Bytes by which a packet of a job is larger in a carrier: two headers of IPv6 in the place of one of IPv4."""
_UDP, _IPV6 = 17, 41
_HOPS = 64


@dataclass(frozen=True, slots=True)
class Datagram:
    """A UDP datagram between two IPv6 addresses."""

    src: str
    dst: str
    sport: int
    dport: int
    payload: bytes

    def packet(self) -> bytes:
        """Return it with IPv6 and UDP headers, and the checksum that IPv6 demands (RFC 8200 section 8.1)."""
        size = UDP_BYTES + len(self.payload)
        pseudo = inet_pton(AF_INET6, self.src) + inet_pton(AF_INET6, self.dst) + struct.pack("!I3xB", size, _UDP)
        bare = struct.pack("!HHHH", self.sport, self.dport, size, 0) + self.payload
        checksum = internet_checksum(pseudo + bare) or 0xFFFF
        return _header(self.src, self.dst, _UDP, size) + bare[:6] + struct.pack("!H", checksum) + bare[8:]


def encapsulated(inner: bytes, src: str, carrier: str, flow_label: int = 0) -> bytes:
    """Return an IPv6 packet in another one from ``src`` along ``carrier``."""
    return _header(src, carrier, _IPV6, len(inner), flow_label) + inner


def internet_checksum(data: bytes) -> int:
    """Return the one's complement of the one's complement sum of 16-bit words (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _header(src: str, dst: str, following: int, size: int, flow_label: int = 0) -> bytes:
    fixed = struct.pack("!IHBB", 6 << 28 | flow_label, size, following, _HOPS)
    return fixed + inet_pton(AF_INET6, src) + inet_pton(AF_INET6, dst)
