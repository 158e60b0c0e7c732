"""Sprayed queue pairs on a running lab: which source ports each of them takes now.

Chosen by true paths, asked of the lab's kernels, where the drill's source ports are; else drawn. Chosen again when the
queue pair has moved, when the LAG of its NIC or an ECMP group of its ToR has changed, 100 ms after the news; until then
its packets take one path if it has moved or the LAG has changed, as source ports may lead elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.scenarios.run.gathering import Gathering
from hpn.scenarios.run.rechoosing import LivingRouter
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Role
from hpn.testbed.lab.lab import Lab
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.spraying import sprayed

Tell = Callable[[Mapping[int, tuple[int, ...]]], None]


@dataclass(frozen=True, slots=True)
class SprayPlan:
    """``ports`` a queue pair at most; ``apart``: their paths share no link between switches, and are followed."""

    ports: int
    apart: bool


class Sprayer:
    """Watches from ``start`` to ``stop``. ``sports``: by flow, the one path control knows; ``tell`` the workers."""

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
        """Choose for these and listen from now on."""
        self._flows = flows
        await self._choose({flow.src_nic for flow in flows})
        if self._plan.apart and self._lab.fabric.spec.path_control.chosen.agent is not None:  # ToRs tell hosts
            self._lab.route_listeners.append(self._changes)
        self._quiet = self._lab.subscribe(self._heard)

    def stop(self) -> None:
        """Listen no longer; what is under way is dropped."""
        if self._changes in self._lab.route_listeners:
            self._lab.route_listeners.remove(self._changes)
        self._quiet()
        self._gathering.stop()

    def source_ports(self, flow: int) -> tuple[int, ...]:
        """Those that its packets take now."""
        return self._taken.get(flow, (self._sports[flow],))

    def moved(self, flow: FlowSpec) -> None:
        """It leaves by another source port, as the workers know: all of its packets, until others are chosen."""
        self._taken.pop(flow.id, None)
        self._gathering.add(flow.src_nic)

    def replaced(self, flows: Sequence[FlowSpec]) -> None:
        """Some have other ends now, as the workers know."""
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
        """The LAG of a NIC has changed: what led to one of its ports may lead to two."""
        gone = [flow for flow in self._flows if flow.src_nic == nic]
        if gone:
            self._tell({flow.id: (self._sports[flow.id],) for flow in gone})
            for flow in gone:
                self.moved(flow)

    async def _choose_again(self, nics: set[str]) -> None:
        changed = await self._choose(nics)
        if changed:
            detail: dict[str, str | int | float] = {"nics": ",".join(sorted(nics)), "queue_pairs": changed}
            self._lab.emit(Event(now_ns(), EventKind.PATH, "", "sprayed", "rechosen", detail))

    async def _choose(self, nics: set[str]) -> int:
        """For the queue pairs of these NICs; how many take other source ports now."""
        router, changed = LivingRouter(self._lab), 0
        for flow in self._flows:
            if flow.src_nic not in nics:
                continue
            found = self._chosen(replace(flow, sport=self._sports[flow.id]), router)
            if found != self.source_ports(flow.id):
                changed += 1
                self._taken[flow.id] = found
                self._tell({flow.id: found})
            await asyncio.sleep(0)  # the control plane gets its turn
        return changed

    def _chosen(self, flow: FlowSpec, router: LivingRouter) -> tuple[int, ...]:
        others = [other for other in self._flows if other.src_nic == flow.src_nic and other.id != flow.id]
        taken = {sport for other in others for sport in (self._sports[other.id], *self.source_ports(other.id))}
        seed = self._lab.fabric.spec.seed
        try:
            return sprayed(flow, self._plan.ports, router, taken, apart=self._plan.apart, seed=seed)
        except MachineError:  # its LAG has lost its last port: there are news when one returns
            return (flow.sport,)
