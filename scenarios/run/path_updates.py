"""Recompute paths while a job runs: when a ToR's ECMP groups change, the hosts below it check their paths.

HPN's hosts fetch the ECMP group from their ToR when it changes and recompute disjoint paths. The source is the paper,
section 6.2, which does not say how hosts are notified. Here a ToR's notifications are changes of its routes to NICs and
of its own ports' carrier. The path of a source port is queried from the lab's kernels, as at the first choice. A queue
pair that path control has moved is left alone until it reverts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hpn.failover.analysis.phases import RECHOSEN
from hpn.scenarios.run.batching import Gathering
from hpn.scenarios.run.lab_router import LabRouter
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.model import Role
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.paths import link_disjoint_anew


class LivingRouter(LabRouter):
    """Router of the current paths; a path that does not reach the destination has no links."""

    def links(self, src_nic: str, dst_nic: str, sport: int, _bound: int | None = None) -> Sequence[str]:
        """Return the names of the links on the path, empty when it ends early."""
        path = self._lab.path(Flow(src_nic, dst_nic, sport))
        return self._certain(path) if path.dropped is None else ()


class Rechooser:
    """Watcher of ToRs, active from ``start`` to ``stop``.

    ``sports``: current source port by flow. ``move`` is called with the flow, its new source port and the reason.
    """

    def __init__(
        self, lab: Lab, flows: Sequence[FlowSpec], sports: Mapping[int, int], move: Callable[[int, int, str], None]
    ) -> None:
        self._lab = lab
        self._flows = flows
        self._sports = sports
        self._move = move
        self._first = {flow.id: flow.sport for flow in flows}
        self._last = dict(self._first)  # source port last set here, or the first one
        self._tors = {node.name for node in lab.fabric.switches if node.role is Role.TOR}
        self._gathering = Gathering(self._go)

    def start(self) -> None:
        """Start listening."""
        self._lab.route_listeners.append(self._changes)
        self._quiet = self._lab.subscribe(self._heard)

    def stop(self) -> None:
        """Stop listening and drop pending changes."""
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
        except MachineError:  # a LAG has lost its last port; its ToR reports when one returns
            return
        if moved:
            detail: dict[str, str | int | float] = {"tors": ",".join(sorted(tors)), "queue_pairs": moved}
            self._lab.emit(Event(now_ns(), EventKind.PATH, "", "link-disjoint", RECHOSEN, detail))

    async def _choose(self, tors: set[str]) -> int:
        """Give every queue pair of a NIC below these ToRs its best path; return how many moved."""
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
                self._move(chosen.id, chosen.sport, RECHOSEN)
                moved += 1
            await asyncio.sleep(0)  # let the control plane run
        return moved

    def _leaves(self, flow: FlowSpec) -> bool:
        """Return True if the flow's NIC has an active port."""
        nic = self._lab.nics[flow.src_nic]
        nic.look()
        return bool(nic.active)
