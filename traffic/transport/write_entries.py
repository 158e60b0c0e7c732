"""Packets to write in a tick: runs of packets, and packets that are complete already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hpn.traffic.streams import wire
from hpn.traffic.transport.requester import Run

U64 = npt.NDArray[np.uint64]

_NO_WORD = np.zeros(1, np.uint64)


class Entry(NamedTuple):
    """Packets to write: a run of one path or, with ``ready``, one packet that is complete."""

    packets: int
    """Number of packets."""

    numbers: tuple[int, int, int, int, int, int, int, int, int]
    """Path, PSN, index of the first in its message, count, packets and bytes of the message, immediate or -1, send
    time. Last: 1 if the run's last packet always requests an acknowledgement."""

    address: int
    words: U64
    ready: bytes = b""
    paths: Sequence[int] = ()
    """Path of each packet, if they differ: then each is a WRITE of its own, with its own address."""

    quiet: bool = False
    """True if its last packet requests no acknowledgement although it ends a WRITE."""


def run_entry(path: int, run: Run, words: U64, sent_ns: int, path_mtu: int) -> Entry:
    """Return a run as an entry: each packet with its word, all with the send time ``sent_ns``."""
    request = run.request
    packets = -(-request.size_bytes // path_mtu)
    immediate = -1 if request.immediate is None else request.immediate
    place = (path, run.psn & wire.PSN_MASK, run.first, run.count, packets)
    return Entry(run.count, (*place, request.size_bytes, immediate, sent_ns, run.ack_last), request.address, words)


def many_entry(paths: Sequence[int], run: Run, words: U64, sent_ns: int, path_mtu: int) -> Entry:
    """Return a run as an entry: each packet by its own path, as a WRITE of its own."""
    return run_entry(paths[0], run, words, sent_ns, path_mtu)._replace(paths=paths)


def ready_entry(path: int, packet: bytes, path_mtu: int) -> Entry:
    """Return an entry for one packet that is complete from its IP header on, such as a reply; otherwise it is like a
    MIDDLE."""
    return Entry(1, (path, 0, 1, 1, 3, 3 * path_mtu, -1, 0, 0), 0, _NO_WORD, packet)
