"""The user's terminal joined to a guest's terminal: raw at this end, a socket in between, and escape keys.

Changes when more than bytes must pass between the two. Nothing here depends on an engine.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from hpn.testbed.vm.guest import Terminal

ESCAPE = b"\x1d"  # Ctrl-]
ESCAPES = 3
ESCAPE_S = 1.0
_INTERRUPT = b"\x03"  # Ctrl-C
_CHUNK = 1 << 14
_LAST_BYTES_S = 5.0
"""Time that a terminal which is not read may delay the guest's last output."""


class EscapeKeys:
    """Detector of Ctrl-] pressed three times within a second, which leaves an unresponsive guest."""

    def __init__(self) -> None:
        self._pressed: list[float] = []

    def complete(self, data: bytes, now_s: float) -> bool:
        """Return True if ``data``, typed at ``now_s``, completes it."""
        for key in data:
            self._pressed = [at for at in self._pressed if now_s - at <= ESCAPE_S]
            self._pressed = [*self._pressed, now_s] if key == ESCAPE[0] else []
            if len(self._pressed) == ESCAPES:
                return True
        return False


class Bridge:
    """Relay of bytes between the terminal on ``keys`` and ``screen`` and a guest's, in a thread of its own.

    Ctrl-C goes to the guest once the guest has shown anything. Before that, and on the escape keys or a lost terminal,
    it interrupts the main thread (KeyboardInterrupt). Use ``joined``.
    """

    def __init__(self, keys: int, screen: int) -> None:
        self._keys, self._screen = keys, screen
        self._ours, self._guests = socket.socketpair()
        self._ours.setblocking(False)
        self._stop, self._stopper = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._carry, name="terminal", daemon=True)
        self._escape = EscapeKeys()
        self._typed = bytearray()
        self._guest_speaks = False
        self._interrupted = False

    def terminal(self) -> Terminal:
        """Return the guest's end, as large as the user's terminal is now."""
        with suppress(OSError):
            size = os.get_terminal_size(self._screen)
            if size.lines and size.columns:
                return Terminal(self._guests.fileno(), size.lines, size.columns)
        return Terminal(self._guests.fileno(), 24, 80)

    def start(self) -> None:
        """Start the relay."""
        self._thread.start()

    def close(self) -> None:
        """Show the guest's last output, if the terminal is read, and release everything."""
        os.write(self._stopper, b".")
        self._thread.join(_LAST_BYTES_S)
        if not self._thread.is_alive():  # else it hangs in a write and ends with this process
            for end in (self._ours, self._guests):
                end.close()
            os.close(self._stop)
        os.close(self._stopper)

    def interrupted(self) -> bool:
        """Note that the main thread is being interrupted; return True if it was before."""
        before, self._interrupted = self._interrupted, True
        return before

    def _carry(self) -> None:
        sources: list[int] = [self._keys, self._ours.fileno(), self._stop]
        while True:
            sinks = [self._ours.fileno()] if self._typed else []
            ready, room, _ = select.select(sources, sinks, [])
            if self._ours.fileno() in ready:
                self._show()
            elif self._stop in ready:
                return
            if room:
                self._pass_on()
            if self._keys in ready and not self._type():
                sources.remove(self._keys)

    def _show(self) -> None:
        with suppress(BlockingIOError):
            data = self._ours.recv(_CHUNK)
            self._guest_speaks = True
            with suppress(OSError):  # the terminal is gone, which the keys will show
                while data:
                    data = data[os.write(self._screen, data) :]

    def _pass_on(self) -> None:
        with suppress(BlockingIOError):
            del self._typed[: self._ours.send(self._typed)]

    def _type(self) -> bool:
        """Read typed bytes; return True if there may be more."""
        try:
            data = os.read(self._keys, _CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        early = _INTERRUPT in data and not self._guest_speaks
        if not data or early or self._escape.complete(data, time.monotonic()):
            self._interrupt()
        self._typed += data
        return bool(data)

    def _interrupt(self) -> None:
        main = threading.main_thread().ident
        if main is not None and not self.interrupted():
            signal.pthread_kill(main, signal.SIGINT)


@contextmanager
def joined(keys: int, screen: int) -> Iterator[Bridge]:
    """Join the user's terminal to a guest's in the body: raw there, restored afterwards. Main thread only."""
    before = termios.tcgetattr(keys)
    bridge = Bridge(keys, screen)

    def hung_up(_number: int, _frame: FrameType | None) -> None:
        if not bridge.interrupted():
            raise KeyboardInterrupt

    hang_up = signal.signal(signal.SIGHUP, hung_up)
    try:
        tty.setraw(keys, termios.TCSANOW)
        bridge.start()
        try:
            yield bridge
        finally:
            bridge.close()
    finally:
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(keys, termios.TCSANOW, before)
        signal.signal(signal.SIGHUP, hang_up)
