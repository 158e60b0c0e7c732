"""A drill in its sandbox, seen from outside: start it, relay its news, bring back its run folder or its error.

The drill itself runs as first process of the sandbox (``scenarios.runner``). Whatever happens to this process, the
sandbox dies with it; Ctrl-C reaches the drill, which heals and ends, and is killed when that takes too long.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

from failover import needs
from results.folder import RunFolder, create
from results.progress import Progress, decode, encode
from scenarios import runner
from scenarios.order import Order
from testbed.errors import HpnError, InputError, MachineError, error_for
from testbed.fabric.build import build
from testbed.kernel import sandbox
from testbed.lab import preflight

_HEAL_S = 10.0


def run(order: Order, on_progress: Callable[[Progress], None]) -> RunFolder:
    """Run a drill in a sandbox of its own and wait; the run folder with its verdict.

    MachineError when the machine cannot run it, KeyboardInterrupt after Ctrl-C; the lab is gone in any case.
    """
    preflight.check(build(order.drill.topology))
    needs.check(planned.fault for planned in order.drill.timeline.faults)
    folder = create(order.out.absolute())
    if Path("/run") in order.out.absolute().parents:
        raise InputError(f"{order.out} lies under /run, which the sandbox hides; choose another --out")
    reader, writer = os.pipe()

    def body() -> int:
        return runner.main(order, folder, lambda news: _tell(writer, news), lambda error: _fail(writer, error))

    try:
        box = sandbox.spawn(body)
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as lines, _InterruptOnce(box) as guard:
        failure = _relay(lines, on_progress)
        code = box.wait()
        if guard.interrupted:
            raise KeyboardInterrupt
    if failure is not None:
        raise failure
    if code != 0:
        raise MachineError(f"the drill's process ended with code {code}; its last words are above")
    return folder


def _relay(lines: Iterable[bytes], on_progress: Callable[[Progress], None]) -> HpnError | None:
    """Pass news on until the sandbox closes the pipe; the error it reported, if any."""
    failure: HpnError | None = None
    for line in lines:
        message = json.loads(line)
        if "error" in message:
            failure = error_for(message["exit_code"], message["error"])
        else:
            on_progress(decode(line))
    return failure


def _tell(writer: int, news: Progress) -> None:
    os.write(writer, encode(news))


def _fail(writer: int, error: HpnError) -> None:
    os.write(writer, json.dumps({"error": str(error), "exit_code": error.exit_code}).encode() + b"\n")


class _InterruptOnce:
    """Ctrl-C while a drill runs: the terminal tells the drill itself; kill it when it does not end in time."""

    def __init__(self, box: sandbox.Sandbox) -> None:
        self._box = box
        self.interrupted = False

    def __enter__(self) -> _InterruptOnce:
        self._previous = [signal.signal(n, self._on_signal) for n in (signal.SIGINT, signal.SIGTERM)]
        self._alarm = signal.signal(signal.SIGALRM, self._on_alarm)
        return self

    def __exit__(self, *_exception: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._alarm)
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), self._previous, strict=True):
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupted = True
        os.kill(self._box.first_pid, signal.SIGINT)
        signal.setitimer(signal.ITIMER_REAL, _HEAL_S)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        os.kill(self._box.first_pid, signal.SIGKILL)
