"""Reads LACPDUs off an interface, both ways: a judge that shares no code with what speaks (802.1AX-2014, 6.4.2.3)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from hpn.testbed.kernel.ns import NetNs

ACTIVE, SYNC, COLLECTS, DISTRIBUTES, EXPIRED = 0x01, 0x08, 0x10, 0x20, 0x80
_ETH_P_ALL, _OUTGOING = 0x0003, 4
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h
_LACPDU = bytes.fromhex("880901")  # EtherType of the Slow Protocols, subtype LACP
_ACTOR_STATE, _PARTNER_SYSTEM = 32, 40


@dataclass(frozen=True)
class Heard:
    """One LACPDU: when the kernel had it, whether it left here, what its sender says of itself and of whom."""

    at_s: float
    sent: bool
    state: int
    to: str  # the system that the sender takes for its partner, as hex digits


class Sniffer:
    """A packet socket on one interface; everything since it was made or last asked waits in the socket."""

    def __init__(self, space: NetNs, interface: str) -> None:
        with space.entered():
            self._raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
            self._raw.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._raw.bind((interface, _ETH_P_ALL))
        self._raw.setblocking(False)
        self._heard: list[Heard] = []

    def heard(self) -> list[Heard]:
        """All LACPDUs so far, in order."""
        while True:
            try:
                frame, told, _flags, where = self._raw.recvmsg(2048, 64)
            except BlockingIOError:
                return self._heard
            except OSError:  # the interface went down: told once, then the socket goes on
                continue
            if frame[12:15] == _LACPDU:
                ((_, _, stamp),) = told
                seconds, ns = struct.unpack("=qq", stamp)
                partner = frame[_PARTNER_SYSTEM : _PARTNER_SYSTEM + 6].hex()
                self._heard.append(Heard(seconds + ns / 1e9, where[2] == _OUTGOING, frame[_ACTOR_STATE], partner))


def first(found: Sequence[Heard], state: int, without: int = 0) -> Heard:
    """The first whose sender claims all of ``state`` and nothing of ``without``."""
    fitting = [each for each in found if each.state & state == state and not each.state & without]
    assert fitting, f"no LACPDU claims {state:#x} without {without:#x}: {found}"
    return fitting[0]
