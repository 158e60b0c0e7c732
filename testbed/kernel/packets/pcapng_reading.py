"""Reader for files of ``testbed.kernel.packets.pcapng``, which may be truncated or untrusted. PURE.

Changes when hpn writes another block. It does not read every pcapng file: only one section, little-endian, with
timestamps in nanoseconds, as hpn's own captures have.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hpn.testbed.kernel.packets.pcapng import (
    DROPPED,
    FLAGS,
    INTERFACE,
    MAGIC,
    NAME,
    NANOSECONDS,
    PACKET,
    RESOLUTION,
    SECTION,
    STATISTICS,
    Direction,
)

_SMALLEST = 12
_HEAD = struct.Struct("<II")
_PACKET_HEAD = struct.Struct("<IIIII")
_INTERFACE_HEAD = struct.Struct("<HHI")
_STATISTICS_BYTES = 12
_OPTION = struct.Struct("<HH")


@dataclass(frozen=True, slots=True)
class Interface:
    """A capture interface; its number in the file is its position among the interfaces."""

    name: str
    snap_bytes: int
    block: bytes  # raw block of the file


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame captured at an interface, given by its number."""

    interface: int
    at_ns: int
    content: bytes
    frame_bytes: int  # before truncation
    direction: Direction


@dataclass(frozen=True, slots=True)
class Dropped:
    """Frames that an interface received and that are not in the file."""

    frames: int


def blocks(content: bytes) -> Iterator[Interface | Frame | Dropped]:
    """Yield the contents of a file in order. ValueError, after everything intact, names the error and its place."""
    if len(content) < _SMALLEST or _HEAD.unpack_from(content)[0] != SECTION:
        raise ValueError("it is no pcapng file")
    if content[8:12] != struct.pack("<I", MAGIC):
        raise ValueError("its numbers are not little-endian, as those of hpn are")
    at, interfaces = 0, 0
    while at < len(content):
        if at + _SMALLEST > len(content):
            raise ValueError(f"it ends within a block, at byte {at}")
        kind, length = _HEAD.unpack_from(content, at)
        if length < _SMALLEST or length % 4 or at + length > len(content):
            raise ValueError(f"it ends within a block, at byte {at}")
        block = content[at : at + length]
        if kind == INTERFACE:
            interfaces += 1
            yield _interface(block, at)
        elif kind == PACKET:
            yield _frame(block, at, interfaces)
        elif kind == STATISTICS:
            dropped = dict(_options(block, 8 + _STATISTICS_BYTES)).get(DROPPED, b"")
            yield Dropped(int.from_bytes(dropped[:8], "little"))
        elif kind == SECTION and at:
            raise ValueError(f"it has a second section, at byte {at}")
        at += length


def _interface(block: bytes, at: int) -> Interface:
    if len(block) < _SMALLEST + _INTERFACE_HEAD.size:
        raise ValueError(f"an interface at byte {at} is too short")
    _, _, snap_bytes = _INTERFACE_HEAD.unpack_from(block, 8)
    options = dict(_options(block, 8 + _INTERFACE_HEAD.size))
    if options.get(RESOLUTION) != bytes([NANOSECONDS]):
        raise ValueError(f"the stamps of the interface at byte {at} are not in nanoseconds, as those of hpn are")
    return Interface(options.get(NAME, b"").decode(errors="replace"), snap_bytes, block)


def _frame(block: bytes, at: int, interfaces: int) -> Frame:
    if len(block) < _SMALLEST + _PACKET_HEAD.size:
        raise ValueError(f"a packet at byte {at} is too short")
    number, high, low, kept, frame_bytes = _PACKET_HEAD.unpack_from(block, 8)
    begin = 8 + _PACKET_HEAD.size
    if number >= interfaces or begin + kept > len(block) - 4:
        raise ValueError(f"a packet at byte {at} is of no interface, or longer than its block")
    options = dict(_options(block, begin + kept + -kept % 4))
    flags = int.from_bytes(options.get(FLAGS, b"")[:4], "little") & 3
    direction = Direction.OUT if flags == Direction.OUT else Direction.IN
    return Frame(number, high << 32 | low, block[begin : begin + kept], frame_bytes, direction)


def _options(block: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    end = len(block) - 4
    while at + _OPTION.size <= end:
        code, length = _OPTION.unpack_from(block, at)
        at += _OPTION.size
        if code == 0 or at + length > end:
            return
        yield code, block[at : at + length]
        at += length + -length % 4
