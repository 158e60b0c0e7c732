"""IP below RoCEv2, version 4 or 6: its header, what the ICRC covers of it, and addresses of sockets. Pure.

Layouts: RFC 791, RFC 8200, ip(7), ipv6(7); the ICRC's masks: IBTA annex A17.3.3.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from socket import AF_INET, AF_INET6, AddressFamily, inet_ntop, inet_pton

UDP_BYTES = 8
_UDP = 17
_TTL = 64
_DONT_FRAGMENT = 0x4000
_MASKED = 0xFF
_V4 = struct.Struct(">BBHHHBBH4s4s")
_V6 = struct.Struct(">IHBB16s16s")
_V6_LABEL_AND_CLASS = 0x0FFF_FFFF


class IpLayer(ABC):
    """A version of IP. Sizes and offsets are in bytes; offsets count from the beginning of its header."""

    FAMILY: AddressFamily
    NOWHERE: str  # its unspecified address
    HEADER_BYTES: int
    ADDRESS_BYTES: int
    SOURCE_AT: int  # the destination follows
    LENGTH_AT: int  # two bytes
    LENGTH_OF_HEADER: int  # what the length counts of the header
    SOCKADDR_BYTES: int
    SOCKADDR_AT: int  # of the address in a socket address; the port is at 2

    def packed(self, ip: str) -> bytes:
        """Return an address as on the wire. OSError when it is none of this version."""
        return inet_pton(self.FAMILY, ip)

    def shown(self, address: bytes) -> str:
        """Return an address in the usual notation."""
        return inet_ntop(self.FAMILY, address)

    @abstractmethod
    def header(self, src: str, dst: str, sport: int, tos: int, udp_bytes: int) -> bytes:
        """Return the header of a UDP packet for a raw socket; ``tos``: DSCP and ECN."""

    @abstractmethod
    def covered(self, src: str, dst: str, ip_id: int, udp_bytes: int) -> bytes:
        """Return the header as the ICRC sees it: fields that routers change are ones."""

    @abstractmethod
    def sockaddr(self, ip: str, port: int = 0) -> bytes:
        """Return an address for sendmsg(2); a raw socket needs port 0."""


class _Ipv4(IpLayer):
    FAMILY, NOWHERE = AF_INET, "0.0.0.0"
    HEADER_BYTES, ADDRESS_BYTES, SOURCE_AT = 20, 4, 12
    LENGTH_AT, LENGTH_OF_HEADER = 2, 20
    SOCKADDR_BYTES, SOCKADDR_AT = 16, 4

    def header(self, src: str, dst: str, sport: int, tos: int, udp_bytes: int) -> bytes:
        ends = self.packed(src), self.packed(dst)
        return _V4.pack(0x45, tos, 20 + udp_bytes, 0, _DONT_FRAGMENT, _TTL, _UDP, 0, *ends)

    def covered(self, src: str, dst: str, ip_id: int, udp_bytes: int) -> bytes:
        ends = self.packed(src), self.packed(dst)
        return _V4.pack(0x45, _MASKED, 20 + udp_bytes, ip_id, _DONT_FRAGMENT, _MASKED, _UDP, 0xFFFF, *ends)

    def sockaddr(self, ip: str, port: int = 0) -> bytes:
        return self.FAMILY.to_bytes(2, "little") + port.to_bytes(2, "big") + self.packed(ip) + bytes(8)


class _Ipv6(IpLayer):
    FAMILY, NOWHERE = AF_INET6, "::"
    HEADER_BYTES, ADDRESS_BYTES, SOURCE_AT = 40, 16, 8
    LENGTH_AT, LENGTH_OF_HEADER = 4, 0
    SOCKADDR_BYTES, SOCKADDR_AT = 28, 8

    def header(self, src: str, dst: str, sport: int, tos: int, udp_bytes: int) -> bytes:
        """The flow label is the source port: MRC has its entropy value in both."""
        first = 6 << 28 | tos << 20 | sport
        return _V6.pack(first, udp_bytes, _UDP, _TTL, self.packed(src), self.packed(dst))

    def covered(self, src: str, dst: str, ip_id: int, udp_bytes: int) -> bytes:
        first = 6 << 28 | _V6_LABEL_AND_CLASS
        return _V6.pack(first, udp_bytes, _UDP, _MASKED, self.packed(src), self.packed(dst))

    def sockaddr(self, ip: str, port: int = 0) -> bytes:
        begin = self.FAMILY.to_bytes(2, "little") + port.to_bytes(2, "big")
        return begin + bytes(4) + self.packed(ip) + bytes(4)


IPV4: IpLayer = _Ipv4()
IPV6: IpLayer = _Ipv6()


def layer_of(ip: str) -> IpLayer:
    """Return the version of an address."""
    return IPV6 if ":" in ip else IPV4


def layer_of_packed(address: bytes) -> IpLayer:
    """Return the version of an address as on the wire."""
    return IPV6 if len(address) == IPV6.ADDRESS_BYTES else IPV4
