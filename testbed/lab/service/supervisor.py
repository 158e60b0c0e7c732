"""Start and end of independent labs: the supervisor is the first process of its lab's sandbox."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.neighbour_table import Raised
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.process.processes import interrupted_by_any_signal
from hpn.testbed.lab.service import bounded_log, control, preflight
from hpn.testbed.lab.service.control import Json, SupervisorGone
from hpn.testbed.lab.service.labfolder import UP, LabFolder, LabRecord, hold_as_first, unusable
from hpn.testbed.lab.service.metrics import exporter
from hpn.testbed.lab.service.metrics.exporter import Exporter
from hpn.testbed.lab.service.registry import free_folder
from hpn.testbed.lab.service.serving import Supervisor

_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Request:
    """Parameters of a new lab: its name and its topology (whose name is for display).

    ``metrics``: the socket on which to serve them, None without. ``raise_neighbours``: raise the machine's neighbour
    limit during the lab if it is too low for it.
    """

    name: str
    topology: str
    fabric: Fabric
    metrics: socket.socket | None = None
    raise_neighbours: bool = False


def launch(request: Request, on_event: Callable[[Json], None], on_up: Callable[[], None] = lambda: None) -> LabRecord:
    """Start a detached lab and return its record once it has converged; ``on_up`` is called just before detaching.

    InputError when the name is taken. MachineError when the machine cannot carry it, when it does not converge, or when
    its state cannot be written; then nothing of it remains. Neither does it if this process is killed before the end:
    until then the lab holds the other end of a pipe.
    """
    preflight.check(request.fabric, raising=request.raise_neighbours)
    place = free_folder(request.name)
    with interrupted_by_any_signal():
        lock = place.claim()
        start = _Start(request, place, lock)
        try:
            return start.bring_up(on_event, on_up)
        except OSError as error:
            raise unusable(place.path, error) from error
        finally:
            start.finish()


class _Start:
    """Start of one lab, from the claim of its name until it is up, or removed again."""

    def __init__(self, request: Request, place: LabFolder, lock: int) -> None:
        self._request = request
        self._place = place
        self._lock = lock
        self._box: sandbox.Sandbox | None = None
        self._raised: Raised | None = None
        self._tethered, self._tether = os.pipe2(os.O_CLOEXEC)
        self._up = False

    def bring_up(self, on_event: Callable[[Json], None], on_up: Callable[[], None]) -> LabRecord:
        """Spawn the lab and wait for it. OSError when its folder cannot be written."""
        place, fabric = self._place, self._request.fabric
        if self._request.raise_neighbours:
            self._raised = preflight.raised_for(fabric)
        (place.path / "fabric.json").write_text(fabric.spec.model_dump_json())
        record = LabRecord(
            name=self._request.name,
            first_pid=0,
            topology=self._request.topology,
            nodes=len(fabric.nodes),
            links=len(fabric.links),
            datapath="",
            started_at=time.time(),
            neighbours=preflight.neighbour_entries(fabric),
            metrics="" if self._request.metrics is None else exporter.url(self._request.metrics),
            neighbour_limit=0 if self._raised is None else self._raised.limit,
        )
        place.write(record, self._lock)
        self._box = self._spawn()
        record = replace(record, first_pid=self._box.first_pid)
        place.write(record, self._lock)
        try:
            datapath = control.call(place.socket, "wait", on_event=on_event)
        except SupervisorGone as error:
            words = place.last_words() or "it said nothing"
            raise MachineError(f"the supervisor of lab {place.name} died while it started: {words}") from error
        record = replace(record, state=UP, datapath=str(datapath))
        place.write(record, self._lock)
        on_up()
        os.write(self._tether, b"up")
        self._up = True
        return record

    def _spawn(self) -> sandbox.Sandbox:
        listening = control.listen(self._place.socket)
        log = bounded_log.create(self._place.log)

        def body() -> int:
            hold_as_first(self._lock)
            sandbox.let_go_of_terminal(log)
            bounded_log.write_to(log)
            faulthandler.enable(2)
            exporting = exporter.start(self._request.name, self._request.fabric, self._request.metrics)
            asyncio.run(_supervise(self._request.fabric, listening, self._tethered, exporting))
            os.ftruncate(log, 0)  # an orderly end leaves no error message
            return 0

        keep = [self._lock, log, listening.fileno(), self._tethered]
        keep += [] if self._request.metrics is None else [self._request.metrics.fileno()]
        raised = self._raised
        keep += [] if raised is None else raised.files
        try:
            if raised is None:
                return sandbox.spawn(body, detach=True, keep=keep)
            box = sandbox.spawn(body, detach=True, keep=keep, afterwards=raised.release)
            raised.belongs_to(box.warden_pid)
            return box
        finally:
            listening.close()
            os.close(log)

    def finish(self) -> None:
        """Detach from the lab; end it if it is not up."""
        os.close(self._tethered)
        os.close(self._tether)
        if not self._up:
            if self._box is not None:
                _end_and_wait(self._box)
            if self._raised is not None:
                self._raised.release()
            self._place.remove(self._lock)
        if self._raised is not None:
            self._raised.close()
        os.close(self._lock)  # the sandbox holds it, if it lives


def _end_and_wait(box: sandbox.Sandbox) -> None:
    """End a sandbox of our own and wait until it is gone: the supervisor sees its pipe close, or is killed."""
    watch = os.pidfd_open(box.warden_pid)
    if not _ended(watch, _GRACE_S):
        with suppress(ProcessLookupError):
            os.kill(box.first_pid, signal.SIGKILL)
    os.close(watch)
    box.wait()


def stop(place: LabFolder, timeout_s: float = 20.0) -> None:
    """End a lab and verify that its process and lock are gone; idempotent. MachineError when it does not end."""
    holder = place.holder()
    if holder is not None:
        with suppress(ProcessLookupError):
            watch = os.pidfd_open(holder)
            try:
                _end(place, holder, watch, timeout_s)
            finally:
                os.close(watch)
    if not place.remove_when_released(timeout_s):
        raise MachineError(f"lab {place.name}: process {place.holder() or holder} does not end")


def _end(place: LabFolder, holder: int, watch: int, timeout_s: float) -> None:
    for number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, timeout_s)):
        if place.holder() != holder:  # it ended by itself, and its process ID may have been reused
            return
        signal.pidfd_send_signal(watch, number)
        if _ended(watch, patience_s):
            return


def _ended(pidfd: int, timeout_s: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


async def _supervise(fabric: Fabric, listening: socket.socket, tethered: int, exporting: Exporter | None) -> None:
    await Supervisor(fabric, listening, tethered).run(exporting)
