"""What every worker process begins and ends with: its first message, and what goes wrong told to the engine."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from testbed.errors import MachineError
from testbed.kernel.sandbox import die_with_parent
from traffic.messages import Assignment, Decoder, Failed, encode

A = TypeVar("A", bound=Assignment)


class Runs(Protocol):
    """A worker."""

    def run(self) -> None:
        """Serve the engine until it says Finish or goes away."""


def serve(arguments: Sequence[str], kind: type[A], make: Callable[[A, socket.socket], Runs]) -> int:
    """Serve the engine behind the descriptor in ``arguments``, whose first message is of ``kind``; the exit code.

    It dies with its parent.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which ends us in order
    control = socket.socket(fileno=int(arguments[0]))
    setup = _first(control, kind)
    if setup is None:
        return 0
    try:
        try:
            worker = make(setup, control)
        except OSError as error:
            raise MachineError(error.strerror or str(error)) from error
        worker.run()
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the engine is gone
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        full = f"worker {setup.index} cannot write its records ({error.strerror}); free some space where they lie"
        control.sendall(encode(Failed(full)))
        return MachineError.exit_code
    except MachineError as error:
        control.sendall(encode(Failed(str(error))))
        return MachineError.exit_code
    return 0


def _first(control: socket.socket, kind: type[A]) -> A | None:
    """The first message; None when the engine went away."""
    decoder = Decoder()
    while True:
        data = control.recv(1 << 16)
        if not data:
            return None
        for message in decoder.feed(data):
            if not isinstance(message, kind):
                raise TypeError(f"the first message must be {kind.__name__}, not {message!r}")
            return message
