"""Sprayed queue pairs on a running lab: which source ports each of them uses now.

Source ports are chosen by real paths, queried from the lab's kernels, if the drill's source ports are; else at random.
They are chosen again 100 ms after a change. Changes are a move of the queue pair, a change of its NIC's LAG, and a
change of an ECMP group of its ToR. After a move or a LAG change a queue pair uses one path until then, as its source
ports may lead elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.failover.analysis.phases import RECHOSEN
from hpn.scenarios.run.batching import Gathering
from hpn.scenarios.run.path_updates import LivingRouter
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Role
from hpn.testbed.lab.lab import Lab
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.spraying import sprayed

Tell = Callable[[Mapping[int, tuple[int, ...]]], None]


@dataclass(frozen=True, slots=True)
class SprayPlan:
    """Spraying parameters.

    ``ports``: maximum of source ports per queue pair. ``apart``: True if their paths share no link between switches and
    follow changes.
    """

    ports: int
    apart: bool


class Sprayer:
    """Sprayer, active from ``start`` to ``stop``.

    ``sports``: by flow, the source port known to path control. ``tell`` sends the choice to the workers.
    """

    def __init__(self, lab: Lab, plan: SprayPlan, sports: Mapping[int, int], tell: Tell) -> None:
        self._lab = lab
        self._plan = plan
        self._sports = sports
        self._tell = tell
        self._flows: Sequence[FlowSpec] = ()
        self._taken: dict[int, tuple[int, ...]] = {}  # by flow
        self._gathering = Gathering(self._choose_again)
        self._below: dict[str, list[str]] = {node.name: [] for node in lab.fabric.switches if node.role is Role.TOR}
        for nic in lab.fabric.nics:
            for link in nic.links:
                self._below[link.upper.node].append(nic.name)
        self._nic_of_lag = {(nic.host, nic.lag): nic.name for nic in lab.fabric.nics}

    async def start(self, flows: Sequence[FlowSpec]) -> None:
        """Choose source ports for these flows and start listening."""
        self._flows = flows
        await self._choose({flow.src_nic for flow in flows})
        if self._plan.apart and self._lab.fabric.spec.path_control.chosen.agent is not None:  # ToRs notify
            self._lab.route_listeners.append(self._changes)
        self._quiet = self._lab.subscribe(self._heard)

    def stop(self) -> None:
        """Stop listening and drop pending changes."""
        if self._changes in self._lab.route_listeners:
            self._lab.route_listeners.remove(self._changes)
        self._quiet()
        self._gathering.stop()

    def source_ports(self, flow: int) -> tuple[int, ...]:
        """Return the source ports that a flow's packets use now."""
        return self._taken.get(flow, (self._sports[flow],))

    def moved(self, flow: FlowSpec) -> None:
        """Send all packets of a flow by its new source port until others are chosen; the workers know it."""
        self._taken.pop(flow.id, None)
        self._gathering.add(flow.src_nic)

    def replaced(self, flows: Sequence[FlowSpec]) -> None:
        """Handle flows with new ends; the workers already know them."""
        before = {flow.id: flow for flow in self._flows}
        self._flows = flows
        for flow in flows:
            if flow != before[flow.id]:
                self.moved(flow)

    def _changes(self, node: str) -> None:
        for nic in self._below.get(node, ()):
            self._gathering.add(nic)

    def _heard(self, event: Event) -> None:
        if event.kind is EventKind.LAG:
            self._gather(self._nic_of_lag.get((event.node, event.subject)))
        elif event.kind is EventKind.LINK and self._changes in self._lab.route_listeners:
            self._changes(event.node)

    def _gather(self, nic: str | None) -> None:
        """Handle a change of a NIC's LAG: source ports that led to one of its ports may now lead to two."""
        gone = [flow for flow in self._flows if flow.src_nic == nic]
        if gone:
            self._tell({flow.id: (self._sports[flow.id],) for flow in gone})
            for flow in gone:
                self.moved(flow)

    async def _choose_again(self, nics: set[str]) -> None:
        changed = await self._choose(nics)
        if changed:
            detail: dict[str, str | int | float] = {"nics": ",".join(sorted(nics)), "queue_pairs": changed}
            self._lab.emit(Event(now_ns(), EventKind.PATH, "", "sprayed", RECHOSEN, detail))

    async def _choose(self, nics: set[str]) -> int:
        """Choose source ports for the queue pairs of these NICs; return how many changed."""
        router, changed = LivingRouter(self._lab), 0
        for flow in self._flows:
            if flow.src_nic not in nics:
                continue
            found = self._chosen(replace(flow, sport=self._sports[flow.id]), router)
            if found != self.source_ports(flow.id):
                changed += 1
                self._taken[flow.id] = found
                self._tell({flow.id: found})
            await asyncio.sleep(0)  # let the control plane run
        return changed

    def _chosen(self, flow: FlowSpec, router: LivingRouter) -> tuple[int, ...]:
        others = [other for other in self._flows if other.src_nic == flow.src_nic and other.id != flow.id]
        taken = {sport for other in others for sport in (self._sports[other.id], *self.source_ports(other.id))}
        seed = self._lab.fabric.spec.seed
        try:
            return sprayed(flow, self._plan.ports, router, taken, apart=self._plan.apart, seed=seed)
        except MachineError:  # its LAG has lost its last port; an event reports when one returns
            return (flow.sport,)
