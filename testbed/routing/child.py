"""A daemon's process in a switch's namespace, watched without polling: output by a pipe, death by a pidfd.

It is spawned by vfork, without a shell. Any process left over dies with the lab's PID namespace.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Sequence

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.ns import NetNs

_LONGEST = 4096


class Lines:
    """Collector of complete lines, truncated to 4 KiB. ``last`` is the latest one that is not blank."""

    def __init__(self) -> None:
        self.last = ""
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that ``data`` completes, without their ends."""
        *whole, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LONGEST]
        lines = [line[:_LONGEST].decode(errors="replace") for line in whole]
        self.last = next((line.strip() for line in reversed(lines) if line.strip()), self.last)
        return lines


_AT_ONCE = 1 << 16


class Child:
    """A process that runs from construction, inside a running loop, until ``died`` is called.

    ``heard`` gets each line of output as it comes; ``died`` gets the exit code, or minus the signal, after all output.
    """

    def __init__(
        self, command: Sequence[str], ns: NetNs, heard: Callable[[str], None], died: Callable[[int], None]
    ) -> None:
        """Start the process. MachineError when the program cannot be started."""
        self._heard, self._died = heard, died
        self._lines = Lines()
        output, theirs = os.pipe2(os.O_CLOEXEC)
        self._output = os.fdopen(output, "rb")
        try:
            with ns.entered():
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        except OSError as error:
            self._output.close()
            raise MachineError(f"{command[0]} cannot be started: {error.strerror or error}") from error
        finally:
            os.close(theirs)
        os.set_blocking(output, False)
        self._pidfd = os.pidfd_open(self._process.pid)
        loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._output, self._read)
        loop.add_reader(self._pidfd, self._reap)

    @property
    def last_words(self) -> str:
        """Latest line of its output, 'no word' when there is none."""
        return self._lines.last or "no word"

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; no-op when it is dead."""
        self._process.send_signal(number)

    async def gone(self) -> None:
        """Wait until it has died and ``died`` was called."""
        await asyncio.shield(self._gone)  # a cancelled waiter would cancel the future itself

    def _read(self) -> None:
        try:
            data = os.read(self._output.fileno(), _AT_ONCE)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(self._output)
        for line in self._lines.feed(data):
            self._heard(line)

    def _reap(self) -> None:
        """Handle its death: read its last output, close everything and wake the waiters, even if a step fails."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        code = self._process.wait()
        try:
            self._read()
        finally:
            loop.remove_reader(self._output)
            self._output.close()
            self._tell(code)

    def _tell(self, code: int) -> None:
        try:
            self._died(code)
        finally:
            self._gone.set_result(None)
