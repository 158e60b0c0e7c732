"""Client of an FRR daemon's vty socket, as vtysh.

A command ends with a zero byte. The answer is text, three zero bytes and the command's status; 0 is success.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from hpn.testbed.errors import MachineError

_END = b"\0\0\0"
_LONGEST_ANSWER = 1 << 24


class FrrError(MachineError):
    """An FRR daemon refused a command, closed the connection, or did not answer."""


def command_now(path: Path, commands: Sequence[str], timeout_s: float = 2.0) -> str:
    """Run commands in sequence on one connection, starting in the privileged node; return the last one's output.

    The caller blocks until all are answered. FrrError when one is refused, or without an answer in time.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            said = ""
            for command in ("enable", *commands):
                connection.sendall(command.encode() + b"\0")
                said = _answer(connection, command)
            return said
    except OSError as error:
        raise FrrError(f"FRR at {path} did not carry out {commands!r}: {error.strerror or error}") from error


def _answer(connection: socket.socket, command: str) -> str:
    data = b""
    while data[-4:-1] != _END:
        more = connection.recv(1 << 16)
        if not more or len(data) > _LONGEST_ANSWER:
            raise FrrError(f"FRR closed the connection in the middle of its answer to {command!r}")
        data += more
    text = data[:-4].decode(errors="replace").strip()
    if data[-1] != 0:
        raise FrrError(f"FRR refused {command!r}: {text or f'status {data[-1]}'}")
    return text
