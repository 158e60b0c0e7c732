"""The LACPDU on the wire: encode version 1, decode every version (IEEE 802.1AX-2014, 6.4.2).

It covers the payload after the Ethernet header: 110 octets, from version 2 on possibly more. The sender adds the
header.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntFlag

ETHERTYPE_SLOW_PROTOCOLS = 0x8809
SLOW_PROTOCOLS_MAC = "01:80:c2:00:00:02"
LACPDU_SIZE = 110

_SUBTYPE_LACP = 1
_VERSION = 1
_ACTOR, _PARTNER, _COLLECTOR = 1, 2, 3
_INFORMATION_LENGTH, _COLLECTOR_LENGTH = 20, 16

_INFORMATION = "BBH6sHHHBxxx"  # TLV type, length; system priority, system, key, port priority, port, state
_PDU = struct.Struct(f"!BB{_INFORMATION}{_INFORMATION}BBH12xBB50x")


class PortState(IntFlag):
    """Actor_State and Partner_State, one octet (6.4.2.3 m)."""

    ACTIVITY = 0x01
    TIMEOUT = 0x02  # set: Short Timeout
    AGGREGATION = 0x04
    SYNCHRONIZATION = 0x08
    COLLECTING = 0x10
    DISTRIBUTING = 0x20
    DEFAULTED = 0x40
    EXPIRED = 0x80


@dataclass(frozen=True, slots=True)
class PortInfo:
    """Parameters of one end of a port: Actor_ or Partner_. ``system`` is 'aa:bb:cc:dd:ee:ff'."""

    system_priority: int
    system: str
    key: int
    port_priority: int
    port: int
    state: PortState


@dataclass(frozen=True, slots=True)
class Lacpdu:
    """One LACPDU: the sender's parameters and its view of the partner. Delay in tens of microseconds."""

    actor: PortInfo
    partner: PortInfo
    collector_max_delay: int = 0


def encode(pdu: Lacpdu) -> bytes:
    """Return the 110 octets of ``pdu``, subtype first. struct.error when a field does not fit."""
    return _PDU.pack(
        _SUBTYPE_LACP,
        _VERSION,
        *_fields(_ACTOR, pdu.actor),
        *_fields(_PARTNER, pdu.partner),
        _COLLECTOR,
        _COLLECTOR_LENGTH,
        pdu.collector_max_delay,
        0,  # Terminator TLV
        0,
    )


def decode(payload: bytes) -> Lacpdu | None:
    """Decode an Ethernet payload of type 0x8809; None when it is not an LACPDU, or is truncated or malformed.

    Lengths are validated; TLV types and reserved octets are not, so that later versions interwork (6.4.12). These have
    further TLVs where version 1 has its Terminator (6.4.2.4); all are skipped, since none is used here.
    """
    if len(payload) < LACPDU_SIZE or payload[0] != _SUBTYPE_LACP:
        return None
    fields = _PDU.unpack_from(payload)
    _, actor_length, *actor = fields[2:10]
    _, partner_length, *partner = fields[10:18]
    _, collector_length, delay, _, terminator_length = fields[18:]
    if (actor_length, partner_length, collector_length) != (
        _INFORMATION_LENGTH,
        _INFORMATION_LENGTH,
        _COLLECTOR_LENGTH,
    ):
        return None
    if fields[1] <= _VERSION and terminator_length != 0:
        return None
    return Lacpdu(_info(*actor), _info(*partner), delay)


def _fields(tlv: int, info: PortInfo) -> tuple[int, int, int, bytes, int, int, int, int]:
    return (
        tlv,
        _INFORMATION_LENGTH,
        info.system_priority,
        bytes.fromhex(info.system.replace(":", "")),
        info.key,
        info.port_priority,
        info.port,
        info.state,
    )


def _info(system_priority: int, system: bytes, key: int, port_priority: int, port: int, state: int) -> PortInfo:
    return PortInfo(system_priority, system.hex(":"), key, port_priority, port, PortState(state))
