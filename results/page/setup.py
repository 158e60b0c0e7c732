"""Fabric and traffic of a run, as two sentences at the head of its page. Pure.

Changes when a reader has to know something more of fabric or traffic before any figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hpn.failover.analysis.phrases import many
from hpn.results.page.names import ROLES
from hpn.results.run.drill import AskedDrill
from hpn.testbed.fabric.buffers import lossless_priorities
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.fabric.spec import FabricSpec, LacpSpec
from hpn.testbed.fabric.switch_spec import SwitchSpec


def fabric_line(fabric: Fabric | None) -> str:
    """Return 'mine (hpn): 2 segments of 6 hosts, ...; BFD 100 ms x 3'; '' if the folder lacks the fabric."""
    return "" if fabric is None else f"{fabric.spec.name} ({fabric.spec.architecture}): {'; '.join(_parts(fabric))}"


def traffic_line(drill: AskedDrill | None) -> str:
    """Return the senders in the drill's words."""
    return "" if drill is None else "; ".join(drill.traffic)


def _parts(fabric: Fabric) -> Iterator[str]:
    spec = fabric.spec
    yield ", ".join(_size(fabric))
    ports = _rate(max(link.rate_bps for nic in fabric.nics for link in nic.links) * spec.scale)
    yield f"NIC ports of {ports}, uplinks of {_rate(spec.uplink_rate)}, emulated at 1:{spec.scale:,}"
    if spec.switch is not None:
        yield f"switches with {spec.switch.buffer / 1e6:g} MB of buffer, {_pfc(spec.switch)}"
    bgp = spec.bgp
    own = len({nic.host for nic in fabric.nics if nic.bonding is not None})
    hosts = f"{spec.profile} hosts, {_lacp(spec.lacp)}"
    if own:
        hosts += f" ({many(own, 'host')} by configurations of their own)"
    yield f"{hosts}, BGP by {bgp.daemon}, hold time {bgp.hold_s} s, {_bfd(spec)}"


def _size(fabric: Fabric) -> Iterator[str]:
    if fabric.pods > 1:
        yield many(fabric.pods, "pod")
    yield f"{many(fabric.segments, 'segment')} of {many(fabric.hosts_of_a_segment, 'host')}"
    yield many(fabric.rails, "rail")
    yield many(fabric.planes, "plane")
    roles = Counter(node.role for node in fabric.nodes)
    yield from (many(roles[role], name) for role, name in ROLES.items() if roles[role] and role is not Role.HOST)


def _pfc(switch: SwitchSpec) -> str:
    priorities = lossless_priorities(switch)
    named = "priority" if len(priorities) == 1 else "priorities"
    return f"PFC on {named} {' and '.join(map(str, priorities))}" if priorities else "no PFC"


def _rate(bps: int) -> str:
    return f"{bps / 1e9:g} Gbit/s"


def _lacp(lacp: LacpSpec) -> str:
    rate = f"LACP {lacp.rate}" if lacp.hosts_ask == lacp.rate else f"LACP {lacp.hosts_ask} (ToRs: {lacp.rate})"
    return rate if lacp.miimon_ms is None else f"{rate}, miimon {lacp.miimon_ms} ms"


def _bfd(spec: FabricSpec) -> str:
    bfd = spec.bgp.bfd
    return "no BFD" if bfd is None else f"BFD {bfd.interval_ms} ms x {bfd.multiplier}"
