"""Marker PDUs as a partner sends them, built by scapy."""

from __future__ import annotations


def marker(port: int, system: str, transaction: int) -> bytes:
    """A Marker PDU (802.1AX-2014, 6.5.3), subtype first."""
    from scapy.contrib.lacp import MarkerProtocol
    from scapy.contrib.slowprot import SlowProtocol

    asked = MarkerProtocol(requester_port=port, requester_system=system, requester_transaction_id=transaction)
    return bytes(SlowProtocol(subtype=2) / asked)
