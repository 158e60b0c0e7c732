"""The pcapng file format of Wireshark, with several interfaces in one file (draft-ietf-opsawg-pcapng). PURE."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
MAGIC, _ANY_LENGTH = 0x1A2B3C4D, -1
_ETHERNET = 1
NANOSECONDS = 9  # if_tsresol: timestamps count 10^-9 s
_END_OF_OPTIONS = bytes(4)
_COMMENT, _APPLICATION = 1, 4
NAME, _DESCRIPTION, _SPEED, RESOLUTION = 2, 3, 8, 9
FLAGS = 2
_RECEIVED, DROPPED = 4, 5

_Options = Iterable[tuple[int, bytes]]


class Direction(IntEnum):
    """Direction of a packet, as the interface sees it."""

    IN = 1
    OUT = 2


def section(application: str, comment: str) -> bytes:
    """Return the section header, which begins a file."""
    return _block(
        SECTION,
        struct.pack("<IHHq", MAGIC, 1, 0, _ANY_LENGTH),
        _texts((_COMMENT, comment), (_APPLICATION, application)),
    )


def interface(name: str, description: str, rate_bps: int, snap_bytes: int) -> bytes:
    """Return the block of an Ethernet interface; the first one of a file has number 0."""
    options = [*_texts((NAME, name), (_DESCRIPTION, description)), (_SPEED, struct.pack("<Q", rate_bps))]
    options.append((RESOLUTION, bytes([NANOSECONDS])))
    return _block(INTERFACE, struct.pack("<HHI", _ETHERNET, 0, snap_bytes), options)


def packet(
    number: int, at_ns: int, frame: bytes, frame_bytes: int, direction: Direction, comments: Iterable[str] = ()
) -> bytes:
    """Return a frame of interface ``number``, ``at_ns`` since 1970; ``frame_bytes`` is its untruncated length."""
    head = struct.pack("<IIIII", number, at_ns >> 32, at_ns & 0xFFFFFFFF, len(frame), frame_bytes)
    texts = _texts(*((_COMMENT, comment) for comment in comments))
    return _block(PACKET, head + _padded(frame), [(FLAGS, struct.pack("<I", direction)), *texts])


def statistics(number: int, at_ns: int, received: int, dropped: int) -> bytes:
    """Return the packet count of interface ``number``, and how many of them were lost before the file."""
    options = [(_RECEIVED, struct.pack("<Q", received)), (DROPPED, struct.pack("<Q", dropped))]
    return _block(STATISTICS, struct.pack("<III", number, at_ns >> 32, at_ns & 0xFFFFFFFF), options)


def _block(kind: int, body: bytes, options: _Options) -> bytes:
    body += b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options) + _END_OF_OPTIONS
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def _texts(*options: tuple[int, str]) -> list[tuple[int, bytes]]:
    return [(code, text.encode()) for code, text in options]


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)
