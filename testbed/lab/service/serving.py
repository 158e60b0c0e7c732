"""A lab's supervisor as the first process of the sandbox: it starts the lab, answers requests, and ends it.

Changes when the control socket gets another operation.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict
from types import FrameType
from typing import NoReturn

from hpn.testbed.errors import HpnError, InputError, MachineError
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.buffers import balances
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.packets.packet import close_all
from hpn.testbed.kernel.process.processes import reap_strangers
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service import control, inspect, locating, manual_faults, status
from hpn.testbed.lab.service.control import Emit, Json, JsonValue
from hpn.testbed.lab.service.metrics.exporter import Exporter
from hpn.testbed.lab.service.srv6_report import paths_report
from hpn.testbed.lab.timeline import Timeline
from hpn.testbed.routing.trace import Flow

PATIENCE_S = 1.0


def obey(end: asyncio.Event) -> None:
    """Make SIGTERM, SIGINT and SIGHUP set ``end`` of the running loop, and end the process ``PATIENCE_S`` later."""
    loop = asyncio.get_running_loop()

    def asked(_number: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
        if not loop.is_closed():
            loop.call_soon_threadsafe(end.set)

    signal.signal(signal.SIGALRM, _end_at_once)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, asked)


def _end_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    close_all()
    with suppress(OSError):  # if it is not a file
        os.ftruncate(2, 0)  # the log: the end was requested, so no output explains a failure
    os._exit(0)


class Supervisor:
    """State of one running lab's supervisor; created on the loop that it runs on.

    ``tethered`` is a pipe whose other end the starting command holds.
    """

    def __init__(self, fabric: Fabric, listening: socket.socket, tethered: int) -> None:
        self._fabric = fabric
        self._listening = listening
        self._tethered = tethered
        self._timeline = Timeline(lambda _event: None)  # clients that wait receive events from the first on
        self._standing: asyncio.Future[Lab] = asyncio.get_running_loop().create_future()
        self._counts = status.EventCounts(fabric)
        self._timeline.subscribe(self._counts.count)
        self._closing = ExitStack()
        self._end = asyncio.Event()
        self._lost: str | None = None
        self._locating = locating.Locating()

    async def run(self, exporting: Exporter | None) -> None:
        """Run until the end is requested."""
        obey(self._end)
        server = control.ControlServer(
            {"wait": self._wait, "inspect": self._inspect, "trace": self._trace, "status": self._status,
             "srv6": self._srv6, "paths": self._paths, "suspect": self._suspect,
             "break": self._break, "mend": self._mend, "mend-all": self._mend_all},
            streams={"events": self._events, "locate": self._locate},
        )  # fmt: skip
        await server.start(self._listening)
        asyncio.get_running_loop().add_reader(self._tethered, self._on_tether)
        starting = asyncio.create_task(self._start())
        serving = None if exporting is None else asyncio.create_task(exporting.answer(server))
        await self._end.wait()
        await server.last_words()  # to clients that follow the timeline, before the slow closing
        if starting.done():
            starting.result()  # a bug during the start ends the lab with its traceback
        starting.cancel()
        if serving is not None:
            serving.cancel()
        server.close()
        self._closing.close()

    async def _start(self) -> None:
        try:
            lab = Lab.start(self._fabric, self._timeline.emit)
            self._closing.callback(lab.close)
            self._timeline.subscribe(lambda event: self._note_loss(lab, event))
            asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, lambda: reap_strangers(lab.child_pids()))
            await lab.converged()
        except (HpnError, OSError) as error:
            found = error if isinstance(error, HpnError) else MachineError(f"{type(error).__name__}: {error}")
            self._standing.set_exception(found)
        else:
            gc.freeze()
            self._standing.set_result(lab)
        finally:
            if not self._standing.done():
                self._end.set()

    def _note_loss(self, lab: Lab, event: Event) -> None:
        """Print a line for ``hpn ls`` when a daemon of the lab is lost, and one when all run again."""
        if event.kind is not EventKind.DAEMON or lab.lost == self._lost:
            return
        self._lost = lab.lost
        way_out = f"start it anew: hpn break {event.node}, hpn mend {event.node}"
        if event.node not in lab.bgp:
            way_out = "start the lab anew: hpn down, hpn up"
        sys.stderr.write("every daemon runs again\n" if self._lost is None else f"{self._lost}; {way_out}\n")
        sys.stderr.flush()

    def _on_tether(self) -> None:
        """Handle the starting command's success, or its death before that: then the lab is unknown and ends."""
        if not os.read(self._tethered, 16):
            self._end.set()
        asyncio.get_running_loop().remove_reader(self._tethered)
        os.close(self._tethered)

    async def _wait(self, _request: Json, emit: Emit) -> JsonValue:
        stop_listening = self._timeline.subscribe(lambda event: emit(_as_json(event)) if event.kind in _TOLD else None)
        try:
            return (await self._lab()).datapath
        finally:
            stop_listening()

    async def _lab(self) -> Lab:
        """Return the lab once it has converged. Raise the error of its start if it failed."""
        return await asyncio.shield(self._standing)

    async def _inspect(self, request: Json, _emit: Emit) -> JsonValue:
        nodes = request.get("nodes", [])
        if not isinstance(nodes, list):
            raise InputError("nodes are a list of names")
        what, names = str(request.get("what", "")), [str(node) for node in nodes]
        if what == inspect.CABLING:
            return await inspect.cabling_report(await self._lab(), names)
        return inspect.report(await self._lab(), what, names)

    async def _status(self, _request: Json, _emit: Emit) -> JsonValue:
        return status.as_json(await status.condition(await self._lab(), self._counts, self._locating.suspects))

    async def _trace(self, request: Json, _emit: Emit) -> JsonValue:
        lab = await self._lab()
        if balances(lab.fabric.spec):
            raise InputError("switches choose the next hop of each packet (switch.balancing): no flow has one path")
        sport, dport = request.get("sport"), request.get("dport", 4791)
        if not (isinstance(sport, int) and isinstance(dport, int) and 0 < sport < 1 << 16 and 0 < dport < 1 << 16):
            raise InputError("a trace needs sport and dport, whole numbers from 1 to 65535")
        flow = Flow(str(request.get("src")), str(request.get("dst")), sport, dport)
        return inspect.path_report(lab.path(flow, _bound(lab.fabric, flow, request.get("port"))))

    async def _srv6(self, request: Json, _emit: Emit) -> JsonValue:
        src, dst = str(request.get("src")), str(request.get("dst"))
        return await paths_report(await self._lab(), src, dst, send=bool(request.get("send")))

    async def _events(self, _request: Json, emit: Emit) -> JsonValue:
        """Stream the timeline until the lab ends; it is cancelled when the client disconnects."""
        stop_listening = (await self._lab()).subscribe(lambda event: emit(_as_json(event)))
        try:
            await self._end.wait()
        finally:
            stop_listening()
        return None

    async def _locate(self, request: Json, emit: Emit) -> JsonValue:
        await self._locating.follow(await self._lab(), request, emit, self._end)
        return None

    async def _paths(self, request: Json, _emit: Emit) -> JsonValue:
        return await locating.paths(await self._lab(), request)

    async def _suspect(self, request: Json, _emit: Emit) -> JsonValue:
        self._locating.tell(request)
        return None

    async def _break(self, request: Json, _emit: Emit) -> JsonValue:
        lab, target, loss = await self._lab(), str(request.get("target")), request.get("loss")
        if not isinstance(loss, int | float):
            return _as_lists(manual_faults.break_part(lab, target))
        way = str(request.get("direction", manual_faults.BOTH))
        return _as_lists(manual_faults.lose(lab, manual_faults.SilentLoss(target, loss, way)))

    async def _mend(self, request: Json, _emit: Emit) -> JsonValue:
        return _as_lists(await manual_faults.mend_part(await self._lab(), str(request.get("target"))))

    async def _mend_all(self, _request: Json, _emit: Emit) -> JsonValue:
        return _as_lists(await manual_faults.mend_all(await self._lab()))


_TOLD = {EventKind.BGP, EventKind.LAG}


def _bound(fabric: Fabric, flow: Flow, port: JsonValue) -> int | None:
    """Return the port that a traced queue pair is bound to; None where LAGs hash. InputError for any other."""
    if not fabric.spec.nic.binds:
        if port is not None:
            raise InputError("the LAG picks the port here (nic: {port_selection: hash}); leave --port out")
        return None
    ports = len(fabric.nic(flow.src_nic).links)
    if not isinstance(port, int) or not 0 <= port < ports:
        text = "a queue pair leaves by the port that it is bound to (queue affinity)"
        raise InputError(f"{text}: hpn trace --port, from 0 to {ports - 1}")
    return port


def _as_lists(change: manual_faults.ManualChange) -> dict[str, JsonValue]:
    return {name: list(parts) for name, parts in asdict(change).items()}


def _as_json(event: Event) -> dict[str, JsonValue]:
    return {
        "at_ns": event.at_ns,
        "kind": event.kind.value,
        "node": event.node,
        "subject": event.subject,
        "what": event.what,
        "detail": dict(event.detail),
    }
