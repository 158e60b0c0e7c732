"""The injector: does planned faults to a running lab and undoes them, with the clock read before and after.

Every break registers its undo first (DESIGN rule 9), so that ``heal`` restores the lab from wherever a drill stops.
"""

from __future__ import annotations

from failover.actions import Action, action
from failover.edges import hit_links
from failover.faults import PlannedEdge, PlannedFault
from failover.model import Edge, EdgeKind
from testbed.events import Event, EventKind, now_ns
from testbed.lab.lab import Lab


class Injector:
    """Carries out planned edges; remembers what is broken."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._broken: dict[str, Action] = {}
        self.edges: list[Edge] = []

    async def carry_out(self, planned: PlannedFault, edge: PlannedEdge, transit_flows: tuple[int, ...]) -> Edge:
        """Do one edge of a fault now; its record (window end still open)."""
        act = action(planned.fault, self._lab)
        failing = edge.kind is EdgeKind.FAILURE
        if failing:
            self._broken[planned.id] = act
            before = now_ns()
            act.do()
            after = now_ns()
        else:
            before = now_ns()
            await act.undo()
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
            name, act = self._broken.popitem()
            await act.undo()
            self._lab.emit(Event(now_ns(), EventKind.FAULT, "", name, "healed"))

    def _say(self, at_ns: int, planned: PlannedFault, what: str) -> None:
        detail = {"fault": planned.fault.KIND, "target": planned.fault.target}
        self._lab.emit(Event(at_ns, EventKind.FAULT, planned.fault.target, planned.id, what, detail))
