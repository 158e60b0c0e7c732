"""The Marker Responder: answers to Marker PDUs (IEEE 802.1AX-2014, 6.5). Pure.

A system that moves conversations between ports of a LAG may send a Marker out of the old port and wait for the answer:
then all earlier frames have arrived. Responding is mandatory, sending Markers is not; we never send any.
"""

from __future__ import annotations

import struct

_SUBTYPE_MARKER = 2
_VERSION = 1
_INFORMATION, _RESPONSE = 1, 2
_LENGTH, _TERMINATOR_LENGTH = 16, 0
# Subtype, version; TLV type, length; Requester_Port, _System, _Transaction_ID; pad; Terminator TLV; reserved.
_PDU = struct.Struct("!BBBBH6sI2xBB90x")
MARKER_PDU_SIZE = _PDU.size


def answer(payload: bytes) -> bytes | None:
    """Return the Marker Response PDU to an Ethernet payload of type 0x8809; None if it is no valid Marker PDU.

    Lengths are validated; version, pad and reserved octets are not, so that later versions interwork (6.5.4.2).
    """
    if len(payload) < MARKER_PDU_SIZE or payload[0] != _SUBTYPE_MARKER:
        return None
    _, _, tlv, length, port, system, transaction, _, terminator_length = _PDU.unpack_from(payload)
    if (tlv, length, terminator_length) != (_INFORMATION, _LENGTH, _TERMINATOR_LENGTH):
        return None
    return _PDU.pack(_SUBTYPE_MARKER, _VERSION, _RESPONSE, _LENGTH, port, system, transaction, 0, _TERMINATOR_LENGTH)
