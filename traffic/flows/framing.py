"""Sizes of a RoCEv2 packet. No numpy: patterns and drills need them too."""

from __future__ import annotations

ETHERNET_BYTES = 14
IP_UDP_BYTES = 28
BTH_BYTES = 12
AETH_BYTES = 4
DETH_BYTES = 8
RETH_BYTES = 16
IMMEDIATE_BYTES = 4
ICRC_BYTES = 4
ACK_BYTES = BTH_BYTES + AETH_BYTES + ICRC_BYTES
"""UDP payload of an acknowledgement."""


def data_bytes(path_mtu: int) -> int:
    """Return the UDP payload of a data packet in bytes."""
    return BTH_BYTES + path_mtu + ICRC_BYTES


def ip_bytes(path_mtu: int) -> int:
    """Return the IP size of a data packet: the interface MTU that it needs."""
    return IP_UDP_BYTES + data_bytes(path_mtu)


def wire_bytes(path_mtu: int) -> int:
    """Return the size of a data packet from Ethernet header to ICRC, as a port's rate limit counts it."""
    return ETHERNET_BYTES + ip_bytes(path_mtu)
