"""The Marker Responder: the octets that answer a Marker PDU (IEEE 802.1AX-2014, 6.5). Pure.

Who moves conversations from one port of a LAG to another may send a Marker out of the old port and go on once it is
answered: all that went before it has arrived then. Answering is mandatory, asking is not; we never ask.
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
    """The Marker Response PDU to an Ethernet payload of type 0x8809; None when it is no Marker PDU, or malformed.

    Lengths are validated; version, pad and reserved octets are not, so that later versions interwork (6.5.4.2).
    """
    if len(payload) < MARKER_PDU_SIZE or payload[0] != _SUBTYPE_MARKER:
        return None
    _, _, tlv, length, port, system, transaction, _, terminator_length = _PDU.unpack_from(payload)
    if (tlv, length, terminator_length) != (_INFORMATION, _LENGTH, _TERMINATOR_LENGTH):
        return None
    return _PDU.pack(_SUBTYPE_MARKER, _VERSION, _RESPONSE, _LENGTH, port, system, transaction, 0, _TERMINATOR_LENGTH)
