"""Check that a drill's fabric has the ports and buffers that its expectations are about; called by ``drill.checks``."""

from __future__ import annotations

from hpn.failover.analysis.port_sampling import Sampling, watched
from hpn.scenarios.expect.expectation import Expectation
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.units import format_duration

MOST_READINGS = 4_000_000
"""Maximum number of readings of all ports in one run: 190 MB of memory."""

_MS = 10**6


def expectation_problem(expectation: Expectation, fabric: Fabric, sample: Sampling | None) -> str:
    """Return why an expectation of ports can never be judged, with the solution, or '' if it can."""
    if expectation.metric.needs.buffers and fabric.spec.switch is None:
        return "the topology has no switch:; write topology: {preset: NAME, switch: {buffer: 2 MB}}"
    if not expectation.metric.needs.samples:
        return ""
    if sample is None:
        return "nothing is sampled; add sample: {queues: 10 ms}"
    if expectation.metric.needs.two_ports and all(len(nic.links) < 2 for nic in fabric.nics):
        return "every NIC has one port; take a dual-ToR architecture, or remove the expectation"
    return ""


def period_problem(fabric: Fabric, sample: Sampling, end_ns: int) -> str:
    """Return why there are too many readings, with the solution, or ''."""
    ports = len(watched(fabric, sample.ports))
    readings = ports * (end_ns // sample.period_ns + 1)
    if readings <= MOST_READINGS:
        return ""
    least_ns = -(-end_ns * ports // (MOST_READINGS - ports) // _MS) * _MS
    way_out = f"write {format_duration(least_ns)} or more, or a shorter timeline"
    return f"makes {readings:,} readings of {ports} ports, at most {MOST_READINGS:,} fit; {way_out}"
