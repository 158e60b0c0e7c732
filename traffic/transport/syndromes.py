"""Meaning of an acknowledgement's syndrome (IBTA vol. 1, 9.7.5.2.8): bits 6 and 5 are the kind. PURE."""

from __future__ import annotations

from enum import Enum, auto

from hpn.traffic.transport.work import Status

SYNDROME_ACK = 0x1F
"""ACK, credit count 31: end-to-end credits not used (IBTA vol. 1, 9.7.7.2.4)."""

SYNDROME_NAK_PSN = 0x60
"""NAK, PSN sequence error."""

SYNDROME_NAK_INVALID = 0x61
"""NAK, invalid request."""

REFUSALS = {
    SYNDROME_NAK_INVALID: Status.INVALID_REQUEST,
    0x62: Status.ACCESS_ERROR,
    0x63: Status.OPERATION_ERROR,
}
"""NAKs without retry, and the resulting status of the oldest work request."""

_KIND = 0x60
_ACK = 0x00


class Says(Enum):
    """Meaning of a reply for its PSN."""

    ARRIVED = auto()  # it and everything before it; any credits are ignored
    MISSING = auto()
    REFUSED = auto()
    NOTHING = auto()  # not ready (RNR NAK), or of a reserved kind: the retry timer decides


def says(syndrome: int) -> Says:
    """Return the meaning of a syndrome."""
    if syndrome & _KIND == _ACK:
        return Says.ARRIVED
    if syndrome == SYNDROME_NAK_PSN:
        return Says.MISSING
    return Says.REFUSED if syndrome in REFUSALS else Says.NOTHING
