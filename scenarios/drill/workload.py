"""Workload of a drill on a fabric: the flows of its pattern and their requirements. Pure, and without numpy."""

from __future__ import annotations

from hpn.scenarios.drill.job import plan_of
from hpn.scenarios.drill.model import Drill, Workload
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.framing import ETHERNET_BYTES, wire_bytes
from hpn.traffic.flows.patterns import flows_for


def mtu_needed(path_mtu: int) -> int:
    """Return the interface MTU that data packets of that path MTU need: IP to ICRC."""
    return wire_bytes(path_mtu) - ETHERNET_BYTES


def flows_of(workload: Workload, fabric: Fabric) -> tuple[FlowSpec, ...]:
    """Return the flows of the workload. InputError when the pattern does not fit the fabric."""
    flows = flows_for(
        fabric,
        workload.pattern,
        load=workload.load,
        queue_pairs=workload.queue_pairs,
        path_mtu=workload.payload_bytes or workload.path_mtu,
        seed=workload.seed,
        across_segments=workload.across_segments,
        ib_timeout=workload.ib_timeout,
        retry_count=workload.retry_count,
        size_bytes=workload.size_bytes,
        every_ns=workload.every_ns,
    )
    return tuple(flows)


def queue_pairs_of(drill: Drill, fabric: Fabric) -> tuple[FlowSpec, ...]:
    """Return the flows of a drill's workload, or the queue pairs of its job. InputError when they do not fit."""
    if drill.job is not None:
        return plan_of(drill.job, fabric).flows
    return flows_of(drill.workload, fabric) if drill.streams else ()


def packet_period_ns(flows: tuple[FlowSpec, ...]) -> int:
    """Return the packet interval of the slowest queue pair in ns: the finest outage visible in all of them."""
    return max((round(1e9 / flow.rate_pps) for flow in flows), default=0)
