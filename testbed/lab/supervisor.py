"""The supervisor: first process of a lab's sandbox. Starts the lab, answers on the control socket, ends on request."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from testbed.errors import HpnError, InputError, MachineError
from testbed.events import Event, EventKind
from testbed.fabric.model import Fabric
from testbed.kernel import sandbox
from testbed.kernel.processes import reap_strangers
from testbed.lab import byhand, control, inspect, preflight
from testbed.lab.control import Emit, Json, JsonValue
from testbed.lab.lab import Lab
from testbed.lab.registry import LabFolder, LabRecord, folder
from testbed.routing.trace import Flow

_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Request:
    """What to bring up: under which name, from which topology (its name is for display)."""

    name: str
    topology: str
    fabric: Fabric


def launch(request: Request, on_event: Callable[[Json], None]) -> LabRecord:
    """Start a detached lab and wait until it is converged; its record.

    InputError when the name is taken, MachineError when the machine cannot carry it or it does not converge; then
    nothing of it is left.
    """
    preflight.check(request.fabric)
    place = folder(request.name)
    lock = place.claim()
    listening = control.listen(place.socket)
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def body() -> int:
        sandbox.let_go_of_terminal(log)
        return asyncio.run(_Supervisor(request, listening).run())

    try:
        box = sandbox.spawn(body, detach=True)
    finally:
        listening.close()
        os.close(log)
    record = LabRecord(
        name=request.name,
        first_pid=box.first_pid,
        topology=request.topology,
        nodes=len(request.fabric.nodes),
        links=len(request.fabric.links),
        datapath="",
        started_at=time.time(),
    )
    place.write(record)
    (place.path / "fabric.json").write_text(request.fabric.spec.model_dump_json())
    os.close(lock)  # the sandbox holds it now
    try:
        datapath = control.call(place.socket, "wait", on_event=on_event)
    except (HpnError, KeyboardInterrupt):
        stop(place, record)
        raise
    record = replace(record, state="up", datapath=str(datapath))
    place.write(record)
    return record


def stop(place: LabFolder, record: LabRecord, timeout_s: float = 20.0) -> None:
    """End a lab and verify that its process and lock are gone; idempotent. MachineError when it will not die."""
    try:
        watch = os.pidfd_open(record.first_pid)
    except ProcessLookupError:
        place.remove()
        return
    try:
        # The lock tells whether that process ID still is our lab: it may have been reused.
        if place.is_held():
            signal.pidfd_send_signal(watch, signal.SIGTERM)
            if not _ended(watch, _GRACE_S):
                signal.pidfd_send_signal(watch, signal.SIGKILL)
            if not _ended(watch, timeout_s) or not place.released(timeout_s):
                raise MachineError(f"lab {record.name}: process {record.first_pid} does not end")
    finally:
        os.close(watch)
    place.remove()


def _ended(pidfd: int, timeout_s: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


class _Supervisor:
    """State of one running lab's supervisor."""

    def __init__(self, request: Request, listening: socket.socket) -> None:
        self._request = request
        self._listening = listening
        self._ready: asyncio.Future[None] | None = None
        self._lab: Lab | None = None
        self._end = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._end.set)
        self._ready = loop.create_future()
        lab = self._lab = Lab(self._request.fabric, lambda _event: None)
        loop.add_signal_handler(signal.SIGCHLD, lambda: reap_strangers(lab.child_pids()))
        server = control.ControlServer(
            {"wait": self._wait, "inspect": self._inspect, "trace": self._trace, "events": self._events,
             "break": self._break, "mend": self._mend}
        )  # fmt: skip
        await server.start(self._listening)
        starting = asyncio.create_task(self._start())
        await self._end.wait()
        starting.cancel()
        server.close()
        lab.close()
        return 0

    async def _start(self) -> None:
        assert self._ready is not None
        assert self._lab is not None
        try:
            self._lab.start()
            await self._lab.converged()
        except HpnError as error:
            self._ready.set_exception(error)
        else:
            gc.freeze()
            self._ready.set_result(None)

    async def _wait(self, _request: Json, emit: Emit) -> JsonValue:
        assert self._lab is not None
        assert self._ready is not None
        stop_listening = self._lab.subscribe(lambda event: emit(_as_json(event)) if event.kind in _TOLD else None)
        try:
            await asyncio.shield(self._ready)
        finally:
            stop_listening()
        return self._lab.datapath

    async def _standing(self) -> Lab:
        assert self._lab is not None
        assert self._ready is not None
        await asyncio.shield(self._ready)
        return self._lab

    async def _inspect(self, request: Json, _emit: Emit) -> JsonValue:
        return inspect.report(await self._standing(), str(request.get("what", "")))

    async def _trace(self, request: Json, _emit: Emit) -> JsonValue:
        lab = await self._standing()
        sport, dport = request.get("sport"), request.get("dport", 4791)
        if not (isinstance(sport, int) and isinstance(dport, int) and 0 < sport < 1 << 16 and 0 < dport < 1 << 16):
            raise InputError("a trace needs sport and dport, whole numbers from 1 to 65535")
        return inspect.path_report(lab.path(Flow(str(request.get("src")), str(request.get("dst")), sport, dport)))

    async def _events(self, _request: Json, emit: Emit) -> JsonValue:
        """Stream the timeline until the client goes away."""
        lab = await self._standing()
        lab.subscribe(lambda event: emit(_as_json(event)))
        await self._end.wait()
        return None

    async def _break(self, request: Json, _emit: Emit) -> JsonValue:
        byhand.break_part(await self._standing(), str(request.get("target")))
        return None

    async def _mend(self, request: Json, _emit: Emit) -> JsonValue:
        await byhand.mend_part(await self._standing(), str(request.get("target")))
        return None


_TOLD = {EventKind.BGP, EventKind.LAG}


def _as_json(event: Event) -> dict[str, JsonValue]:
    return {
        "at_ns": event.at_ns,
        "kind": event.kind.value,
        "node": event.node,
        "subject": event.subject,
        "what": event.what,
        "detail": dict(event.detail),
    }
