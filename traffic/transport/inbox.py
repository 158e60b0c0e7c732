"""Memory end of a responder: in-order packets are written, and complete messages are reported. PURE.

A packet's payload is represented by its word (``traffic.transport.packets``), so memory is written one word per packet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpn.traffic.transport.packets import WITH_IMMEDIATE, Opcode


def _any(*opcodes: Opcode) -> bytes:
    """Return a regular expression that matches one of these opcodes."""
    return b"[" + re.escape(bytes(opcodes)) + b"]"


# Packets of one message that a run may hold, at its beginning and further on (IBTA vol. 1, 9.7.4.1.2). A regular
# expression over the opcodes costs a microsecond for any run; masks of arrays cost ten.
_REST = _any(Opcode.WRITE_MIDDLE) + b"*" + _any(Opcode.WRITE_LAST, Opcode.WRITE_LAST_IMMEDIATE) + b"?"
_ONLY = _any(Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMMEDIATE)
_BEGINS = re.compile(_ONLY + b"|" + _any(Opcode.WRITE_FIRST) + _REST, re.DOTALL)
_GOES_ON = re.compile(_REST, re.DOTALL)
_TAGGED = bytes(WITH_IMMEDIATE)
_ENDS = _TAGGED + bytes((Opcode.WRITE_LAST, Opcode.WRITE_ONLY))


@dataclass(frozen=True, slots=True)
class Packets:
    """Consecutive packets of WRITEs: sequences of equal length that are never changed again.

    ``sizes`` in bytes of the payload without pad; ``addresses`` and ``immediates`` count where the opcode has them.
    """

    opcodes: bytes
    sizes: Sequence[int]
    words: NDArray[np.uint64]
    addresses: Sequence[int]
    immediates: Sequence[int]

    def __len__(self) -> int:
        return len(self.opcodes)

    def part(self, start: int, stop: int) -> Packets:
        """Return the packets from ``start`` to before ``stop``."""
        if stop - start == len(self.opcodes):
            return self
        of = slice(start, stop)
        return Packets(self.opcodes[of], self.sizes[of], self.words[of], self.addresses[of], self.immediates[of])


class Written(NamedTuple):
    """Memory write: ``words``, one per path MTU of memory from ``address`` on; the last may cover less."""

    address: int
    words: NDArray[np.uint64]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """A complete message; ``tag`` is its immediate, if it had one."""

    tag: int | None
    address: int
    size_bytes: int


@dataclass(slots=True)
class Delivery:
    """Result of delivering packets, in order. ``invalid``: the packet after them is invalid (answer: NAK 0x61)."""

    written: list[Written] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    invalid: bool = False


class Inbox:
    """The memory end of a responder: stores packets until all before them have arrived, then delivers each once.

    ``bytes_`` and ``messages`` (rx_write_requests) delivered so far are goodput, as nothing counts twice. ``invalid``:
    a packet was invalid at its position (IBTA vol. 1, 9.7.4.1.2), and nothing is delivered from there on. With
    ``whole`` memory writes are reported once per message, when it is complete, and not per packet.
    """

    def __init__(self, path_mtu: int, first_psn: int = 0, *, whole: bool = False) -> None:
        self._path_mtu = path_mtu
        self._parts: list[NDArray[np.uint64]] | None = [] if whole else None  # of the current message
        self._next = first_psn  # absolute PSN of the next packet to deliver
        self._kept: dict[int, Packets] = {}
        self._address: int | None = None  # of the current message
        self._size = 0  # bytes received of it
        self.bytes_ = 0
        self.messages = 0
        self.invalid = False

    def keep(self, psn: int, packets: Packets) -> None:
        """Store packets that the responder accepted, by the absolute PSN of the first."""
        self._kept[psn] = packets

    def deliver(self, expected: int) -> Delivery:
        """Deliver all packets below ``expected``, which the responder has in order."""
        delivery = Delivery()
        while self._next < expected and not self.invalid:
            packets = self._kept.pop(self._next)
            self._next += len(packets.opcodes)
            self._deliver(packets, delivery)
        return delivery

    def _deliver(self, packets: Packets, delivery: Delivery) -> None:
        opcodes, sizes = packets.opcodes, packets.sizes
        start = 0
        while start < len(opcodes):
            piece = (_BEGINS if self._address is None else _GOES_ON).match(opcodes, start)
            stop = piece.end() if piece else start
            ends = opcodes[stop - 1] in _ENDS
            if stop == start or not self._sound(sizes[start:stop], ends):
                self.invalid = delivery.invalid = True
                return
            self._write(packets, start, stop, sizes[stop - 1], delivery)
            if ends:
                self._arrive(packets.immediates[stop - 1] if opcodes[stop - 1] in _TAGGED else None, delivery)
            start = stop

    def _sound(self, sizes: Sequence[int], ends: bool) -> bool:
        """Return True if all payloads are full-size, except the last of a message, which may be shorter."""
        rest = len(sizes) - sizes.count(self._path_mtu)
        return rest == 0 or (rest == 1 and ends and 0 < sizes[-1] < self._path_mtu)

    def _write(self, packets: Packets, start: int, stop: int, last_size: int, delivery: Delivery) -> None:
        """Write packets of one message."""
        if self._address is None:
            self._address, self._size = packets.addresses[start], 0
        size = (stop - start - 1) * self._path_mtu + last_size
        if self._parts is None:
            delivery.written.append(Written(self._address + self._size, packets.words[start:stop], size))
        else:
            self._parts.append(packets.words[start:stop])
        self._size += size
        self.bytes_ += size

    def _arrive(self, tag: int | None, delivery: Delivery) -> None:
        """Complete the current message."""
        address, self._address = self._address, None
        if address is not None:
            if self._parts is not None:
                delivery.written.append(Written(address, np.concatenate(self._parts), self._size))
                self._parts.clear()
            delivery.arrived.append(Arrived(tag, address, self._size))
            self.messages += 1
