"""Packet sockets (AF_PACKET): control protocols over Ethernet on one port of one namespace.

Closing a packet socket costs the kernel an RCU grace period, some 15 ms. So a namespace has one per ethertype, shared
by all its ports. A lab of 500 ports closes in seconds instead of a quarter of a minute. A ToR that crashes does not
stall the event loop that is measuring it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.rtnl import mac_bytes

OnFrame = Callable[[bytes, str], None]
"""Callback for a frame: its payload and its source MAC address."""

_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, _PACKET_ORIGDEV = 263, 1, 9
_PACKET_MR_MULTICAST = 0
PACKET_OUTGOING = 4
_CLOSERS = 256
_FRAMES_A_WAKE = 64
_MREQ = struct.Struct("=iHH8s")
_hubs: dict[tuple[int, int, bool], _Hub] = {}
_open: set[socket.socket] = set()  # sockets that the kernel has not released yet


class PacketSocket:
    """A socket for one ethertype on one interface; the kernel writes and strips the Ethernet header.

    With ``on_frame`` it receives, on the running event loop. OSError when the interface is missing, PermissionError
    without CAP_NET_RAW in the namespace.
    """

    def __init__(
        self, ns: NetNs, interface: str, ethertype: int, *, group: str | None = None, on_frame: OnFrame | None = None
    ) -> None:
        """Open the socket; ``group`` is a multicast MAC address to receive."""
        with ns.entered():
            ifindex = socket.if_nametoindex(interface)
        self._interface = interface
        self._ethertype = ethertype
        self._on_frame = on_frame
        self._hub: _Hub | None = _hub(ns, ethertype, on_frame is not None)
        self._hub.join(interface, ifindex, group, on_frame)

    def send(self, payload: bytes, destination: str) -> bool:
        """Send one frame to a MAC address; False when the interface cannot take it now (down, gone, queue full)."""
        if self._hub is None:
            return False
        return self._hub.send(payload, (self._interface, self._ethertype, 0, 0, mac_bytes(destination)))

    def close(self) -> None:
        """Stop sending and receiving; the socket is closed in the background."""
        if self._hub is not None:
            self._hub.leave(self._interface, self._on_frame)
            self._hub = None


class _Hub:
    """The one socket of a namespace for one ethertype, and the ports that use it. It receives only if ``listening``."""

    def __init__(self, ns: NetNs, ethertype: int, listening: bool) -> None:
        self._key = (ns.fd, ethertype, listening)
        self._socket = open_packets(ns, ethertype if listening else 0)
        self._users = 0
        self._listeners: dict[str, list[OnFrame]] = {}
        self._loop = asyncio.get_running_loop() if listening else None
        if self._loop is not None:
            self._loop.add_reader(self._socket.fileno(), self._readable)

    def join(self, interface: str, ifindex: int, group: str | None, on_frame: OnFrame | None) -> None:
        self._users += 1
        if on_frame is not None:
            self._listeners.setdefault(interface, []).append(on_frame)
        if group is not None:
            join_group(self._socket, ifindex, group)

    def leave(self, interface: str, on_frame: OnFrame | None) -> None:
        self._users -= 1
        if on_frame is not None:
            self._listeners[interface].remove(on_frame)
        if self._users:
            return
        _hubs.pop(self._key, None)
        if self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
        close_soon(self._socket)

    def send(self, payload: bytes, address: tuple[str, int, int, int, bytes]) -> bool:
        try:
            self._socket.sendto(payload, address)
        except OSError:
            return False
        return True

    def _readable(self) -> None:
        for _ in range(_FRAMES_A_WAKE):
            try:
                payload, address = self._socket.recvfrom(65535)
            except OSError:  # nothing waits, or an interface went down
                return
            if address[2] == PACKET_OUTGOING:
                continue
            for listener in tuple(self._listeners.get(address[0], ())):
                listener(payload, address[4].hex(":"))
            if not self._users:  # the listener closed the last port
                return


def _hub(ns: NetNs, ethertype: int, listening: bool) -> _Hub:
    key = (ns.fd, ethertype, listening)
    if key not in _hubs:
        _hubs[key] = _Hub(ns, ethertype, listening)
    return _hubs[key]


@cache
def _closers() -> ThreadPoolExecutor:
    """Return the thread pool for closing: concurrent closings share one grace period."""
    return ThreadPoolExecutor(_CLOSERS, thread_name_prefix="packet-close")


def open_packets(ns: NetNs, ethertype: int) -> socket.socket:
    """Open a packet socket that receives one ethertype on every interface of the namespace; with 0 it receives nothing.

    It is registered as by ``opened_for_packets``. PermissionError without CAP_NET_RAW in the namespace.
    """
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    opened = opened_for_packets(ns.socket(socket.AF_PACKET, kind, socket.htons(ethertype)))
    # Otherwise frames received by a member of a bond would have the bond as their interface.
    opened.setsockopt(_SOL_PACKET, _PACKET_ORIGDEV, 1)
    return opened


def join_group(opened: socket.socket, ifindex: int, group: str) -> None:
    """Receive a multicast MAC address on this interface. OSError when it is missing."""
    membership = _MREQ.pack(ifindex, _PACKET_MR_MULTICAST, 6, mac_bytes(group))
    opened.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)


def opened_for_packets(opened: socket.socket) -> socket.socket:
    """Register a socket that takes the kernel long to close, for ``close_all``; return it."""
    _open.add(opened)
    return opened


def close_soon(opened: socket.socket) -> None:
    """Close a registered socket in the background."""
    _closers().submit(_close, opened)


def finish_closing() -> None:
    """Wait until the kernel has released every closed packet socket."""
    _closers().shutdown()
    _closers.cache_clear()


def close_all() -> None:
    """Close every packet socket of a process that is about to end, in use or not, and wait until all are released.

    The kernel would close them one after another.
    """
    with ThreadPoolExecutor(_CLOSERS) as pool:
        pool.map(_close, tuple(_open))


def _close(opened: socket.socket) -> None:
    opened.close()
    _open.discard(opened)
