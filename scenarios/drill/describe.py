"""Description of a drill as text, as ``hpn drill show`` prints it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.analysis.phrases import plain
from hpn.failover.analysis.port_sampling import Ports, Sampling
from hpn.failover.faults import Fault, Parameter, PlannedFault, Unit, VisibleTo, parameters
from hpn.scenarios.drill.job import JobSpec, Work, plan_of
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import flows_of, packet_period_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.profiles import LAB
from hpn.testbed.files.units import format_duration, format_percent, format_size
from hpn.testbed.routing.pathcontrol.policies import DEFAULT
from hpn.traffic.client.client import Client
from hpn.traffic.client.ranks import PER_NIC, ranks_of
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.jobengine.rehash import RehashPolicy
from hpn.traffic.multipath.settings import Multipath

_OTHER_FABRIC = "This text is about the drill's own fabric; its counts and figures are not those of the fabric below."
_FITS = "{load} of a NIC fits {left} of its {ports} ports: the loss of one port costs no goodput"
_ONE_PORT = "a connection of 1 queue pair uses 1 of a NIC's {ports} ports; 'queue_pairs: {ports}' can use all"


def describe(drill: Drill) -> list[str]:
    """Return lines of text: summary, fabric, traffic, timeline, expectations."""
    fabric = build(drill.topology)
    lines = [f"{drill.name}: {drill.summary}", ""]
    lines += [*_description(drill), ""] if drill.description else []
    lines += [f"file      {drill.source}"]
    lines += [f"fabric    {_fabric(fabric)}", *(f"          {line}" for line in put_elsewhere(drill))]
    lines += [*(f"traffic   {line}" for line in traffic_in_words(drill, fabric))]
    lines += [f"samples   {_sample(drill.sample)}"] if drill.sample else []
    lines += [f"captures  {drill.captures.text}"] if drill.captures else []
    lines += [f"locates   {drill.locating.text}"] if drill.locating else []
    lines += [f"late      a packet that takes longer than {format_duration(drill.delay_threshold_ns)}"]
    lines += ["timeline"]
    lines += [f"  {format_duration(at_ns):>8}  {what}" for at_ns, what in _timeline(drill)]
    return [*lines, "expects", *(f"  {expectation.text}" for expectation in drill.expectations)]


def _description(drill: Drill) -> list[str]:
    """Return the description; on another fabric, after a line that its text is about the drill's own."""
    text = drill.description.splitlines()
    if drill.other_fabric is None:
        return text
    return [_OTHER_FABRIC, "", *text]


def put_elsewhere(drill: Drill) -> tuple[str, ...]:
    """Return the adaptations of a drill to a fabric that is not its own, as lines; empty on its own fabric."""
    other = drill.other_fabric
    if other is None:
        return ()
    there = other.topology
    hosts = "" if there.profile == LAB else f" with {there.profile} hosts"
    return (f"run on {there.name} ({there.architecture}){hosts}, not on its own fabric", *other.notes)


def _fabric(fabric: Fabric) -> str:
    roles = Counter(node.role.value for node in fabric.nodes)
    nodes = ", ".join(f"{n} {role}{'s' if n > 1 else ''}" for role, n in roles.items())
    policy = fabric.spec.path_control.chosen.name
    control = "" if fabric.planes == 1 else f", path control {'on' if policy == DEFAULT else policy}"
    return f"{fabric.spec.name} ({fabric.spec.architecture}): {nodes}, {len(fabric.links)} links{control}"


def traffic_in_words(drill: Drill, fabric: Fabric) -> list[str]:
    """Return the traffic as lines: job, client and streams."""
    client = [] if drill.client is None else _client(drill.client, fabric)
    if drill.job is not None:
        return [*_job(drill.job, fabric), *client]
    return [*client, *(_streams(drill, fabric) if drill.streams else ())]


def _client(client: Client, fabric: Fabric) -> list[str]:
    ranks = ranks_of(fabric, client.ranks, client.per, client.rail)
    at = "NIC" if client.per == PER_NIC else "host"
    limit = format_duration(client.deadline)
    return [f"client {client.KEY} ({client.SUMMARY}): {len(ranks)} ranks, one a {at}; ready within {limit}"]


def _streams(drill: Drill, fabric: Fabric) -> list[str]:
    workload, flows = drill.workload, flows_of(drill.workload, fabric)
    total = sum(flow.goodput_bps for flow in flows) / 1e6
    deadly_ns = 4096 * 2**workload.ib_timeout * (workload.retry_count + 1)
    period_ms = packet_period_ns(flows) / 1e6
    load = format_percent(workload.load)
    ports = min((len(fabric.nic(flow.src_nic).links) for flow in flows), default=1)
    return [
        f"{workload.pattern}: {len(flows)} queue pairs, {load} of every NIC, {total:.0f} Mbit/s,"
        f" source ports {workload.source_ports}{'' if workload.path_control else ', unknown to path control'}",
        *_transfers(flows),
        *([_FITS.format(load=load, left=ports - 1, ports=ports)] if _fits(flows, workload.load, ports) else []),
        f"one packet every {plain(period_ms)} ms per queue pair: no shorter outage can be seen",
        f"a queue pair dies after {deadly_ns / 1e9:.3g} s without an acknowledgement (timeout {workload.ib_timeout},"
        f" {workload.retry_count} retries)",
    ]


def _fits(flows: Sequence[FlowSpec], load: float, ports: int) -> bool:
    """Return True if what any NIC sends or receives fits the ports that are left when it loses one."""
    sent, received = Counter[str](), Counter[str]()
    for flow in flows:
        sent[flow.src_nic] += round(flow.goodput_bps)
        received[flow.dst_nic] += round(flow.goodput_bps)
    if ports < 2 or not sent:
        return False
    return load * max(*sent.values(), *received.values()) / max(sent.values()) * ports <= ports - 1


def _job(job: JobSpec, fabric: Fabric) -> list[str]:
    plan = plan_of(job, fabric)
    patience_s = job.transport.patience_ns / 1e9
    ports = max((len(fabric.nic(pair.flow.src_nic).links) for pair in plan.queue_pairs), default=1)
    lone = job.queue_pairs == 1 and job.spray == 1 and job.multipath is None and ports > 1
    return [
        f"a job of {len(plan.programs) - len(plan.background)} GPUs, again and again: {_work(job.work)}",
        f"{len(plan.queue_pairs)} queue pairs ({job.queue_pairs} a connection), {job.recovery},"
        f" congestion control {job.congestion_name}, source ports {job.source_ports}{_less_usual(job)}",
        f"a queue pair dies after {patience_s:.3g} s without an acknowledgement (timer {job.retry_timer},"
        f" timeout {job.ib_timeout}, {job.retry_count} retries), and the job with it",
        *([_ONE_PORT.format(ports=ports)] if lone else []),
        *_spray(job),
        *_multipath(job.multipath),
        *_rehash(job.rehash),
        *_restart(job.restart),
    ]


def _less_usual(job: JobSpec) -> str:
    """Return the order of hosts and the window where they are not the defaults."""
    usual = JobSpec(job.work)
    order = f", hosts {job.order}" if job.order != usual.order else ""
    window = f", a window of {job.window_packets} packets" if job.window_packets != usual.window_packets else ""
    return order + window


def _spray(job: JobSpec) -> Iterator[str]:
    if job.reorder_packets:
        ports = f"up to {job.spray} source ports in turn" if job.spray > 1 else "the paths that switches choose"
        yield (
            f"the packets of a queue pair take {ports}; one counts as missing when more"
            f" than {job.reorder_packets} have overtaken it"
        )


def _multipath(settings: Multipath | None) -> Iterator[str]:
    if settings is not None:
        trims = "" if settings.trimmed_dscp is None else "; a packet that a switch trimmed goes again by another one"
        yield (
            f"each packet takes the next of {settings.paths} paths; one that lost {settings.deny_after} in a row is"
            f" denied, and probed every {format_duration(settings.probe_interval_ns)}{trims}"
        )


def _rehash(policy: RehashPolicy | None) -> Iterator[str]:
    if policy is not None:
        idle = f", or after {policy.idle_rounds} when it is idle" if policy.idle_rounds else ""
        yield (
            f"a queue pair draws another source port after {policy.rounds} rounds in a row with"
            f" {format_percent(policy.share)} of the packets marked{idle}, and after a retry timeout"
        )


def _restart(policy: RestartPolicy | None) -> Iterator[str]:
    if policy is not None:
        every = f"one after every {policy.checkpoint_every} iterations"
        yield f"it is started again {format_duration(policy.after_ns)} later, from its last checkpoint, {every}"
        if policy.watchdog_ns is not None:
            yield f"its watchdog ends it when one of its NICs got no packet for {format_duration(policy.watchdog_ns)}"


def _work(work: Work) -> str:
    """Return the work of the ranks as text, with the fields that differ from their defaults."""
    said = [
        _field(field.name, getattr(work, field.name))
        for field in fields(work)
        if getattr(work, field.name) != field.default
    ]
    return f"{work.KEY} {', '.join(said)}"


def _field(name: str, value: object) -> str:
    """Return a field and its value in the unit of its name: 'compute 120 ms', 'data_size 2 MB'."""
    if isinstance(value, int) and name.endswith("_ns"):
        return f"{name.removesuffix('_ns')} {format_duration(value)}"
    if isinstance(value, int) and name.endswith("_bytes"):
        what = name.removesuffix("_bytes")
        return f"{what if what == 'size' else f'{what}_size'} {format_size(value)}"
    return f"{'among' if name == 'grouping' else name} {_shown(value)}"


def _shown(value: object) -> str:
    """Return a value as text, or the number of values if there are many."""
    return f"{len(value)} of them" if isinstance(value, tuple) and len(value) > 1 else str(value)


def _transfers(flows: Sequence[FlowSpec]) -> Iterator[str]:
    """Yield each distinct plan of transfers: size in whole packets, duration and period."""
    plans = {(flow.transfers, flow.sending_ns, flow.path_mtu) for flow in flows}
    for plan, sending_ns, path_mtu in sorted(plans, key=lambda found: found[1]):
        if plan is not None:
            size, every = format_size(plan.packets * path_mtu), format_duration(plan.every_ns)
            text = f"{size} ({plan.packets} packets) on each queue pair in {plain(sending_ns / 1e6)} ms, every {every}"
            yield f"{text}, all together; rates are those while they send"


def _sample(sample: Sampling) -> str:
    which = {Ports.TOR_DOWN: "ports of ToRs towards NICs", Ports.SWITCHES: "ports of all switches"}[sample.ports]
    return f"loads and queues of the {which}, every {format_duration(sample.period_ns)}"


def fault_in_words(fault: Fault) -> str:
    """Return a fault with its target and parameters: 'link-delay p0.s0.h0.r0.0 (by 5 ms, carrier stays)'."""
    words = [f"{p.key} {_value(p, getattr(fault, name))}" for name, p in parameters(type(fault)).items()]
    if fault.TELLS is not VisibleTo.CARRIER:
        words.append("carrier stays")
    return f"{fault.KIND} {fault.target}" + (f" ({', '.join(words)})" if words else "")


_NAMES = {"tor": "ToR", "agg": "Agg", "nic": "NIC", "bgp": "BGP", "lacp": "LACP", "arp": "ARP"}


def fault_named(planned: PlannedFault) -> str:
    """Return the start of a sentence for a planned fault: 'ToR crash of p0.s0.t0.0 for 2 s'."""
    fault = planned.fault
    kind = " ".join(_NAMES.get(word, word) for word in fault.KIND.split("-"))
    of = f" of {fault.target}" if fault.target else ""
    words = [f"{p.key} {_value(p, getattr(fault, name))}" for name, p in parameters(type(fault)).items()]
    lasts = "" if planned.for_ns is None else f" for {format_duration(planned.for_ns)}"
    with_ = f" ({', '.join(words)})" if words else ""
    return f"{kind}{of}{with_}{lasts}"


def _value(p: Parameter, value: float) -> str:
    match p.unit:
        case Unit.DURATION:
            return format_duration(int(value))
        case Unit.PERCENT:
            return format_percent(value)
    return str(value)


def _timeline(drill: Drill) -> list[tuple[int, str]]:
    timeline = drill.timeline
    found = [(0, "traffic starts; healthy phase")]
    for planned in timeline.faults:
        for edge in planned.edges:
            what = fault_in_words(edge.part or planned.fault)
            repaired = f"{what} repaired" if edge.part is not None else "repaired"
            if edge.part is not None and edge.part.takes_over is not None:
                host, spare = edge.part.takes_over
                repaired = f"{spare} takes over from {host}"
            found.append((edge.at_ns, f"{planned.id}: {what if edge.kind is EdgeKind.FAILURE else repaired}"))
    validation = format_duration(drill.profile.validation_ns)
    found.append(
        (timeline.end_ns, f"traffic ends ({drill.profile} profile: recovered means {validation} without loss)")
    )
    return sorted(found, key=lambda item: item[0])
