"""Common part of every worker process: its connection to the engine, and error reports.

Changes when the messages to workers, or the end of workers, change.
"""

from __future__ import annotations

import errno
import gc
import select
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from hpn.testbed.errors import MachineError
from hpn.testbed.events import now_ns
from hpn.testbed.kernel.process.sandbox import die_with_parent
from hpn.testbed.kernel.timerfd import Ticker
from hpn.traffic.workers.messages import Assignment, Decoder, Failed, Finish, Message, encode

A = TypeVar("A", bound=Assignment)


class Engine:
    """The engine as a worker sees it: messages both ways over ``control``."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._decoder = Decoder()

    def fileno(self) -> int:
        """Return a descriptor that is readable when the engine has sent something, or is gone."""
        return self._control.fileno()

    def say(self, message: Message) -> None:
        """Send a message to the engine. BrokenPipeError when it is gone."""
        self._control.sendall(encode(message))

    def first(self, kind: type[A]) -> A | None:
        """Return the engine's first message, which is of ``kind``; None when it disconnected."""
        while (heard := self._hear()) is not None:
            for message in heard:
                if not isinstance(message, kind):
                    raise TypeError(f"the first message must be {kind.__name__}, not {message!r}")
                return message
        return None

    def serve(self, obey: Callable[[Message], None], finish: Callable[[Finish], None]) -> bool:
        """Execute the received messages; return False after Finish, or when the engine is gone."""
        heard = self._hear()
        if heard is None:
            return False
        for message in heard:
            if isinstance(message, Finish):
                finish(message)
                return False
            obey(message)
        return True

    def _hear(self) -> Iterator[Message] | None:
        data = self._control.recv(1 << 16)
        return self._decoder.feed(data) if data else None


class Runs(Protocol):
    """A worker."""

    def run(self) -> None:
        """Serve the engine until it sends Finish or disconnects."""


def serve(arguments: Sequence[str], kind: type[A], make: Callable[[A, Engine], Runs]) -> int:
    """Serve the engine behind the descriptor in ``arguments``, whose first message is of ``kind``; return the exit
    code.

    The process dies with its parent.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which ends us in order
    engine = Engine(socket.socket(fileno=int(arguments[0])))
    setup = engine.first(kind)
    if setup is None:
        return 0
    try:
        try:
            worker = make(setup, engine)
        except OSError as error:
            raise MachineError(error.strerror or str(error)) from error
        worker.run()
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the engine is gone
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        full = f"worker {setup.index} cannot write its records ({error.strerror}); free some space where they lie"
        engine.say(Failed(full))
        return MachineError.exit_code
    except MachineError as error:
        engine.say(Failed(str(error)))
        return MachineError.exit_code
    return 0


def collect_no_more() -> None:
    """Collect garbage for the last time: workers create hardly any cycles, and a collection is a gap in what is sent.

    Objects that are alive now are never scanned again.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def drain(ticker: Ticker, tick_ns: int, finish: Finish, take: Callable[[int], int | None]) -> None:
    """Call ``take`` each tick after the last packet was sent, until ``finish.quiet_ns`` pass without an arrival.

    ``take`` gets the number of ticks passed, and returns the time of an arrival, or None.
    """
    begun = arrived = now_ns()
    ticker.start(begun, tick_ns)
    poller = select.poll()  # select() is limited to 1,024 descriptors
    poller.register(ticker.fileno(), select.POLLIN)
    while (at := now_ns()) - arrived < finish.quiet_ns and at - begun < finish.limit_ns:
        poller.poll()
        came_ns = take(ticker.take())
        arrived = arrived if came_ns is None else came_ns
