"""The control socket: JSON lines between the supervisor of a lab and the commands of its user.

A request is one line {"op": NAME, ...}; the answer is any number of {"event": {...}} lines and one last line
{"ok": RESULT} or {"error": TEXT, "exit_code": N}. The socket lies in a directory of mode 0700 and the supervisor
also checks the peer's user ID.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from testbed.errors import HpnError, MachineError, error_for
from testbed.kernel.processes import is_stopped
from testbed.lab.service.labfolder import LabFolder

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
Json = Mapping[str, JsonValue]
Emit = Callable[[Json], None]
Handler = Callable[[Json, Emit], Awaitable[JsonValue]]

_LIMIT = 1 << 26
_PATIENCE_MS = 1000  # so long without a word, and the asker looks whether the supervisor is stopped


class SupervisorGone(MachineError):
    """The supervisor ended before or while it was asked something."""


def listen(path: Path) -> socket.socket:
    """Bind the control socket (before the sandbox hides its directory).

    MachineError when the path is too long, OSError when its directory takes nothing.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        server.bind(str(path))
    except OSError as error:
        server.close()
        if error.errno is not None:
            raise
        raise MachineError(
            f"cannot make the control socket {path} ({error}); set HPN_STATE_DIR to a short path"
        ) from error
    os.chmod(path, 0o600)
    server.listen(16)
    return server


class ControlServer:
    """Serves ``handlers`` by operation name on a listening socket until closed."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Begin to accept."""
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LIMIT)

    def close(self) -> None:
        """Stop accepting."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if _peer_uid(writer.get_extra_info("socket")) != os.geteuid():
                return
            line = await reader.readline()
            answer = await self._answer(line, lambda event: _write(writer, {"event": dict(event)}))
            _write(writer, answer)
            await writer.drain()
        except (ConnectionError, asyncio.LimitOverrunError, ValueError):
            pass  # the client went away, or never was one of ours
        finally:
            writer.close()

    async def _answer(self, line: bytes, emit: Emit) -> Json:
        try:
            request = json.loads(line)
            handler = self._handlers[request["op"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"error": "the supervisor does not know this request; is it of another hpn version?", "exit_code": 2}
        try:
            return {"ok": await handler(request, emit)}
        except HpnError as error:
            return {"error": str(error), "exit_code": error.exit_code}
        except OSError as error:  # an interface that somebody in the lab has deleted, for one
            way_out = "if the lab was changed by hand, start it anew: hpn down, hpn up"
            return {"error": f"the kernel refuses: {error}; {way_out}", "exit_code": MachineError.exit_code}


def _write(writer: asyncio.StreamWriter, message: Json) -> None:
    if not writer.is_closing():
        writer.write(json.dumps(message).encode() + b"\n")


def _peer_uid(connection: socket.socket) -> int:
    return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])


def call(path: Path, op: str, *, on_event: Emit | None = None, **arguments: JsonValue) -> JsonValue:
    """Ask the supervisor and wait for its last word. The supervisor's own errors come back as what they were.

    SupervisorGone when it ends without that word, MachineError when it is stopped.
    """
    for message in _conversation(path, {"op": op, **arguments}):
        if "event" in message:
            event = message["event"]
            if on_event is not None and isinstance(event, dict):
                on_event(event)
        elif "error" in message:
            raise error_for(message.get("exit_code"), str(message["error"]))
        else:
            return message.get("ok")
    raise SupervisorGone(f"the lab's supervisor broke off without an answer; see: hpn ls, and {path.parent}/lab.log")


def call_for_object(path: Path, op: str, **arguments: JsonValue) -> dict[str, JsonValue]:
    """``call`` where the answer is an object. MachineError when it is none: that supervisor is another version's."""
    found = call(path, op, on_event=None, **arguments)
    if not isinstance(found, dict):
        raise MachineError(f"the lab's supervisor answers {op} as no hpn of this version does; hpn down, then hpn up")
    return found


def _conversation(path: Path, request: Json) -> Iterator[Json]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        try:
            connection.connect(str(path))
        except OSError as error:
            raise SupervisorGone(f"the lab's supervisor does not answer ({error.strerror}); try: hpn down") from error
        with suppress(ConnectionError):  # it died: nothing more comes
            connection.sendall(json.dumps(request).encode() + b"\n")
            yield from _messages(connection, LabFolder(path.parent))


def _messages(connection: socket.socket, place: LabFolder) -> Iterator[Json]:
    """What arrives, line by line, until the other end closes; a line that it did not finish is none."""
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    rest = b""
    while True:
        if not poller.poll(_PATIENCE_MS):
            _check_not_stopped(place)
            continue
        data = connection.recv(1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _check_not_stopped(place: LabFolder) -> None:
    first = place.holder()
    if first is not None and is_stopped(first):
        ways_out = f"let it go on: kill -CONT {first}, or end it: hpn down {place.name}"
        raise MachineError(f"the supervisor of lab {place.name} (process {first}) is stopped; {ways_out}")
