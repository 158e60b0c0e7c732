"""The injector: does planned faults to a running lab and undoes them, with the clock read before and after.

Every break registers its undo first (DESIGN rule 9), so that ``heal`` restores the lab from wherever a drill stops.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from failover.edges import hit_links
from failover.faults import Fault, LinkDown, LinkFlap, PlannedEdge, PlannedFault, TorCrash
from failover.model import Edge, EdgeKind
from testbed.events import Event, EventKind, now_ns
from testbed.lab.lab import Lab


@dataclass(frozen=True, slots=True)
class _Action:
    """How one kind of fault is done and undone; both return when the kernel has carried them out."""

    do: Callable[[Lab], None]
    undo: Callable[[Lab], Awaitable[None]]


def _action(fault: Fault, lab: Lab) -> _Action:
    if isinstance(fault, LinkDown | LinkFlap):
        link = lab.fabric.link(fault.link)

        async def mend(lab: Lab) -> None:
            lab.mend(link)

        return _Action(lambda lab: lab.cut(link), mend)
    if isinstance(fault, TorCrash):
        tor = lab.fabric.node(fault.tor).name
        return _Action(lambda lab: lab.crash(tor), lambda lab: lab.boot(tor))
    raise AssertionError(f"no way to do a {fault.KIND}")


class Injector:
    """Carries out planned edges; remembers what is broken."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._broken: dict[str, _Action] = {}
        self.edges: list[Edge] = []

    async def carry_out(self, planned: PlannedFault, edge: PlannedEdge, transit_flows: tuple[int, ...]) -> Edge:
        """Do one edge of a fault now; its record (window end still open)."""
        action = _action(planned.fault, self._lab)
        failing = edge.kind is EdgeKind.FAILURE
        if failing:
            self._broken[planned.id] = action
            before = now_ns()
            action.do(self._lab)
            after = now_ns()
        else:
            before = now_ns()
            await action.undo(self._lab)
            after = now_ns()
            self._broken.pop(planned.id, None)
        self._say(before, planned, "inject" if failing else "restore")
        self._say(after, planned, "injected" if failing else "restored")
        links = hit_links(self._lab.fabric, [link.name for link in planned.fault.links_hit(self._lab.fabric)])
        done = Edge(
            planned.id, edge.kind, edge.index, before, after, after, links, planned.fault.nodes_hit(), transit_flows
        )
        self.edges.append(done)
        return done

    async def heal(self) -> None:
        """Undo whatever is still broken, last first."""
        while self._broken:
            name, action = self._broken.popitem()
            await action.undo(self._lab)
            self._lab.emit(Event(now_ns(), EventKind.FAULT, "", name, "healed"))

    def _say(self, at_ns: int, planned: PlannedFault, what: str) -> None:
        detail = {"fault": planned.fault.KIND, "target": planned.fault.target}
        self._lab.emit(Event(at_ns, EventKind.FAULT, planned.fault.target, planned.id, what, detail))
