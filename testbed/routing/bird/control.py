"""Talking to BIRD through its control socket: commands out, coded lines back, typed answers for sessions and routes.

The protocol (BIRD's doc/reply_codes): a line is ``CCCC-text`` (more follows), ``CCCC text`` (the last one) or a blank
and text (the code of the line before). 0xxx is success, 8xxx a runtime error, 9xxx a syntax error.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

from testbed.errors import MachineError

_LONGEST_LINE = 1 << 16
_LONGEST_REPLY = 1 << 20  # lines
_CODED = re.compile(r"^(\d{4})([- ])(.*)$")
_NOT_FOUND, _TABLE_LINE, _DETAILS, _ROUTE, _ATTRIBUTES = 8001, 1002, 1006, 1007, 1012
_ROUTE_LINE = re.compile(
    r"^(?P<prefix>\d\S*)?\s+(?P<kind>[a-z]+) \[(?P<protocol>\S+) (?P<since>[^\]]*?)(?: from \S+)?\](?P<best> \*)?"
)
_VIA = re.compile(r"^\s*via (?P<gateway>\d[0-9.]*) on (?P<port>\S+)")
_DEV = re.compile(r"^\s*dev (?P<port>\S+)")


class BirdError(MachineError):
    """BIRD refused a command, went away, or did not speak its own protocol."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer: (code, text) per line, the last line's code apart."""

    lines: tuple[tuple[int, str], ...]
    code: int
    text: str


@dataclass(frozen=True, slots=True)
class BgpSession:
    """One eBGP session. ``name`` is the port; ``since`` is BIRD's own wall-clock text; ``info`` its last words."""

    name: str
    state: str  # BGP state: Established, Connect, Active, Idle, ...; 'Down' when BIRD says nothing more
    since: str
    neighbour: str
    neighbour_as: int
    description: str
    info: str

    @property
    def established(self) -> bool:
        """True when routes flow."""
        return self.state == "Established"


@dataclass(frozen=True, slots=True)
class BirdRoute:
    """One candidate in BIRD's table; ``next_hops`` are (gateway or '', port)."""

    prefix: str
    kind: str  # unicast, blackhole, unreachable
    protocol: str
    best: bool
    next_hops: tuple[tuple[str, str], ...]
    as_path: tuple[int, ...]


class ReplyParser:
    """Collects the lines of one answer. BirdError on anything that is not BIRD's protocol."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []

    def feed(self, line: str) -> Reply | None:
        """Take one line without its end; the answer once it is whole."""
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


class BirdClient:
    """A client of one BIRD; every command uses a connection of its own and at most ``timeout_s``."""

    def __init__(self, path: Path, timeout_s: float = 2.0) -> None:
        self._path = path
        self._timeout_s = timeout_s

    async def protocols(self) -> list[BgpSession]:
        """Every BGP session, in configuration order."""
        return parse_sessions((await self.command("show protocols all")).lines)

    async def routes(self, prefix: str) -> list[BirdRoute]:
        """Every candidate for exactly ``prefix`` ('a.b.c.d/len'). ValueError when it is none."""
        try:
            reply = await self.command(f"show route {IPv4Network(prefix)} all")
        except _NotFoundError:
            return []
        return parse_routes(reply.lines)

    async def command(self, text: str) -> Reply:
        """One command, one answer. BirdError when BIRD refuses it, is gone, or takes too long."""
        if "\n" in text or "\r" in text:
            raise ValueError("one command is one line")
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._exchange(text)
        except TimeoutError:
            raise BirdError(f"BIRD at {self._path} did not answer {text!r} within {self._timeout_s} s") from None
        except OSError as error:
            raise BirdError(
                f"BIRD at {self._path} cannot be reached: {error.strerror or error}; is it running?"
            ) from error
        if reply.code >= 8000:
            kind = _NotFoundError if reply.code == _NOT_FOUND else BirdError
            raise kind(f"BIRD refused {text!r}: {reply.text or reply.code}")
        return reply

    async def _exchange(self, text: str) -> Reply:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=_LONGEST_LINE)
        try:
            await _read_reply(reader)  # 0001 BIRD ready
            writer.write(text.encode() + b"\n")
            return await _read_reply(reader)
        finally:
            writer.transport.abort()


def command_now(path: Path, text: str, timeout_s: float = 2.0) -> Reply:
    """One command whose moment matters, answered before this returns: the caller blocks. BirdError as ``command``."""
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
    """The whole answers in a stream of lines. BirdError for a line without end."""
    parser = ReplyParser()
    for line in lines:
        if not line.endswith(b"\n"):
            raise BirdError("BIRD sent a line without end, or closed the connection in the middle of an answer")
        reply = parser.feed(line.decode(errors="replace").rstrip("\r\n"))
        if reply is not None:
            yield reply
            parser = ReplyParser()


class _NotFoundError(BirdError):
    """Nothing matched; not a failure for a look-up."""


async def _read_reply(reader: asyncio.StreamReader) -> Reply:
    parser = ReplyParser()
    while True:
        try:
            line = await reader.readline()
        except ValueError as error:  # longer than the limit
            raise BirdError("BIRD sent a line without end") from error
        if not line.endswith(b"\n"):
            raise BirdError("BIRD closed the connection in the middle of an answer")
        reply = parser.feed(line.decode(errors="replace").rstrip("\r\n"))
        if reply is not None:
            return reply


def parse_sessions(lines: Sequence[tuple[int, str]]) -> list[BgpSession]:
    """The BGP sessions in an answer to ``show protocols all``; lines that make no sense are passed over."""
    sessions: list[BgpSession] = []
    in_bgp = False
    for code, text in lines:
        if code == _TABLE_LINE:
            columns = text.split(maxsplit=5)
            in_bgp = len(columns) >= 5 and columns[1] == "BGP"
            if in_bgp:
                info = columns[5].strip() if len(columns) > 5 else ""
                sessions.append(BgpSession(columns[0], "Down", columns[4], "", 0, "", info))
        elif code == _DETAILS and in_bgp:
            key, _, value = text.strip().partition(":")
            sessions[-1] = _with_detail(sessions[-1], key, value.strip())
    return sessions


def _with_detail(session: BgpSession, key: str, value: str) -> BgpSession:
    if key == "Description":
        return replace(session, description=value)
    if key == "BGP state":
        return replace(session, state=value)
    if key == "Neighbor address":
        return replace(session, neighbour=value.partition("%")[0])
    if key == "Neighbor AS":
        return replace(session, neighbour_as=int(value) if value.isdecimal() else 0)
    return session


def parse_routes(lines: Sequence[tuple[int, str]]) -> list[BirdRoute]:
    """The candidates in an answer to ``show route ... all``; lines that make no sense are passed over."""
    routes: list[BirdRoute] = []
    prefix = ""
    for code, text in lines:
        if code == _ROUTE and (found := _ROUTE_LINE.match(text)):
            prefix = found["prefix"] or prefix
            routes.append(BirdRoute(prefix, found["kind"], found["protocol"], found["best"] is not None, (), ()))
        elif code == _ROUTE and routes:
            routes[-1] = replace(routes[-1], next_hops=(*routes[-1].next_hops, *_next_hop(text)))
        elif code == _ATTRIBUTES and routes:
            key, _, value = text.strip().partition(": ")
            if key == "BGP.as_path":
                routes[-1] = replace(routes[-1], as_path=tuple(int(n) for n in value.split() if n.isdecimal()))
    return routes


def _next_hop(text: str) -> Iterator[tuple[str, str]]:
    if via := _VIA.match(text):
        yield via["gateway"], via["port"]
    elif dev := _DEV.match(text):
        yield "", dev["port"]
