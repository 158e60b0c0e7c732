"""Spare hosts that replace failed ones: the spare for each fault, and the replacement flows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.failover.faults import PlannedFault, Replacement
from hpn.failover.faults.moments import moments
from hpn.scenarios.expect.scope import place_of
from hpn.testbed.fabric.model import Fabric, Nic, Node, Role
from hpn.testbed.files.document import shorten
from hpn.traffic.flows.flow import FlowSpec, default_sports

_WIRED_SPARE = "write spare: yes for a host of the wiring"


@dataclass(frozen=True, slots=True)
class SpareAssignment:
    """Planned faults with their spares, and the problems of those without, by position."""

    faults: tuple[PlannedFault, ...]
    problems: Mapping[int, str]


def assigned(fabric: Fabric, faults: Sequence[PlannedFault]) -> SpareAssignment:
    """Assign a spare to every replaced host: the one its fault names, else the first free one of its segment.

    A host whose segment has no spare gets none; ``no_spare`` explains why.
    """
    problems: dict[int, str] = {}
    chosen: dict[int, str] = {}
    wanting = [(at, r) for at, planned in enumerate(faults) if (r := planned.fault.replacement) is not None]
    for at, wanted in sorted(wanting, key=lambda item: not item[1].spare):  # faults that name a spare come first
        if not _is_host(fabric, wanted.host) or not (spares := _spares_beside(fabric, wanted.host)):
            continue
        taken = {spare: faults[other].id for other, spare in chosen.items() if spare in spares}
        free = [spare for spare in spares if spare not in taken]
        problem = _problem(fabric, wanted, taken, free)
        if problem:
            problems[at] = problem
        else:
            chosen[at] = wanted.spare or free[0]
    return SpareAssignment(
        tuple(_with_spare(planned, chosen.get(at, "")) for at, planned in enumerate(faults)), problems
    )


def no_spare(fabric: Fabric, host: str) -> str:
    """Return why the segment of ``host`` has no spare for it, with the solution, or ''."""
    if _spares_beside(fabric, host):
        return ""
    where = f"{_segment(fabric.node(host))} has no {'other ' if fabric.node(host).spare else ''}spare host"
    raised = fabric.spec.spare_hosts + 1
    preset = ", or take the preset tiny-spare" if raised == 1 else ""
    way_out = f"write spare_hosts: {raised} in the topology{preset}" if fabric.spec.wiring is None else _WIRED_SPARE
    return f"{where} to take over from {host}; {way_out}"


def replacement_flows(
    fabric: Fabric, faults: Iterable[PlannedFault], flows: Sequence[FlowSpec]
) -> tuple[tuple[FlowSpec, ...], ...]:
    """Return the flows that start at each takeover; each names the flow that it replaces.

    A replacement flow has the rate and patience of the replaced one, and an end at the spare's NIC of the same rail.
    """
    present, next_id = list(flows), max((flow.id for flow in flows), default=-1) + 1
    found = []
    for spares in (moment.takeovers for moment in moments(faults) if moment.takeovers):
        replaced = [flow for flow in present if ends(flow) & spares.keys()]
        begun = [_stand_in(fabric, flow, next_id + at, spares) for at, flow in enumerate(replaced)]
        next_id += len(begun)
        present = [flow for flow in present if flow not in replaced] + begun
        found.append(tuple(begun))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Change:
    """Effect of a takeover: flows whose queue pairs are closed, and their replacement flows in the same order."""

    closes: tuple[FlowSpec, ...]
    starts: tuple[FlowSpec, ...]


class ActiveFlows:
    """Active flows. Use: ``take_over`` at each instant, in order of time."""

    def __init__(self, flows: Iterable[FlowSpec]) -> None:
        self._flows = tuple(flows)
        self._stand_in = {flow.replaces: flow for flow in self._flows if flow.replaces is not None}
        self._present = {flow.id: flow for flow in self._flows if flow.replaces is None}

    @property
    def present(self) -> tuple[FlowSpec, ...]:
        """Flows that have started and are not closed."""
        return tuple(self._present.values())

    @property
    def absent(self) -> tuple[int, ...]:
        """Ids of the inactive flows."""
        return tuple(flow.id for flow in self._flows if flow.id not in self._present)

    def take_over(self, dead: Collection[str]) -> Change:
        """Start the replacement flows on the spares of these hosts."""
        closes = [f for f in self.present if f.id in self._stand_in and ends(f) & set(dead)]
        starts = [self._stand_in[flow.id] for flow in closes]
        for flow in closes:
            del self._present[flow.id]
        self._present.update((flow.id, flow) for flow in starts)
        return Change(tuple(closes), tuple(starts))


def _is_host(fabric: Fabric, name: str) -> bool:
    return name in fabric.node_by_name and fabric.node(name).role is Role.HOST


def _segment(host: Node) -> str:
    return f"segment {host.segment} of pod {host.pod}"


def _spares_beside(fabric: Fabric, host: str) -> list[str]:
    """Return the spare hosts of a host's segment, without the host itself."""
    here = fabric.node(host)
    beside = (node for node in fabric.hosts if (node.pod, node.segment) == (here.pod, here.segment))
    return [node.name for node in beside if node.spare and node is not here]


def _problem(fabric: Fabric, wanted: Replacement, taken: Mapping[str, str], free: Sequence[str]) -> str:
    """Return why no host can be the spare, named or not, or '' if one can."""
    raised = f"raise spare_hosts of the topology to {fabric.spec.spare_hosts + 1}"
    more = raised if fabric.spec.wiring is None else _WIRED_SPARE
    instead = f"write {' or '.join(free[:3])}" if free else more
    here = _segment(fabric.node(wanted.host))
    if not wanted.spare:
        return "" if free else f"no spare host of {here} is left, {_takers(taken)}; {more}"
    said = f"spare is {shorten(wanted.spare)}"
    if not _is_host(fabric, wanted.spare):
        return f"{said}, which is no host of this fabric; {instead}"
    spare = fabric.node(wanted.spare)
    if spare.name == wanted.host:
        return f"{said}, the very host that dies; {instead}"
    if not spare.spare:
        return f"{said}, which is no spare host but has work of its own; {instead}"
    if _segment(spare) != here:
        return f"{said} of {_segment(spare)}, but a spare takes over within its segment, here {here}; {instead}"
    return f"{said}, which {taken[spare.name]} has taken; {instead}" if spare.name in taken else ""


def _takers(taken: Mapping[str, str]) -> str:
    """Return the takers as text: 'p0.s0.h2 is taken by a'."""
    return ", ".join(f"{spare} is taken by {fault}" for spare, fault in taken.items())


def _with_spare(planned: PlannedFault, spare: str) -> PlannedFault:
    return replace(planned, fault=planned.fault.with_spare(spare))


def ends(flow: FlowSpec) -> set[str]:
    """Return the hosts of a flow."""
    return {place_of(flow.src_nic)[0], place_of(flow.dst_nic)[0]}


def with_ends(fabric: Fabric, flow: FlowSpec, spares: Mapping[str, str]) -> FlowSpec:
    """Return the flow between the NICs that replace its own after these takeovers; the same flow if none does."""
    src, dst = (_nic_after(fabric, nic, spares) for nic in (flow.src_nic, flow.dst_nic))
    return replace(
        flow,
        name=f"{src.name}>{dst.name}#{flow.name.rpartition('#')[2]}",
        src_nic=src.name,
        dst_nic=dst.name,
        src_ip=src.ip,
        dst_ip=dst.ip,
    )


def _stand_in(fabric: Fabric, flow: FlowSpec, number: int, spares: Mapping[str, str]) -> FlowSpec:
    sport, ack_sport = default_sports(number)
    moved = with_ends(fabric, flow, spares)
    return replace(moved, id=number, sport=sport, ack_sport=ack_sport, replaces=flow.id)


def _nic_after(fabric: Fabric, name: str, spares: Mapping[str, str]) -> Nic:
    """Return the NIC in use after the takeovers: the NIC itself, or the spare's of the same rail."""
    nic = fabric.nic(name)
    return next((each for each in fabric.nics_of(spares.get(nic.host, "")) if each.rail == nic.rail), nic)
