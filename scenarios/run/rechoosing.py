"""Paths chosen anew while a job runs: when a ToR's ECMP groups change, the hosts below it look where they are.

HPN's hosts fetch the ECMP group from their ToR when it changes and recompute disjoint paths (paper section 6.2; it does
not say how the news comes). Here a ToR's news are those it has itself: its routes to NICs, and the carrier of its own
ports. Which path a source port takes is asked of the lab's kernels, as when paths were chosen first. A queue pair that
path control has moved is path control's until it is home.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hpn.scenarios.run.gathering import Gathering
from hpn.scenarios.run.lab_router import LabRouter
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Role
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.paths import link_disjoint_anew


class LivingRouter(LabRouter):
    """Where packets arrive now; no links where they do not."""

    def links(self, src_nic: str, dst_nic: str, sport: int) -> Sequence[str]:
        """Names of the links on the path, none when it ends early."""
        path = self._lab.path(Flow(src_nic, dst_nic, sport))
        return path.links if path.dropped is None else ()


class Rechooser:
    """Watches ToRs from ``start`` to ``stop``. ``sports``: by flow, where each is now; ``move`` gives it another.

    It is told the flow, the source port and why.
    """

    def __init__(
        self, lab: Lab, flows: Sequence[FlowSpec], sports: Mapping[int, int], move: Callable[[int, int, str], None]
    ) -> None:
        self._lab = lab
        self._flows = flows
        self._sports = sports
        self._move = move
        self._first = {flow.id: flow.sport for flow in flows}
        self._last = dict(self._first)  # where each was put here, or at first
        self._tors = {node.name for node in lab.fabric.switches if node.role is Role.TOR}
        self._gathering = Gathering(self._go)

    def start(self) -> None:
        """Listen from now on."""
        self._lab.route_listeners.append(self._changes)
        self._quiet = self._lab.subscribe(self._heard)

    def stop(self) -> None:
        """Listen no longer; what is under way is dropped."""
        self._lab.route_listeners.remove(self._changes)
        self._quiet()
        self._gathering.stop()

    def _heard(self, event: Event) -> None:
        if event.kind is EventKind.LINK:
            self._changes(event.node)

    def _changes(self, node: str) -> None:
        if node in self._tors:
            self._gathering.add(node)

    async def _go(self, tors: set[str]) -> None:
        try:
            moved = await self._choose(tors)
        except MachineError:  # a LAG has lost its last port: its ToR has news when that returns
            return
        if moved:
            detail: dict[str, str | int | float] = {"tors": ",".join(sorted(tors)), "queue_pairs": moved}
            self._lab.emit(Event(now_ns(), EventKind.PATH, "", "link-disjoint", "rechosen", detail))

    async def _choose(self, tors: set[str]) -> int:
        """Put every queue pair of a NIC below these where it is best off; how many that moved."""
        below = {nic.name for nic in self._lab.fabric.nics for link in nic.links if link.upper.node in tors}
        now = [replace(flow, sport=self._sports[flow.id]) for flow in self._flows]
        moving = [
            flow for flow in now if flow.src_nic in below and flow.sport == self._last[flow.id] and self._leaves(flow)
        ]
        ids = {flow.id for flow in moving}
        staying = [flow for flow in now if flow.id not in ids]
        moved = 0
        for chosen in link_disjoint_anew(staying, moving, self._first, LivingRouter(self._lab)):
            before = self._last[chosen.id]
            if chosen.sport != before and self._sports[chosen.id] == before:
                self._last[chosen.id] = chosen.sport
                self._move(chosen.id, chosen.sport, "rechosen")
                moved += 1
            await asyncio.sleep(0)  # the control plane gets its turn
        return moved

    def _leaves(self, flow: FlowSpec) -> bool:
        """Its NIC has a port to send by."""
        nic = self._lab.nics[flow.src_nic]
        nic.look()
        return bool(nic.active)
