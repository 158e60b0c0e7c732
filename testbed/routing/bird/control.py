"""Client of BIRD's control socket: commands out, coded lines back.

The protocol (BIRD's doc/reply_codes): a line is ``CCCC-text`` (more follows), ``CCCC text`` (the last one) or a blank
and text (the code of the line before). 0xxx is success, 8xxx a runtime error, 9xxx a syntax error.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError

_LONGEST_LINE = 1 << 16
_LONGEST_REPLY = 1 << 20  # lines
_CODED = re.compile(r"^(\d{4})([- ])(.*)$")


class BirdError(MachineError):
    """BIRD refused a command, closed the connection, or violated its own protocol."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer: (code, text) per line, and the last line's code and text."""

    lines: tuple[tuple[int, str], ...]
    code: int
    text: str


class ReplyParser:
    """Collector of one answer's lines. BirdError on anything that is not BIRD's protocol."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []

    def feed(self, line: str) -> Reply | None:
        """Take one line without its end; return the answer once it is complete."""
        if len(self._lines) >= _LONGEST_REPLY:
            raise BirdError("BIRD's answer does not end")
        if line.startswith("+"):  # asynchronous notice, belongs to no command
            return None
        if line.startswith(" "):
            if not self._lines:
                raise BirdError(f"BIRD's answer starts in the middle: {line[:80]!r}")
            self._lines.append((self._lines[-1][0], line[1:]))
            return None
        coded = _CODED.match(line)
        if coded is None:
            raise BirdError(f"not an answer of BIRD: {line[:80]!r}")
        self._lines.append((int(coded[1]), coded[3]))
        if coded[2] == "-":
            return None
        code, text = self._lines[-1]
        return Reply(tuple(self._lines), code, text)


def command_now(path: Path, text: str, timeout_s: float = 2.0) -> Reply:
    """Send one command and block until its answer. BirdError when BIRD is gone, silent or refuses."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(text.encode() + b"\n")
            with connection.makefile("rb") as lines:
                replies = _replies(iter(lambda: lines.readline(_LONGEST_LINE), b""))
                next(replies)  # 0001 BIRD ready
                reply = next(replies)
    except OSError as error:
        raise BirdError(f"BIRD at {path} did not carry out {text!r}: {error.strerror or error}") from error
    except StopIteration:
        raise BirdError("BIRD closed the connection in the middle of an answer") from None
    if reply.code >= 8000:
        raise BirdError(f"BIRD refused {text!r}: {reply.text or reply.code}")
    return reply


def _replies(lines: Iterable[bytes]) -> Iterator[Reply]:
    """Yield the complete answers in a stream of lines. BirdError for a line without end."""
    parser = ReplyParser()
    for line in lines:
        if not line.endswith(b"\n"):
            raise BirdError("BIRD sent a line without end, or closed the connection in the middle of an answer")
        reply = parser.feed(line.decode(errors="replace").rstrip("\r\n"))
        if reply is not None:
            yield reply
            parser = ReplyParser()
