"""Packet capture on links to a pcapng file: a packet socket at one end of each link sees both directions."""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import BinaryIO

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets import pcapng
from hpn.testbed.kernel.packets.buffers import enlarge_receive

WHOLE_BYTES = 262_144
"""Room for any frame; the default of tcpdump and Wireshark."""

_ETH_P_ALL = 3
_SO_TIMESTAMPNS = 35
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_PACKET_OUTGOING = 4
_BUFFER_BYTES = 32 << 20
_SLACK_NS = 1_000_000  # a packet is stamped this long before it can be read, at most
_NEVER_NS = 1 << 63
_CONTROL_BYTES = 64
_A_ROUND = 1024  # packets of one link before the others have their turn
_STAMP = struct.Struct("=qq")
_COUNTS = struct.Struct("=II")


@dataclass(frozen=True, slots=True)
class Tap:
    """Capture point of a link: ``interface`` in ``ns`` is one of its ends."""

    link: str
    ns: NetNs
    interface: str
    rate_bps: int


@dataclass(slots=True)
class Captured:
    """Capture counts of a link: packets and bytes in the file, and packets that were lost before."""

    link: str
    packets: int = 0
    bytes: int = 0
    lost: int = 0


class Capture:
    """Frames on ``taps``, up to ``snap_bytes`` of each, written to ``file`` in the order of their timestamps.

    Capture starts at construction. Timestamps are CLOCK_REALTIME or, with ``monotonic``, CLOCK_MONOTONIC as in the
    events of a run. MachineError when an interface does not exist.
    """

    def __init__(
        self,
        taps: Sequence[Tap],
        file: BinaryIO,
        application: str,
        snap_bytes: int = WHOLE_BYTES,
        *,
        monotonic: bool = False,
    ) -> None:
        self.captured = [Captured(tap.link) for tap in taps]
        self._file = file
        self._buffer = bytearray(snap_bytes)
        self._waiting: list[tuple[int, int, bytes, int, pcapng.Direction]] = []  # timestamp first, the sort key
        self._poll = select.epoll()
        self._sockets: list[socket.socket] = []
        for tap in taps:
            self._sockets.append(_open(tap))
            self._poll.register(self._sockets[-1], select.EPOLLIN)
        self._numbers = {sock.fileno(): number for number, sock in enumerate(self._sockets)}
        offset_ns = time.time_ns() - time.monotonic_ns()
        self._shift_ns = offset_ns if monotonic else 0
        clock = "CLOCK_MONOTONIC" if monotonic else f"CLOCK_REALTIME, which is CLOCK_MONOTONIC + {offset_ns} ns"
        file.write(pcapng.section(application, f"stamps are {clock}"))
        for tap in taps:
            file.write(pcapng.interface(tap.link, f"{tap.ns.name}:{tap.interface}", tap.rate_bps, snap_bytes))

    def run(self, end_ns: int | None, stop_fd: int | None = None) -> None:
        """Write frames until ``end_ns`` (CLOCK_MONOTONIC) or until ``stop_fd`` is readable; None: until interrupted."""
        if stop_fd is not None:
            self._poll.register(stop_fd, select.EPOLLIN)
        while end_ns is None or time.monotonic_ns() < end_ns:
            ready = self._poll.poll(None if end_ns is None else max(end_ns - time.monotonic_ns(), 0) / 1e9)
            settled_ns = time.time_ns() - _SLACK_NS
            if any(fd == stop_fd for fd, _ in ready):
                return
            for fd, _ in ready:
                settled_ns = min(settled_ns, self._read(self._numbers[fd]))
            self._write(settled_ns)

    def close(self) -> None:
        """Write the remaining frames and the loss counts, which completes the file. It stays open."""
        for number in range(len(self._sockets)):
            self._read(number)
        self._write(_NEVER_NS)
        at_ns = time.time_ns() - self._shift_ns
        for number, (sock, captured) in enumerate(zip(self._sockets, self.captured, strict=True)):
            _, captured.lost = _COUNTS.unpack(sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _COUNTS.size))
            self._file.write(pcapng.statistics(number, at_ns, captured.packets + captured.lost, captured.lost))
            sock.close()
        self._file.flush()
        self._poll.close()

    def _read(self, number: int) -> int:
        """Read one socket's frames; return the timestamp below which it holds no more."""
        sock, captured = self._sockets[number], self.captured[number]
        for _ in range(_A_ROUND):
            try:
                size, control, _, address = sock.recvmsg_into([self._buffer], _CONTROL_BYTES, socket.MSG_TRUNC)
            except BlockingIOError:
                return _NEVER_NS
            except OSError as error:
                if error.errno != errno.ENETDOWN:  # reported once; the socket receives again when the interface is back
                    raise
                continue
            ((_, _, stamp),) = control
            seconds, nanoseconds = _STAMP.unpack(stamp)
            direction = pcapng.Direction.OUT if address[2] == _PACKET_OUTGOING else pcapng.Direction.IN
            frame = bytes(memoryview(self._buffer)[:size])
            self._waiting.append((seconds * 10**9 + nanoseconds, number, frame, size, direction))
            captured.packets += 1
            captured.bytes += size
        return self._waiting[-1][0] if self._waiting else 0

    def _write(self, settled_ns: int) -> None:
        """Write frames stamped before ``settled_ns``, in order: no link can deliver an older one any more."""
        self._waiting.sort(key=itemgetter(0))
        count = bisect_left(self._waiting, settled_ns, key=itemgetter(0))
        for at_ns, number, frame, size, direction in self._waiting[:count]:
            self._file.write(pcapng.packet(number, at_ns - self._shift_ns, frame, size, direction))
        del self._waiting[:count]


def _open(tap: Tap) -> socket.socket:
    sock = tap.ns.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        enlarge_receive(sock, _BUFFER_BYTES)
        sock.bind((tap.interface, _ETH_P_ALL))
    except OSError as error:
        sock.close()
        raise MachineError(
            f"cannot listen to {tap.link} at {tap.ns.name}:{tap.interface}: {error.strerror}; is that node alive?"
        ) from error
    return sock
