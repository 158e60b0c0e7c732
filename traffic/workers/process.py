"""One worker process as the supervisor sees it: start, messages, end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process.sandbox import ONE_THREAD
from hpn.testbed.package import ROOT
from hpn.traffic.workers.messages import Decoder, Message, encode

_TAIL = 2000


class WorkerProcess:
    """A child process that runs ``module``. ``heard`` receives its messages, ``died`` the reason when it has ended."""

    def __init__(
        self,
        module: str,
        index: int,
        out: Path,
        namespace_fds: Collection[int],
        heard: Callable[[int, Message], None],
        died: Callable[[int, str], None],
    ) -> None:
        self._index = index
        self._heard = heard
        self._died = died
        self._decoder = Decoder()
        self._log = out / f"worker-{index}.log"
        self._loop = asyncio.get_running_loop()
        self._control, theirs = socket.socketpair()
        with theirs, self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno())],
                pass_fds=(theirs.fileno(), *namespace_fds),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
            )
        self._control.setblocking(False)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._control.fileno(), self._readable)
        self._loop.add_reader(self._pidfd, self._exited)

    @property
    def pid(self) -> int | None:
        """Process ID while the process runs, else None."""
        return None if self._gone.done() else self._process.pid

    async def send_all(self, setup: Message) -> None:
        """Send the set-up, which may be large. The exit of a worker is handled elsewhere."""
        try:
            await self._loop.sock_sendall(self._control, encode(setup))
        except (BrokenPipeError, ConnectionResetError):
            return

    def send(self, message: Message) -> None:
        """Send a small message at once. MachineError when the worker has stopped reading."""
        data = encode(message)
        try:
            taken = self._control.send(data)
        except BlockingIOError:
            taken = 0
        except OSError:
            return  # the process is gone, which is handled elsewhere
        if taken != len(data):
            raise MachineError(f"traffic worker {self._index} does not read its commands; is the machine overloaded?")

    def signal(self, number: signal.Signals) -> None:
        """Pause or resume the process (SIGSTOP, SIGCONT), as a busy machine would; no-op after its exit."""
        if not self._gone.done():
            self._process.send_signal(number)

    async def ended(self, timeout_s: float) -> None:
        """Wait until the process has ended; kill it after ``timeout_s``."""
        await asyncio.wait({self._gone}, timeout=timeout_s)
        await self.kill()

    async def kill(self) -> None:
        """Kill the process if it still runs, and wait for its exit."""
        if not self._gone.done():
            self._process.kill()
            await asyncio.shield(self._gone)  # a cancelled waiter would cancel the future itself

    def _readable(self) -> None:
        try:
            data = self._control.recv(1 << 18)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._loop.remove_reader(self._control.fileno())
            return
        for message in self._decoder.feed(data):
            self._heard(self._index, message)

    def _exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        code = self._process.wait()
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        try:
            self._hear_last_messages()
        finally:  # whatever failed, nobody waits for ever
            self._gone.set_result(None)
            self._died(self._index, f"traffic worker {self._index} ended ({how}): {self._last_words()}")

    def _hear_last_messages(self) -> None:
        """Handle the messages that are still in the socket, and close it."""
        self._loop.remove_reader(self._control.fileno())
        with self._control as control:
            control.setblocking(True)
            while data := _receive(control):
                for message in self._decoder.feed(data):
                    self._heard(self._index, message)

    def _last_words(self) -> str:
        """Return the last line of its log; an empty log is deleted."""
        try:
            said = self._log.read_text(errors="replace").strip()[-_TAIL:]
            if not said:
                self._log.unlink(missing_ok=True)
        except OSError as error:
            return f"its log is lost ({self._log}: {error.strerror})"
        last = said.splitlines()[-1] if said else "it said nothing"
        return f"{last} (stderr: {self._log})"


def _receive(control: socket.socket) -> bytes:
    try:
        return control.recv(1 << 18)
    except ConnectionResetError:
        return b""


def _environment() -> dict[str, str]:
    """Return an environment with one thread per worker (numpy would start more) and this very source tree."""
    found = dict.fromkeys((str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))))
    path = os.pathsep.join(found)  # each folder once: duplicate look-ups cost a guest in virtual time its time
    return {**os.environ, "PYTHONPATH": path, **ONE_THREAD}
