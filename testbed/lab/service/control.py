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
from contextlib import contextmanager, suppress
from pathlib import Path

from hpn.testbed.errors import HpnError, MachineError, error_for
from hpn.testbed.kernel.process.processes import is_stopped
from hpn.testbed.lab.service.labfolder import LabFolder

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
Json = Mapping[str, JsonValue]
Emit = Callable[[Json], None]
Handler = Callable[[Json, Emit], Awaitable[JsonValue]]

_LIMIT = 1 << 26
_LAST_WORDS_S = 1.0
_PATIENCE_S = 1.0  # after this silence the client checks whether the supervisor is stopped


class SupervisorGone(MachineError):
    """The supervisor ended before or during a request."""


def listen(path: Path) -> socket.socket:
    """Bind the control socket (before the sandbox hides its directory).

    MachineError when the path is too long, OSError when its directory is not writable.
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
    """Server of operations by name on a listening socket until closed.

    ``handlers`` run to completion even if the client has gone; ``streams`` are cancelled when their client disconnects.
    """

    def __init__(self, handlers: Mapping[str, Handler], streams: Mapping[str, Handler] | None = None) -> None:
        self._handlers = handlers
        self._streams = {} if streams is None else streams
        self._server: asyncio.Server | None = None
        self._streaming: set[asyncio.Task[None]] = set()

    async def start(self, listening: socket.socket) -> None:
        """Start to accept connections."""
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LIMIT)

    def close(self) -> None:
        """Stop accepting."""
        if self._server is not None:
            self._server.close()

    async def last_words(self) -> None:
        """Wait until every ending stream has sent its last message, but only briefly for an unresponsive client."""
        if self._streaming:
            await asyncio.wait(self._streaming, timeout=_LAST_WORDS_S)

    async def serve_own(self, connection: socket.socket) -> None:
        """Answer another process of ours at the far end, one request after another until it closes."""
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_LIMIT)
        try:
            while line := await reader.readline():
                _write(writer, await self._answer(line, lambda event: _write(writer, {"event": dict(event)})))
                await writer.drain()
        except ConnectionError:
            pass  # the peer has closed
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if _peer_uid(writer.get_extra_info("socket")) != os.geteuid():
                return
            line = await reader.readline()
            answer = await self._answer(line, lambda event: _write(writer, {"event": dict(event)}), reader)
            _write(writer, answer)
            await writer.drain()
        except (ConnectionError, asyncio.LimitOverrunError, ValueError):
            pass  # the client disconnected, or was never an hpn client
        finally:
            writer.close()

    async def _answer(self, line: bytes, emit: Emit, asker: asyncio.StreamReader | None = None) -> Json:
        try:
            request = json.loads(line)
            handler = self._handler(request["op"], asker)
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"error": "the supervisor does not know this request; is it of another hpn version?", "exit_code": 2}
        try:
            return {"ok": await handler(request, emit)}
        except HpnError as error:
            return {"error": str(error), "exit_code": error.exit_code}
        except OSError as error:  # for example an interface that a user deleted in the lab
            way_out = "if the lab was changed by hand, start it anew: hpn down, hpn up"
            return {"error": f"the kernel refuses: {error}; {way_out}", "exit_code": MachineError.exit_code}

    def _handler(self, op: str, asker: asyncio.StreamReader | None) -> Handler:
        """Return the handler of ``op``. KeyError if there is none, TypeError if ``op`` is not hashable."""
        if asker is not None and op in self._streams:
            return self._while_there(asker, self._streams[op])
        return self._handlers[op]

    def _while_there(self, asker: asyncio.StreamReader, stream: Handler) -> Handler:
        """Wrap a stream so that it ends when its client disconnects."""

        async def handler(request: Json, emit: Emit) -> JsonValue:
            self._note_stream()
            answering = asyncio.ensure_future(stream(request, emit))
            leaving = asyncio.ensure_future(asker.read(1))
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if answering.done():
                return answering.result()
            answering.cancel()
            await asyncio.wait({answering})
            return None

        return handler

    def _note_stream(self) -> None:
        """Register the running task as a stream that ``last_words`` waits for."""
        task = asyncio.current_task()
        if task is not None:
            self._streaming.add(task)
            task.add_done_callback(self._streaming.discard)


def _write(writer: asyncio.StreamWriter, message: Json) -> None:
    if not writer.is_closing():
        writer.write(json.dumps(message).encode() + b"\n")


def _peer_uid(connection: socket.socket) -> int:
    return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1])


def call(path: Path, op: str, *, on_event: Emit | None = None, **arguments: JsonValue) -> JsonValue:
    """Send a request to the supervisor and wait for its result. Its errors are raised here with their own types.

    SupervisorGone when it ends without a result, MachineError when it is stopped.
    """
    for message in _conversation(path, {"op": op, **arguments}):
        if "event" in message:
            event = message["event"]
            if on_event is not None and isinstance(event, dict):
                on_event(event)
        else:
            return _last_word(message)
    raise _gone(path)


def _last_word(message: Json) -> JsonValue:
    if "error" in message:
        raise error_for(message.get("exit_code"), str(message["error"]))
    return message.get("ok")


def _gone(path: Path) -> SupervisorGone:
    return SupervisorGone(f"the lab's supervisor broke off without an answer; see: hpn ls, and {path.parent}/lab.log")


def call_for_object(path: Path, op: str, **arguments: JsonValue) -> dict[str, JsonValue]:
    """Call an operation whose result is an object. MachineError for another type: another version's supervisor."""
    found = call(path, op, on_event=None, **arguments)
    if not isinstance(found, dict):
        raise MachineError(f"the lab's supervisor answers {op} as no hpn of this version does; hpn down, then hpn up")
    return found


def follow(path: Path, op: str, wait_s: Callable[[], float]) -> Iterator[list[Json]]:
    """Subscribe to events until the lab ends; yield batches as they come, [] after ``wait_s()`` seconds without any.

    It ends with the lab. SupervisorGone as soon as the supervisor is gone otherwise, MachineError when it is
    stopped; the supervisor's own errors are raised with their own types.
    """
    with _asked(path, {"op": op}) as connection:
        received = _Lines(connection)
        while True:
            if not received.wait(wait_s()):
                _check_not_stopped(LabFolder(path.parent))
                yield []
                continue
            messages = received.read()
            yield [event for message in messages if isinstance(event := message.get("event"), dict)]
            for message in messages:
                if "event" not in message:
                    _last_word(message)
                    return
            if received.ended:
                raise _gone(path)


class Stream:
    """Events of an operation, for an event loop: ``read`` when ``fileno`` is readable. ``over``: the lab has ended."""

    def __init__(self, path: Path, connection: socket.socket) -> None:
        self._path, self._connection, self._lines = path, connection, _Lines(connection)
        self.over = False

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return self._connection.fileno()

    def read(self) -> list[Json]:
        """Return the next events; wait for one. The supervisor's errors are raised, SupervisorGone when it is gone."""
        messages = self._lines.read()
        for message in messages:
            if "event" not in message:
                _last_word(message)
                self.over = True
        if self._lines.ended and not self.over:
            raise _gone(self._path)
        return [event for message in messages if isinstance(event := message.get("event"), dict)]


@contextmanager
def stream(path: Path, op: str, **arguments: JsonValue) -> Iterator[Stream]:
    """Ask for events; the operation ends with the context."""
    with _asked(path, {"op": op, **arguments}) as connection:
        yield Stream(path, connection)


def _conversation(path: Path, request: Json) -> Iterator[Json]:
    """Yield the answer, message by message, until the far end closes."""
    with _asked(path, request) as connection:
        received = _Lines(connection)
        while not received.ended:
            if received.wait(_PATIENCE_S):
                yield from received.read()
            else:
                _check_not_stopped(LabFolder(path.parent))


@contextmanager
def _asked(path: Path, request: Json) -> Iterator[socket.socket]:
    """Connect to the supervisor and send a request; yield the connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        try:
            connection.connect(str(path))
        except OSError as error:
            raise SupervisorGone(f"the lab's supervisor does not answer ({error.strerror}); try: hpn down") from error
        with suppress(ConnectionError):  # it died: the reader will see the end of the connection
            connection.sendall(json.dumps(request).encode() + b"\n")
        yield connection


class _Lines:
    """Reader of complete lines from a connection; an unfinished last line is ignored."""

    def __init__(self, connection: socket.socket) -> None:
        self.ended = False
        self._connection = connection
        self._rest = b""
        self._poller = select.poll()
        self._poller.register(connection, select.POLLIN)

    def wait(self, for_s: float) -> bool:
        """Return True if data, or the end, arrives within ``for_s``."""
        return bool(self._poller.poll(max(0.0, for_s) * 1000))

    def read(self) -> list[Json]:
        """Return the messages that have arrived."""
        try:
            data = self._connection.recv(1 << 16)
        except ConnectionError:
            data = b""
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


def _check_not_stopped(place: LabFolder) -> None:
    first = place.holder()
    if first is not None and is_stopped(first):
        ways_out = f"let it go on: kill -CONT {first}, or end it: hpn down {place.name}"
        raise MachineError(f"the supervisor of lab {place.name} (process {first}) is stopped; {ways_out}")
