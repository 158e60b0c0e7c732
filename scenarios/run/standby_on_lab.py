"""Spare hosts of a job on a running lab: probe hosts with real packets and give queue pairs new ends.

Changes when lost hosts are detected in another way, or when more moves with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpn.scenarios.drill.spares import with_ends
from hpn.scenarios.run.lab_router import LabRouter
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.packets import echo
from hpn.testbed.lab.lab import Lab
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.paths import SourcePorts
from hpn.traffic.job.standby import Question, Replaced, cut_off, questions, replacements
from hpn.traffic.jobengine.plan import JobPlan

_ROUNDS, _EVERY_S = 5, 0.1
"""Number and interval of probes before a NIC counts as silent; both are choices of this file."""
LOOK_NS = round(_ROUNDS * _EVERY_S * 1e9)


@dataclass(frozen=True, slots=True)
class Moved:
    """Result of a replacement: hosts, the NICs of all ranks, and queue pairs with new ends by id."""

    replaced: tuple[Replaced, ...]
    nics: tuple[str, ...]
    flows: Mapping[int, FlowSpec]


class Standby:
    """Spare hosts of a job, which uses at most ``RestartPolicy.spares`` over all its incarnations."""

    def __init__(self, lab: Lab, plan: JobPlan, source_ports: SourcePorts) -> None:
        self._lab = lab
        self._nics = plan.nics
        self._background = plan.background
        self._most = plan.restart.spares if plan.restart is not None else 0
        self._source_ports = source_ports
        used = {lab.fabric.nic(nic).host for nic in plan.nics}
        self._free = [host.name for host in lab.fabric.hosts if host.spare and host.name not in used]

    @property
    def addresses(self) -> Mapping[str, str]:
        """Addresses of NICs that ranks may move to, by name."""
        rails = {nic.rail for nic in map(self._lab.fabric.nic, self._nics)}
        there = (nic for host in self._free for nic in self._lab.fabric.nics_of(host))
        return {nic.name: nic.ip for nic in there if nic.rail in rails}

    async def replace_lost(self, flows: Sequence[FlowSpec]) -> Moved | None:
        """Replace hosts that do not answer by spares; return None when no host is lost or no spare is left.

        Takes LOOK_NS. ``flows``: current queue pairs of the job. MachineError when no probe can be sent.
        """
        if self._most < 1:
            return None
        fabric = self._lab.fabric
        asked = questions([fabric.nic(nic) for nic in dict.fromkeys((*self._nics, *self.addresses))])
        lost = cut_off(asked, await self._answered(asked))
        spares = [host for host in self._free if host not in lost]
        here = dict.fromkeys(fabric.nic(nic).host for nic in self._nics)
        taken = replacements(fabric, [host for host in here if host in lost], spares[: self._most])
        if not taken:
            return None
        replaced = tuple(Replaced(host, by, self._ranks_on(host)) for host, by in taken.items())
        self._most -= len(taken)
        self._free = [host for host in self._free if host not in taken.values()]
        self._nics = tuple(_nic_after(fabric, nic, taken) for nic in self._nics)
        moving = [after for flow in flows if (after := with_ends(fabric, flow, taken)) != flow]
        return Moved(replaced, self._nics, {flow.id: flow for flow in self._chosen(moving)})

    async def _answered(self, asked: Sequence[Question]) -> set[Question]:
        spaces = self._lab.wiring.namespaces
        asking = [(echo.Asker(spaces[each.asker.host], each.asker.ip), each.asked.ip) for each in asked]
        try:
            found = await echo.answered(asking, _ROUNDS, _EVERY_S)
        except OSError as error:
            raise MachineError(f"cannot ask a job's hosts whether they are there: {error.strerror}") from error
        return {asked[at] for at in found}

    def _ranks_on(self, host: str) -> tuple[int, ...]:
        there = (rank for rank, nic in enumerate(self._nics) if self._lab.fabric.nic(nic).host == host)
        return tuple(rank for rank in there if rank not in self._background)

    def _chosen(self, flows: Sequence[FlowSpec]) -> Sequence[FlowSpec]:
        """Return the flows with source ports chosen as at the job's start; only flows with new ends are passed in."""
        try:
            return self._source_ports.choose(flows, LabRouter(self._lab), (), self._lab.fabric.spec.seed).flows
        except MachineError:  # another NIC has no port: its queue pairs keep their source ports and fail again
            return flows


def _nic_after(fabric: Fabric, name: str, taken: Mapping[str, str]) -> str:
    nic = fabric.nic(name)
    found = (each.name for each in fabric.nics_of(taken.get(nic.host, "")) if each.rail == nic.rail)
    return next(found, name)
