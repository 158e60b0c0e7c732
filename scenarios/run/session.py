"""Drill in its sandbox, from outside: start it, relay its progress, return its run folder or raise its error.

The drill itself runs as first process of the sandbox (``scenarios.run.runner``). The sandbox always ends with this
process. Ctrl-C reaches the drill, which heals and ends; it is killed when that takes too long.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from hpn.results.run.claim import Claim
from hpn.results.run.folder import RunFolder, claimed_run, emptied
from hpn.results.run.lifecycle import drop_raw, nearest
from hpn.results.run.progress import Progress, decode, encode
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.run import client_site, disk_space, refusals, runner
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.walltime import dated
from hpn.testbed.errors import HpnError, InputError, MachineError, error_for
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.process.cleanup_process import cleared_up
from hpn.testbed.kernel.process.processes import is_stopped, not_ignored
from hpn.testbed.lab.service import preflight
from hpn.testbed.vm.engines import has_virtual_time, named

_HEAL_S = 10.0
_LOOK_MS = 500
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(order: Order, on_progress: Callable[[Progress], None]) -> RunFolder:
    """Run a drill in its own sandbox, wait, and return the run folder with its verdict.

    MachineError when the machine cannot run it, KeyboardInterrupt after Ctrl-C. The lab is removed in any case.
    """
    planned = PlannedRun(order.phased)
    drill, flows = planned.drill, planned.flows
    alike = has_virtual_time(order.engine)  # what one drill probes and another does not would shift its times
    refusals.check(drill, planned.fabric, raising=order.raise_neighbours, alike=alike)
    if Path("/run") in order.out.resolve().parents:
        raise InputError(f"{order.out} lies under /run, which the sandbox hides; choose another --out")
    end_ns = drill.timeline.end_ns
    if drill.job is None:
        wanted = disk_space.record_bytes(flows, end_ns, drill.workload.tick_ns, order.keep_records)
    else:
        wanted = disk_space.job_record_bytes(flows, end_ns, order.keep_records)
    disk_space.check(nearest(order.out.absolute()), wanted + client_site.disk_bytes(drill))
    if named(order.engine).start is not None:  # the process outside claimed, clears and dates the folder
        return _run(order, planned, emptied(order.out.absolute()), lambda: None, on_progress)
    with (
        claimed_run(order.out.absolute()) as claim,
        _room_for_neighbours(order, planned.fabric, on_progress),
        cleared_up(lambda: clear_up(claim), {claim.descriptor}),
        dated(claim),
    ):
        return _run(order, planned, RunFolder(claim.path), claim.check, on_progress)


def clear_up(claim: Claim) -> None:
    """Remove raw data of a run; no-op if another folder has replaced the claimed one."""
    if claim.lost() is None:
        drop_raw(claim.path)


@contextmanager
def _room_for_neighbours(order: Order, fabric: Fabric, on_progress: Callable[[Progress], None]) -> Iterator[None]:
    """Raise the limit of the machine's neighbour table for the lab, if requested, and restore it afterwards."""
    raised = preflight.raised_for(fabric) if order.raise_neighbours else None
    if raised is None:
        yield
        return
    on_progress(Progress("note", f"neighbour table: limit raised to {raised.limit} until the drill is over"))
    try:
        with cleared_up(raised.release, raised.files):
            yield
    finally:
        raised.close()


def _run(
    order: Order, planned: PlannedRun, folder: RunFolder, check: runner.Check, on_progress: Callable[[Progress], None]
) -> RunFolder:
    reader, writer = os.pipe()

    def body() -> int:
        faulthandler.enable()  # else it would die without a message
        return runner.main(
            order, planned, folder, check, lambda news: _tell(writer, news), lambda error: _fail(writer, error)
        )

    with _InterruptOnce() as guard:
        try:
            box = sandbox.spawn(body)
        finally:
            os.close(writer)
        guard.watch(box)
        frozen = None if has_virtual_time(order.engine) else _Frozen(box)
        try:
            failure = _relay(_lines(reader, frozen), on_progress)
        except BaseException:
            _kill(box, signal.SIGKILL)  # our output is closed, for example
            box.wait()
            raise
        finally:
            os.close(reader)
        code = box.wait()
        if guard.interrupted:
            raise KeyboardInterrupt
    if frozen is not None and frozen.found:
        raise MachineError(f"the drill's supervisor (process {box.first_pid}) was stopped by somebody; run it again")
    if failure is not None:
        raise failure
    if code > 128:
        raise MachineError(f"the drill's supervisor (process {box.first_pid}) was killed by signal {code - 128}")
    if code != 0:
        raise MachineError(f"the drill's supervisor ended with code {code}; its last words are above")
    return folder


class _Frozen:
    """Watchdog that kills a supervisor which was stopped (SIGSTOP), as it cannot report that itself."""

    def __init__(self, box: sandbox.Sandbox) -> None:
        self._box = box
        self._suspect = False
        self.found = False

    def look(self) -> None:
        """Check once after a while without progress; stopped in two consecutive checks means frozen."""
        stopped = is_stopped(self._box.first_pid)
        if stopped and self._suspect:
            self.found = True
            _kill(self._box, signal.SIGKILL)
        self._suspect = stopped


def _lines(reader: int, frozen: _Frozen | None) -> Iterator[bytes]:
    """Yield lines from the supervisor until it closes the pipe."""
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    rest = b""
    while True:
        while not poller.poll(None if frozen is None else _LOOK_MS):
            if frozen is not None:
                frozen.look()
        data = os.read(reader, 1 << 16)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        yield from whole


def _relay(lines: Iterable[bytes], on_progress: Callable[[Progress], None]) -> HpnError | None:
    """Pass progress on until the sandbox closes the pipe; return the error it reported, if any."""
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
    """Handler of Ctrl-C while a drill runs: pass the signal on; kill the drill when it does not end in time."""

    def __init__(self) -> None:
        self._box: sandbox.Sandbox | None = None
        self.interrupted = False

    def watch(self, box: sandbox.Sandbox) -> None:
        """Pass signals on to this sandbox, including one that came before it existed."""
        self._box = box
        if self.interrupted:
            self._pass_on(box)

    def __enter__(self) -> _InterruptOnce:
        self._previous = {number: signal.signal(number, self._on_signal) for number in not_ignored(*_ENDING)}
        self._alarm = signal.signal(signal.SIGALRM, self._on_alarm)
        return self

    def __exit__(self, *_exception: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._alarm)
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupted = True
        if self._box is not None:
            self._pass_on(self._box)

    def _pass_on(self, box: sandbox.Sandbox) -> None:
        _kill(box, signal.SIGINT)
        signal.setitimer(signal.ITIMER_REAL, _HEAL_S)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._box is not None:
            _kill(self._box, signal.SIGKILL)


def _kill(box: sandbox.Sandbox, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has already ended
        os.kill(box.first_pid, number)
