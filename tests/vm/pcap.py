"""Reads what dumpcap wrote, and counts RoCEv2 data packets by queue pair: knows formats, and nothing of our code.

libpcap's file format (draft-ietf-opsawg-pcap), Ethernet, IPv4 without options, UDP, BTH (IBTA vol. 1, 9.2).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

_FILE, _RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
_FRACTION_NS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
_ETHERNET, _IPV4, _UDP, _ROCE = 1, 0x0800, 17, 4791
_SEND_ONLY = 0x04  # RC


@dataclass(frozen=True)
class Stream:
    """Data of one queue pair, by where it goes."""

    src: str
    dst: str
    qpn: int


@dataclass
class Seen:
    """What passed one LAG of a stream: packet sequence number to wall clock, ns, in order; ``copies`` came twice."""

    at_ns: dict[int, int] = field(default_factory=dict)
    copies: int = 0


def frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Wall clock in ns and the first bytes of each frame."""
    content = path.read_bytes()
    magic, _major, _minor, _zone, _figures, _length, link = _FILE.unpack_from(content)
    assert link == _ETHERNET, f"{path} has link type {link}"
    at = _FILE.size
    while at < len(content):
        seconds, fraction, kept, _whole = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        yield seconds * 10**9 + fraction * _FRACTION_NS[magic], content[at : at + kept]
        at += kept


def data_packets(paths: Iterable[Path]) -> Mapping[tuple[str, Stream], Seen]:
    """Per capture file and stream, the data packets seen there. A PSN is 24 bit; runs here are shorter than that."""
    found: dict[tuple[str, Stream], Seen] = defaultdict(Seen)
    for path in paths:
        for at_ns, frame in frames(path):
            stream_psn = _data(frame)
            if stream_psn is None:
                continue
            seen = found[(path.name.removesuffix(".pcap"), stream_psn[0])]
            seen.copies += stream_psn[1] in seen.at_ns
            seen.at_ns.setdefault(stream_psn[1], at_ns)
    return found


def _data(frame: bytes) -> tuple[Stream, int] | None:
    """The stream and PSN of a RoCEv2 SEND ONLY; None for every other frame."""
    if len(frame) < 54 or int.from_bytes(frame[12:14]) != _IPV4 or frame[14] != 0x45 or frame[23] != _UDP:
        return None
    if int.from_bytes(frame[36:38]) != _ROCE or frame[42] != _SEND_ONLY:
        return None
    src, dst = IPv4Address(frame[26:30]), IPv4Address(frame[30:34])
    return Stream(str(src), str(dst), int.from_bytes(frame[47:50])), int.from_bytes(frame[51:54])
