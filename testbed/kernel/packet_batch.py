"""Packet sockets for many frames at a time: one ethertype on all interfaces of a namespace, to one address.

sendmmsg(2) and recvmmsg(2) carry up to 64 frames by one system call. Interfaces are told apart by their index: with
names, as Python's own calls have them, each frame costs the kernel a second call.
"""

from __future__ import annotations

import ctypes
import socket
import struct

from testbed.kernel.ns import NetNs, libc
from testbed.kernel.packet import PACKET_OUTGOING, join_group, open_packets
from testbed.kernel.rtnl import mac_bytes

_FRAMES = 64
_LONGEST = 2048  # what is longer is cut
_ADDRESS = struct.Struct("=HHiHBB8s")  # sockaddr_ll: family, protocol, ifindex, hardware type, packet type, length, MAC
_ADDRESS_BYTES = 20


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


class _Frames:
    """Memory for ``_FRAMES`` frames with their addresses."""

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


def _address_of(memory: bytearray) -> int:
    return ctypes.addressof((ctypes.c_char * len(memory)).from_buffer(memory))  # which may never be resized


class PacketBatch:
    """The frames of one ethertype in one namespace; sockets of a process share its memory, so one thread uses them.

    PermissionError without CAP_NET_RAW in the namespace.
    """

    _outgoing, _incoming = _Frames(), _Frames()

    def __init__(self, ns: NetNs, ethertype: int, group: str) -> None:
        """``group`` is the multicast MAC address that all is sent to, and that ``listen`` listens to."""
        self._socket = open_packets(ns, ethertype)
        self._protocol = socket.htons(ethertype)
        self._group, self._octets = group, mac_bytes(group)

    @property
    def socket(self) -> socket.socket:
        """What to wait for, and to close."""
        return self._socket

    def listen(self, ifindex: int) -> None:
        """Hear the group on this interface. OSError when it is missing."""
        join_group(self._socket, ifindex, self._group)

    def send(self, frames: list[tuple[int, bytes]]) -> None:
        """Send payloads of at most 2,048 octets, each out of an interface; one that cannot take it now loses its."""
        frame = self._outgoing
        for first in range(0, len(frames), _FRAMES):
            some = frames[first : first + _FRAMES]
            for at, (ifindex, payload) in enumerate(some):
                address = (socket.AF_PACKET, self._protocol, ifindex, 0, 0, 6, self._octets)
                _ADDRESS.pack_into(frame.addresses, at * _ADDRESS_BYTES, *address)
                frame.payloads[at * _LONGEST : at * _LONGEST + len(payload)] = payload
                frame.iovecs[at].length = len(payload)
            self._send(len(some))

    def _send(self, count: int) -> None:
        """The kernel stops at a frame that cannot leave; those after it go on their own."""
        done, size = 0, ctypes.sizeof(_Message)
        while done < count:
            at = ctypes.byref(self._outgoing.messages, done * size)
            done += max(libc.sendmmsg(self._socket.fileno(), at, count - done, 0), 1)

    def receive(self) -> list[tuple[int, bytes]]:
        """Index of the interface and payload of up to 64 frames that wait; empty when none does, or one went down."""
        frame = self._incoming
        count = libc.recvmmsg(self._socket.fileno(), frame.messages, _FRAMES, socket.MSG_DONTWAIT, None)
        found = []
        for at in range(count):
            _, _, ifindex, _, kind, _, _ = _ADDRESS.unpack_from(frame.addresses, at * _ADDRESS_BYTES)
            if kind != PACKET_OUTGOING:
                start = at * _LONGEST
                found.append((ifindex, bytes(frame.payloads[start : start + frame.messages[at].length])))
        return found
