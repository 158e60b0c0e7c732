"""Part of a lab's supervisor for a process that locates faults in it: paths, changes of paths, and its suspects.

Changes when locating needs something else of a running lab.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from hpn.testbed.errors import InputError
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.buffers import balances
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.path_changes import on_path_changes
from hpn.testbed.lab.service.control import Emit, Json, JsonValue
from hpn.testbed.routing.pathcontrol.host_agent import Connection
from hpn.testbed.routing.trace import Flow

T = TypeVar("T")

_SLICE = 16
"""Paths traced at a stretch; then other work of the supervisor has its turn."""
_PATHS = TypeAdapter(list[tuple[str, str, int, int | None]])
_BOUND = TypeAdapter(list[tuple[str, int, str, int, str]])
_SUSPECTS = TypeAdapter(dict[str, str])


class Locating:
    """The client that locates in a lab: at most one, while its stream is open.

    ``suspects``: parts that it accuses now, and of what, in words; None while nobody locates.
    """

    def __init__(self) -> None:
        self.suspects: dict[str, str] | None = None

    async def follow(self, lab: Lab, request: Json, emit: Emit, end: asyncio.Event) -> None:
        """Bind the probes of ``request``, and emit the time of each change of paths until the lab ends.

        It is cancelled when the client disconnects. InputError while somebody else locates.
        """
        if self.suspects is not None:
            raise InputError("another hpn locate runs in this lab; end it first")
        with ExitStack() as undo:
            undo.callback(self._leave)
            self.suspects = {}
            for nic, connections in _by_nic(_parsed(_BOUND, request.get("bound", []))):
                adapter = lab.nics[lab.fabric.nic(nic).name].adapter
                if adapter is not None:
                    undo.callback(adapter.affinity.release, [each.id for each in connections])
                    adapter.bind(connections)
            undo.callback(on_path_changes(lab, lambda at_ns: emit({"changed_ns": at_ns})))
            emit({"locating": True})
            await end.wait()

    def _leave(self) -> None:
        self.suspects = None

    def tell(self, request: Json) -> None:
        """Take what the client accuses now. InputError if nobody locates."""
        if self.suspects is None:
            raise InputError("nobody locates in this lab")
        self.suspects = _parsed(_SUSPECTS, request.get("suspects"))


async def paths(lab: Lab, request: Json) -> JsonValue:
    """Trace flows: [source NIC, destination NIC, source port, bound port or None] each.

    Return, for each, [port of the NIC or None, links, reason why packets do not arrive or None]. InputError where
    switches balance packets.
    """
    if balances(lab.fabric.spec):
        raise InputError("switches choose the next hop of each packet (switch.balancing): no flow has one path")
    found: list[JsonValue] = []
    for src, dst, sport, bound in _parsed(_PATHS, request.get("flows")):
        path = lab.path(Flow(src, dst, sport), bound)
        ports = [link.name for link in lab.fabric.nic(src).links]
        port = ports.index(path.links[0]) if path.links else None
        found.append([port, list(path.links), path.dropped])
        if len(found) % _SLICE == 0:
            await asyncio.sleep(0)
    return {"at_ns": now_ns(), "paths": found}


def _parsed(shape: TypeAdapter[T], told: JsonValue) -> T:
    try:
        return shape.validate_python(told)
    except ValidationError as error:
        raise InputError("the supervisor does not know this request; is it of another hpn version?") from error


def _by_nic(bound: list[tuple[str, int, str, int, str]]) -> Iterator[tuple[str, list[Connection]]]:
    found: dict[str, list[Connection]] = {}
    for nic, number, dst_ip, sport, port in bound:
        found.setdefault(nic, []).append(Connection(number, dst_ip, 4791, sport, port))
    yield from found.items()
