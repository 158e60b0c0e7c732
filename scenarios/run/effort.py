"""Count the work of a drill run before it starts: nodes, links, packets and link crossings. Pure, no numpy.

Changes when another property of a drill decides how long a run takes. Counts are expectations for a healthy fabric.
They leave out losses by faults, retransmissions, acknowledgements and a client's own packets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.planned import PlannedRun
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.collectives.program import Program, Send, Spend
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.jobengine.plan import JobPlan

STREAMS, JOB, CLIENT, NOTHING = "streams", "job", "client", "nothing"
"""Kinds of traffic. A drill with a client counts as CLIENT, whatever else it runs."""
_BY_TOR, _BY_AGG, _BY_CORE = 2, 4, 6
_Way = tuple[int, int, int | None]
"""Source rank, target rank and rail."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Work of one run.

    ``hops``: number of link crossings of all packets together. ``drill_s``: length of its timeline in seconds.
    """

    traffic: str  # STREAMS, JOB, CLIENT or NOTHING
    hosts: int
    nodes: int
    links: int
    packets: int
    hops: int
    drill_s: float

    def longer(self, by_ns: int) -> Effort:
        """Return the effort of a run whose healthy phase is longer by ``by_ns``, with traffic at the same rate."""
        if not by_ns or not self.drill_s:
            return self
        drill_s = self.drill_s + by_ns / 1e9
        times = drill_s / self.drill_s
        return replace(self, packets=round(self.packets * times), hops=round(self.hops * times), drill_s=drill_s)


def effort_of(drill: Drill) -> Effort:
    """Count one run of a drill on its fabric. InputError when the traffic does not fit the fabric."""
    planned = PlannedRun(drill)
    fabric, end_ns = planned.fabric, drill.timeline.end_ns
    if planned.job is not None:
        sent = _of_job(planned.job, fabric, end_ns)
    else:
        sent = ((flow, _of_stream(flow, end_ns)) for flow in planned.flows)
    packets = hops = 0.0
    for flow, count in sent:
        packets += count
        hops += count * links_between(fabric, flow.src_nic, flow.dst_nic)
    return Effort(
        traffic=_traffic(drill),
        hosts=len(fabric.hosts),
        nodes=len(fabric.nodes),
        links=len(fabric.links),
        packets=round(packets),
        hops=round(hops),
        drill_s=end_ns / 1e9,
    )


def links_between(fabric: Fabric, source: str, target: str) -> int:
    """Return the number of links from NIC to NIC: through one ToR, an Agg or a Core. An estimate."""
    here, there = fabric.nic(source), fabric.nic(target)
    from_host, to_host = fabric.node(here.host), fabric.node(there.host)
    if from_host.pod != to_host.pod:
        return _BY_CORE
    return _BY_TOR if from_host.segment == to_host.segment and here.rail == there.rail else _BY_AGG


def _traffic(drill: Drill) -> str:
    if drill.client is not None:
        return CLIENT
    if drill.job is not None:
        return JOB
    return STREAMS if drill.streams else NOTHING


def _of_stream(flow: FlowSpec, end_ns: int) -> float:
    """Return the number of packets of a flow until the end."""
    if flow.transfers is None:
        return flow.rate_pps * end_ns / 1e9
    return min(flow.rate_pps * end_ns / 1e9, flow.transfers.packets * max(1.0, end_ns / flow.transfers.every_ns))


def _of_job(plan: JobPlan, fabric: Fabric, end_ns: int) -> Iterator[tuple[FlowSpec, float]]:
    """Yield a flow for each pair of communicating ranks and its packets, for as many iterations as fit."""
    flows: dict[_Way, FlowSpec] = {
        (pair.source, pair.target, pair.rail): pair.flow for pair in plan.queue_pairs if not pair.grants
    }
    rates_pps = _rates_pps(plan, fabric)
    lasting = {each.rank: _iteration_ns(each, rates_pps, plan.tick_ns) for each in plan.programs}
    own = [each for each in plan.programs if each.rank not in plan.background]
    together_ns = max((lasting[each.rank] for each in own), default=0.0)
    together_ns = max(together_ns, _receiving_ns(own, flows, fabric))
    for program in plan.programs:
        ns = lasting[program.rank] if program.rank in plan.background else together_ns
        for (peer, rail), packets in _messages(program).items():
            yield flows[program.rank, peer, rail], packets * end_ns / max(ns, 1.0)


def _rates_pps(plan: JobPlan, fabric: Fabric) -> Mapping[tuple[int, int | None], float]:
    """Return packets per second by rank and rail. A queue pair uses one port of its NIC, several share the ports."""
    by_nic: dict[tuple[int, int | None], list[FlowSpec]] = {}
    for pair in plan.queue_pairs:
        by_nic.setdefault((pair.source, pair.rail), []).append(pair.flow)
    return {
        key: max(flow.rate_pps for flow in flows) * min(len(flows), len(fabric.nic(flows[0].src_nic).links))
        for key, flows in by_nic.items()
    }


def _receiving_ns(programs: Iterable[Program], flows: Mapping[_Way, FlowSpec], fabric: Fabric) -> float:
    """Return the minimum receive time of the busiest NIC in one iteration, with all its ports in use."""
    takes: Counter[str] = Counter()
    rates_pps: dict[str, float] = {}
    for program in programs:
        for (peer, rail), packets in _messages(program).items():
            flow = flows[program.rank, peer, rail]
            takes[flow.dst_nic] += packets
            rates_pps[flow.dst_nic] = flow.rate_pps * len(fabric.nic(flow.dst_nic).links)
    return _latest(packets * 1e9 / rates_pps[nic] for nic, packets in takes.items())


def _messages(program: Program) -> Mapping[tuple[int, int], int]:
    """Return the network packets of one iteration by peer and rail."""
    found: Counter[tuple[int, int]] = Counter()
    for op in program.ops:
        if isinstance(op, Send) and op.rail is not None:
            found[op.peer, op.rail] += _packets(op, program.path_mtu)
    return found


def _packets(send: Send, path_mtu: int) -> int:
    return max(1, -(-send.piece.size_bytes // path_mtu))


def _iteration_ns(program: Program, rates_pps: Mapping[tuple[int, int | None], float], tick_ns: int) -> float:
    """Return the minimum duration of a rank's iteration, assuming that its peers progress in step with it."""
    done: list[float] = []
    free: dict[object, float] = {}  # when a NIC or a stream becomes idle
    for op in program.ops:
        ready = _latest(done[each] for each in op.after)
        if isinstance(op, Spend):
            ready = free[op.stream] = max(ready, free.get(op.stream, 0.0)) + op.ns
        elif isinstance(op, Send):
            if op.rail is not None:
                took = _packets(op, program.path_mtu) * 1e9 / rates_pps[program.rank, op.rail]
                ready = free[op.rail] = max(ready, free.get(op.rail, 0.0)) + took
        else:
            ready += tick_ns / 2  # a worker polls for arrivals once a tick
        done.append(ready)
    return _latest(done)


def _latest(times: Iterable[float]) -> float:
    return max(times, default=0.0)
