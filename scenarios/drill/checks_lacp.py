"""Check that a detection which only LACP can make is not expected sooner than its timers run out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.failover.faults import PlannedFault
from hpn.failover.faults.base import SwitchPart, VisibleTo
from hpn.failover.faults.streams import Frames
from hpn.scenarios.drill.parts import Found, Parts
from hpn.scenarios.expect.phases import DETECT
from hpn.scenarios.expect.selection import At
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.spec import LACP_PERIOD_MS, LacpRate, LacpSpec
from hpn.testbed.files.check import dotted
from hpn.testbed.files.units import format_duration

_MS = 10**6
_SLACK_NS = 500 * _MS
"""More than a LACPDU is early or late by (802.1AX 6.4.4: a timer is exact to 250 ms)."""


def lacp_problems(parts: Parts) -> Found:
    """Yield upper limits on detection below the time in which LACP, which alone notices, can miss three LACPDUs."""
    if parts.fabric is None or not parts.faults_complete:
        return
    fabric = parts.fabric
    silent = [planned for planned, _ in parts.faults if _only_lacp_notices(planned, fabric)]
    for expectation, where in parts.expectations:
        met = [planned for planned in silent if expectation.fault in {None, planned.id}]
        is_detection = expectation.metric is DETECT and expectation.bound.is_upper and expectation.edge is not At.REPAIR
        if not met or not is_detection:
            continue
        asked = _asked(met, fabric)
        soonest_ns = _soonest_ns(asked)
        if expectation.limit < soonest_ns:
            text = f"{dotted(where)} is {expectation.limit_text}, but only LACP notices {met[0].id}, and with LACP"
            told = f"{' and '.join(asked)} not before {format_duration(soonest_ns)}"
            late = format_duration(3 * max(map(_period_ns, asked)))
            yield where, f"{text} {told}; {_way_out(fabric.spec.lacp)}, or write {late}"


def _asked(met: Sequence[PlannedFault], fabric: Fabric) -> list[LacpRate]:
    """Return the rates that the hosts hit ask for, and the ToRs' last."""
    nics = {fabric.nic_of_link(link.name).name for planned in met for link in planned.fault.links_hit(fabric)}
    hosts = (fabric.bonding(fabric.nic(name)).lacp_rate for name in sorted(nics))
    return list(dict.fromkeys((*hosts, fabric.spec.lacp.rate)))


def _way_out(lacp: LacpSpec) -> str:
    slow = [key for key, rate in (("rate", lacp.rate), ("host_rate", lacp.hosts_ask)) if rate == "slow"]
    return f"write lacp: {{{', '.join(f'{key}: fast' for key in slow)}}}" if slow else "leave it out"


def _only_lacp_notices(planned: PlannedFault, fabric: Fabric) -> bool:
    """Return True if LACPDUs of access links are lost and nobody is told; a ToR that fails to ask by ARP is no sign."""
    fault = planned.fault
    is_silent = fault.TELLS is VisibleTo.NOBODY and fault.PART is SwitchPart.NONE
    loses_lacp = any(frames is Frames.LACP for _, frames in fault.silences())
    return is_silent and loses_lacp and all(link.kind is LinkKind.ACCESS for link in fault.links_hit(fabric))


def _soonest_ns(asked: Sequence[LacpRate]) -> int:
    """Return the time from the last LACPDU but one to the end of the shorter timeout: two periods."""
    return 2 * min(map(_period_ns, asked)) - _SLACK_NS


def _period_ns(rate: LacpRate) -> int:
    return LACP_PERIOD_MS[rate] * _MS
