"""The condition of a running lab as its supervisor sees it, collected in slices to keep the lab responsive.

Changes when another kind of fault in a lab can be detected.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hpn.testbed.condition import Condition
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, now_ns
from hpn.testbed.fabric.model import Fabric, Port
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.lacp_why import why_idle
from hpn.testbed.lab.service import manual_faults
from hpn.testbed.lab.service.control import JsonValue
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Mux
from hpn.testbed.routing.neighbours import bfd_ends

_BFD_UP = "Up"


class EventCounts:
    """Counts of events by kind, event and the plane of their node or link."""

    def __init__(self, fabric: Fabric) -> None:
        self._planes = {link.name: str(link.plane) for link in fabric.links}
        self._planes |= {node.name: str(node.plane) for node in fabric.nodes if node.plane is not None}
        self._counted: Counter[tuple[str, str, str]] = Counter()

    def count(self, event: Event) -> None:
        """Count one event of the timeline."""
        self._counted[event.kind.value, event.what, self._planes.get(event.node, "")] += 1

    def by_kind(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the counts by kind, event and plane."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for (kind, what, plane), times in sorted(self._counted.items()):
            found.setdefault(kind, {}).setdefault(what, {})[plane] = times
        return found


async def condition(lab: Lab, counts: EventCounts, suspects: Mapping[str, str] | None = None) -> Condition:
    """Return the current condition of ``lab``, with what is suspected. Other due work runs between its parts."""
    told: dict[str, object] = {}
    busy_ns = 0
    for name, look in _PARTS.items():
        began = now_ns()
        told[name] = look(lab)
        busy_ns += now_ns() - began
        await asyncio.sleep(0)
    of_all: dict[str, Any] = {"events": counts.by_kind(), "suspects": suspects}
    return Condition(at_ns=now_ns(), busy_ns=busy_ns, **of_all, **told)  # type: ignore[arg-type]  # by name


def as_json(found: Condition) -> JsonValue:
    """Convert a condition for the control socket."""
    return asdict(found)


_ADAPTER = TypeAdapter(Condition)


def from_json(told: JsonValue) -> Condition:
    """Parse a supervisor's condition. MachineError when it is of another version."""
    try:
        return _ADAPTER.validate_python(told)
    except ValidationError as error:
        raise MachineError(
            "the lab's supervisor tells its condition as no hpn of this version does; hpn down, then hpn up"
        ) from error


def _broken(lab: Lab) -> tuple[str, ...]:
    """Return parts broken by hand, and the links that went down with them."""
    found = (each for each in manual_faults.broken(lab) if each.by_hand and not each.silent)
    return tuple(sorted({name for each in found for name in (each.part, *each.links)}))


def _dead(lab: Lab) -> tuple[str, ...]:
    return tuple(node.name for node in lab.fabric.switches if not lab.bgp[node.name].running)


def _held(lab: Lab) -> dict[str, str]:
    conditions = {name: tor.condition for name, tor in lab.tors.items()}
    held = {name: said for name, said in conditions.items() if said and said != "dead"}
    return held | {each.part: each.how for each in manual_faults.broken(lab) if not each.by_hand and each.links}


def _dark(lab: Lab) -> tuple[str, ...]:
    return tuple(end.label for end in _ends(lab.fabric) if not lab.watcher.carrier(end.node, end.ifindex))


def _idle_at_hosts(lab: Lab) -> Iterator[tuple[str, tuple[str, str]]]:
    for nic in lab.nics.values():
        ports = nic.status()
        yield from ((f"{nic.nic.host}:{port.name}", _why(lab, port, ports)) for port in ports if _idles(port))


def _idle_at_tors(lab: Lab) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, tor in lab.tors.items():
        for port in tor.status().values():
            if _idles(port):
                yield f"{name}:{port.name}", (port.mux.value, why_idle(lab.fabric, port, (port,), tor.condition))


def _idles(port: PortStatus) -> bool:
    return port.mux is not Mux.COLLECTING_DISTRIBUTING


def _why(lab: Lab, port: PortStatus, ports: tuple[PortStatus, ...]) -> tuple[str, str]:
    return port.mux.value, why_idle(lab.fabric, port, ports)


def _active(lab: Lab) -> dict[str, int]:
    return {name: len(nic.active) for name, nic in lab.nics.items() if len(nic.active) < len(nic.nic.links)}


def _sessions_down(lab: Lab) -> tuple[str, ...]:
    return tuple(end.label for end in _routed(lab.fabric) if end.name not in lab.bgp[end.node].established)


def _bfd_down(lab: Lab) -> tuple[str, ...]:
    beside = bfd_ends(lab.fabric)
    ends = (end for end in _routed(lab.fabric) if end.label in beside)
    return tuple(end.label for end in ends if lab.bgp[end.node].bfd.get(end.name) != _BFD_UP)


def _routes(lab: Lab) -> dict[str, str]:
    return {gap.where: gap.text for gap in lab.missing() if gap.kind == "route"}


def _ends(fabric: Fabric) -> Iterator[Port]:
    for link in fabric.links:
        yield from (link.lower, link.upper)


def _routed(fabric: Fabric) -> Iterator[Port]:
    for link in fabric.links:
        if link.is_routed:
            yield from (link.lower, link.upper)


_PARTS: dict[str, Callable[[Lab], object]] = {
    "broken": _broken,
    "dead": _dead,
    "held": _held,
    "dark": _dark,
    "idle": lambda lab: dict((*_idle_at_hosts(lab), *_idle_at_tors(lab))),
    "active": _active,
    "sessions_down": _sessions_down,
    "bfd_down": _bfd_down,
    "routes": _routes,
}
