"""Packets in order become memory: what was written where, and which messages are complete. PURE.

A packet's payload is stood for by its word (``traffic.rc.packets``), so memory is written a word per packet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traffic.rc.packets import WITH_IMMEDIATE, WITH_RETH, Opcode


def _table(*opcodes: Opcode) -> NDArray[np.bool_]:
    """Which of 256 opcodes are these."""
    table = np.zeros(256, bool)
    table[list(opcodes)] = True
    return table


_STARTS = _table(*WITH_RETH)
_WITH_IMMEDIATE = _table(*WITH_IMMEDIATE)
_ENDS = _table(Opcode.WRITE_LAST, Opcode.WRITE_ONLY, *WITH_IMMEDIATE)
_WRITES = _STARTS | _ENDS | _table(Opcode.WRITE_MIDDLE)


@dataclass(frozen=True, slots=True)
class Packets:
    """Consecutive packets of WRITEs: an array each, of equal length, that nobody changes any more.

    ``size_bytes`` of the payload without pad; ``address`` and ``immediate`` count where the opcode has them.
    """

    opcode: NDArray[np.uint8]
    size_bytes: NDArray[np.int64]
    word: NDArray[np.uint64]
    address: NDArray[np.uint64]
    immediate: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.opcode)


@dataclass(frozen=True, slots=True)
class Written:
    """``words``, one for each path MTU of memory from ``address`` on; the last may stand for less."""

    address: int
    words: NDArray[np.uint64]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message is there, whole; ``tag`` is its immediate, if it had one."""

    tag: int | None
    address: int
    size_bytes: int


@dataclass(slots=True)
class Delivery:
    """What packets brought, in order. ``invalid``: the one behind them makes no sense (answer: NAK 0x61)."""

    written: list[Written] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    invalid: bool = False


class Inbox:
    """The memory end of a responder: keeps packets until all before them are there, then delivers each once.

    ``bytes_`` and ``messages`` (rx_write_requests) delivered so far: goodput, as nothing counts twice. ``invalid``: a
    packet made no sense where it stood (IBTA vol. 1, 9.7.4.1.2), and nothing is delivered from there on.
    """

    def __init__(self, path_mtu: int, first_psn: int = 0) -> None:
        self._path_mtu = path_mtu
        self._next = first_psn  # absolute PSN of the next packet to deliver
        self._kept: dict[int, Packets] = {}
        self._address: int | None = None  # of the message that is under way
        self._size = 0  # of what is there of it
        self.bytes_ = 0
        self.messages = 0
        self.invalid = False

    def keep(self, psn: int, packets: Packets) -> None:
        """Take what the responder accepted, by the absolute PSN of its first packet."""
        self._kept[psn] = packets

    def deliver(self, expected: int) -> Delivery:
        """All packets below ``expected``, which the responder has in order."""
        delivery = Delivery()
        while self._next < expected and not self.invalid:
            packets = self._kept.pop(self._next)
            self._next += len(packets)
            self._deliver(packets, delivery)
        return delivery

    def _deliver(self, packets: Packets, delivery: Delivery) -> None:
        ends = _ENDS[packets.opcode]
        sound = self._sound(packets, ends)
        at = 0
        for stop in (np.flatnonzero(ends[:sound]) + 1).tolist():
            self._write(packets, at, stop, delivery)
            self._arrive(packets, stop - 1, delivery)
            at = stop
        if at < sound:
            self._write(packets, at, sound, delivery)
        if sound < len(packets):
            self.invalid = delivery.invalid = True

    def _sound(self, packets: Packets, ends: NDArray[np.bool_]) -> int:
        """How many packets make sense: a first one just where a message begins, whole ones up to its last."""
        begins = np.empty_like(ends)
        begins[0], begins[1:] = self._address is None, ends[:-1]
        size = packets.size_bytes
        sound = (_STARTS[packets.opcode] == begins) & _WRITES[packets.opcode]
        sound &= (size == self._path_mtu) | (ends & (size > 0) & (size < self._path_mtu))
        return len(packets) if sound.all() else int(sound.argmin())

    def _write(self, packets: Packets, start: int, stop: int, delivery: Delivery) -> None:
        """Packets of one message."""
        if self._address is None:
            self._address, self._size = int(packets.address[start]), 0
        size = (stop - start - 1) * self._path_mtu + int(packets.size_bytes[stop - 1])
        delivery.written.append(Written(self._address + self._size, packets.word[start:stop], size))
        self._size += size
        self.bytes_ += size

    def _arrive(self, packets: Packets, last: int, delivery: Delivery) -> None:
        """The message that is under way ends with packet ``last``."""
        address, self._address = self._address, None
        if address is None:
            return
        tag = int(packets.immediate[last]) if _WITH_IMMEDIATE[packets.opcode[last]] else None
        delivery.arrived.append(Arrived(tag, address, self._size))
        self.messages += 1
