"""Socket buffers beyond the system's limit, if the process has the privilege."""

from __future__ import annotations

import socket

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33


def enlarge_receive(sock: socket.socket, bytes_: int) -> None:
    """Set a receive buffer of ``bytes_``; without the privilege to exceed the limit, take what it allows."""
    _enlarge(sock, _SO_RCVBUFFORCE, socket.SO_RCVBUF, bytes_)


def enlarge_send(sock: socket.socket, bytes_: int) -> None:
    """Set a send buffer of ``bytes_``; without the privilege to exceed the limit, take what it allows."""
    _enlarge(sock, _SO_SNDBUFFORCE, socket.SO_SNDBUF, bytes_)


def _enlarge(sock: socket.socket, forced: int, plain: int, bytes_: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, forced, bytes_)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, plain, bytes_)
