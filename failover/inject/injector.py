"""The injector: injects planned faults into a running lab and repairs them, with clock readings before and after.

Every break registers its undo first (DESIGN rule 9), so that ``heal`` restores the lab wherever a drill stops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from hpn.failover.analysis.edges import hit_links
from hpn.failover.analysis.model import Edge, EdgeKind
from hpn.failover.faults import Fault
from hpn.failover.faults.actions import Action
from hpn.failover.faults.moments import Due, Moment
from hpn.failover.inject.lab_actions import LabActions
from hpn.testbed.errors import HpnError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.lab.lab import Lab


class Takeover(Protocol):
    """The traffic, as far as a fault affects it: hosts of a job are replaced."""

    @property
    def absent(self) -> tuple[int, ...]:
        """Ids of flows that are not active now."""

    async def take_over(self, dead: Collection[str]) -> None:
        """Start the spares of these hosts in their place."""


class Injector:
    """Executor of moments, with the record of active faults. Without a ``job`` no spare takes over from a host."""

    def __init__(self, lab: Lab, job: Takeover | None = None) -> None:
        self._lab = lab
        self._job = job
        self._broken: dict[tuple[str, Fault], Action] = {}  # fault id and what was done, oldest first
        self.edges: list[Edge] = []

    async def carry_out(
        self,
        moment: Moment,
        transit_flows: tuple[int, ...],
        planes: tuple[tuple[int, int], ...] = (),
        ways: Mapping[int, Collection[str]] | None = None,
        ack_ways: Mapping[int, Collection[str]] | None = None,
    ) -> Edge:
        """Execute the edges of one instant now, in immediate succession; return their record (window end still open).

        ``ways``: the links that each flow's data crosses now, by true paths; ``ack_ways``: those of acknowledgements.
        None if not determined.
        """
        failing = moment.kind is EdgeKind.FAILURE
        before, after = self._break(moment.due) if failing else await self._repair(moment)
        for due in moment.due:
            self._say(before, due, "inject" if failing else "restore")
            self._say(after, due, "injected" if failing else "restored")
        fabric = self._lab.fabric
        links = dict.fromkeys(link.name for due in moment.due for link in due.fault.links_hit(fabric))
        nodes = tuple(dict.fromkeys(node for due in moment.due for node in due.fault.nodes_hit()))
        ids = dict.fromkeys(due.planned.id for due in moment.due)
        done = Edge(
            fault=next(iter(ids)),
            kind=moment.kind,
            index=moment.due[0].edge.index,
            inject_before_ns=before,
            inject_after_ns=after,
            window_end_ns=after,
            links=hit_links(fabric, links),
            nodes=nodes,
            transit_flows=transit_flows,
            together_with=tuple(ids)[1:],
            planes=planes,
            absent=self._job.absent if self._job is not None else (),
            taken_over=tuple(due.planned.id for due in moment.due if due.fault.takes_over is not None),
            crossed=_crossed(fabric, {*links}, nodes, ways),
            acks_crossed=_crossed(fabric, {*links}, nodes, ack_ways),
        )
        self.edges.append(done)
        return done

    async def heal(self) -> None:
        """Undo all active faults, last first, continuing after errors; then raise the first error.

        OSError or HpnError if the kernel or the lab refused.
        """
        refused: OSError | HpnError | None = None
        while self._broken:
            (name, _fault), act = self._broken.popitem()
            try:
                await act.undo()
            except (OSError, HpnError) as error:
                refused = refused or error
            else:
                self._lab.emit(Event(now_ns(), EventKind.FAULT, "", name, "healed"))
        if refused is not None:
            raise refused

    def _break(self, due: tuple[Due, ...]) -> tuple[int, int]:
        """Inject all of them. Slow preparations, such as opening sockets, come before the first clock reading."""
        actions = LabActions.of(self._lab)
        acts = {(one.planned.id, one.fault): one.fault.act(actions) for one in due}
        self._broken |= acts
        before = now_ns()
        for act in acts.values():
            act.do()
        return before, now_ns()

    async def _repair(self, moment: Moment) -> tuple[int, int]:
        before = now_ns()
        if self._job is not None and moment.takeovers:
            await self._job.take_over(moment.takeovers)
        for one in moment.due:
            for key in reversed([key for key in self._broken if _is_about(one, key)]):
                await self._broken[key].undo()
                del self._broken[key]
        return before, now_ns()

    def _say(self, at_ns: int, due: Due, what: str) -> None:
        detail = {"fault": due.fault.KIND, "target": due.fault.target}
        self._lab.emit(Event(at_ns, EventKind.FAULT, due.fault.target, due.planned.id, what, detail))


def _is_about(repair: Due, broken: tuple[str, Fault]) -> bool:
    """Return True if a repair undoes the action of that key: its part of the fault, or all of it."""
    return broken[0] == repair.planned.id and repair.edge.part in (None, broken[1])


def _crossed(
    fabric: Fabric, links: Collection[str], nodes: Iterable[str], ways: Mapping[int, Collection[str]] | None
) -> tuple[int, ...] | None:
    """Return the ids of flows that cross a link, or a link of a node; None without either, or if paths are unknown."""
    hit = {*links, *(link.name for node in nodes for link in fabric.links_of(node))}
    if ways is None or not hit:
        return None
    return tuple(flow for flow, crossed in sorted(ways.items()) if not hit.isdisjoint(crossed))
