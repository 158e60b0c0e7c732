"""Packet sockets for batches of frames: one ethertype on all interfaces of a namespace, to one address.

sendmmsg(2) and recvmmsg(2) carry up to 64 frames per system call. Interfaces are identified by index. Python's own
calls use names, which cost the kernel a second call per frame.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

from hpn.testbed.kernel.ns import NetNs, libc
from hpn.testbed.kernel.packets.packet import PACKET_OUTGOING, join_group, open_packets
from hpn.testbed.kernel.rtnetlink.rtnl import mac_bytes

_FRAMES = 64
_LONGEST = 2048  # longer frames are truncated
_ADDRESS = struct.Struct("=HHiHBB8s")  # sockaddr_ll: family, protocol, ifindex, hardware type, packet type, length, MAC
_ADDRESS_BYTES, _MESSAGE_BYTES = 20, 64


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """struct msghdr."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_bytes", ctypes.c_uint32),
        ("iov", ctypes.c_void_p),
        ("iov_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_bytes", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    """struct mmsghdr."""

    _fields_ = (("header", _Header), ("length", ctypes.c_uint))


class Frame:
    """One payload for one interface, laid out for the kernel; it can be sent any number of times."""

    def __init__(self, ifindex: int, ethertype: int, group: str, payload: bytes) -> None:
        """Lay out the frame; ``group`` is its destination MAC address."""
        self.ifindex = ifindex
        self.payload = payload
        protocol, octets = socket.htons(ethertype), mac_bytes(group)
        self._address = ctypes.create_string_buffer(
            _ADDRESS.pack(socket.AF_PACKET, protocol, ifindex, 0, 0, len(octets), octets), _ADDRESS_BYTES
        )
        self._octets = ctypes.create_string_buffer(payload, len(payload))
        self._iovec = _Iovec(ctypes.addressof(self._octets), len(payload))
        header = _Header(ctypes.addressof(self._address), _ADDRESS_BYTES, ctypes.addressof(self._iovec), 1, None, 0, 0)
        self.message = bytes(_Message(header, 0))


class _Room:
    """Memory for ``_FRAMES`` received frames and their addresses."""

    def __init__(self) -> None:
        self.payloads, self.addresses = bytearray(_FRAMES * _LONGEST), bytearray(_FRAMES * _ADDRESS_BYTES)
        self.iovecs = (_Iovec * _FRAMES)()
        self.messages = (_Message * _FRAMES)()
        payloads, addresses = _address_of(self.payloads), _address_of(self.addresses)
        for at in range(_FRAMES):
            self.iovecs[at] = _Iovec(payloads + at * _LONGEST, _LONGEST)
            iovec = ctypes.addressof(self.iovecs) + at * ctypes.sizeof(_Iovec)
            self.messages[at] = _Message(
                _Header(addresses + at * _ADDRESS_BYTES, _ADDRESS_BYTES, iovec, 1, None, 0, 0), 0
            )
        # Reading a field of a ctypes structure takes longer than all other work per frame.
        self.lengths = memoryview(self.messages).cast("B").cast("I")[_Message.length.offset // 4 :: _MESSAGE_BYTES // 4]
        self.ifindexes = memoryview(self.addresses).cast("i")[1 :: _ADDRESS_BYTES // 4]
        self.kinds = memoryview(self.addresses)[10::_ADDRESS_BYTES]


def _address_of(memory: bytearray) -> int:
    return ctypes.addressof((ctypes.c_char * len(memory)).from_buffer(memory))  # the buffer must never be resized


class PacketBatch:
    """The frames of one ethertype in one namespace; a process's sockets share buffers, so only one thread may use them.

    PermissionError without CAP_NET_RAW in the namespace.
    """

    _outgoing, _incoming = bytearray(_FRAMES * _MESSAGE_BYTES), _Room()
    _outgoing_at = _address_of(_outgoing)

    def __init__(self, ns: NetNs, ethertype: int, group: str) -> None:
        """Open the socket; ``group`` is the multicast MAC address that ``listen`` subscribes to."""
        self._socket = open_packets(ns, ethertype)
        self._group = group

    @property
    def socket(self) -> socket.socket:
        """Underlying socket, to wait for and to close."""
        return self._socket

    def listen(self, ifindex: int) -> None:
        """Receive the group on this interface. OSError when it is missing."""
        join_group(self._socket, ifindex, self._group)

    def send(self, frames: Sequence[Frame]) -> None:
        """Send each frame once; an interface that cannot take one now loses it."""
        for first in range(0, len(frames), _FRAMES):
            some = frames[first : first + _FRAMES]
            self._outgoing[: len(some) * _MESSAGE_BYTES] = b"".join([frame.message for frame in some])
            self._send(len(some))

    def _send(self, count: int) -> None:
        """Send the first ``count`` frames; the kernel stops at one that cannot be sent, so continue after it."""
        done = 0
        while done < count:
            at = ctypes.c_void_p(self._outgoing_at + done * _MESSAGE_BYTES)
            done += max(libc.sendmmsg(self._socket.fileno(), at, count - done, 0), 1)

    def receive(self) -> list[tuple[int, bytes]]:
        """Return interface index and payload of up to 64 waiting frames; empty if none, or an interface went down."""
        room, found = self._incoming, []
        for at in range(libc.recvmmsg(self._socket.fileno(), room.messages, _FRAMES, socket.MSG_DONTWAIT, None)):
            if room.kinds[at] != PACKET_OUTGOING:
                start = at * _LONGEST
                found.append((room.ifindexes[at], bytes(room.payloads[start : start + room.lengths[at]])))
        return found
