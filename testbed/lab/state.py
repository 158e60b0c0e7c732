"""The state of a lab that a drill must restore: carrier, LACP, steering, BGP, every switch's routes."""

from __future__ import annotations

from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_LOCAL, RT_TABLE_MAIN
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.srv6_state import actual_tables
from hpn.testbed.lag.affinity import Affinity
from hpn.testbed.lag.steering import Steering

State = dict[str, str]
NOT_STEERED = "nothing"
NOT_BOUND = "none bound, each port by itself"


def state(lab: Lab) -> State:
    """Return the current state, one entry per part; equal states mean equal labs."""
    found: State = {}
    for link in lab.fabric.links:
        found[f"link {link.name}"] = "up" if lab.link_up(link.name) else "down"
        if link.is_routed:
            for end in (link.lower, link.upper):
                up = end.name in lab.bgp[end.node].established
                found[f"BGP session {end.label}"] = "established" if up else "down"
    for nic in lab.nics.values():
        found[f"LAG {nic.nic.name}"] = f"active ports {nic.active}"
        if nic.steering is not None:
            found[f"steering of {nic.nic.name}"] = steered(nic.steering)
        if nic.adapter is not None:
            found[f"queue pairs of {nic.nic.name}"] = bound(nic.adapter.affinity)
    found |= lab.breakage.standing() | actual_tables(lab)
    ports = {end.ifindex: end.name for link in lab.fabric.links for end in (link.lower, link.upper)}
    for node in lab.fabric.switches:
        for route in lab.requests(node.name).routes():
            if route.table != RT_TABLE_LOCAL:
                table = "" if route.table == RT_TABLE_MAIN else f" in table {route.table}"
                key = f"route {route.prefix}{table} on {node.name}"
                found[key] = f"kind {route.kind} via {' '.join(sorted(ports.get(oif, str(oif)) for oif in route.oifs))}"
    return found


def steered(steering: Steering) -> str:
    """Describe a NIC's steering in the kernel."""
    words = (f"{ip} from {start} to {end}" for (start, ip), end in sorted(steering.standing().items()))
    return ", ".join(words) or NOT_STEERED


def bound(affinity: Affinity) -> str:
    """Describe a NIC's bindings in the kernel."""
    words = [f"{ip} from {sport} by {port}" for (ip, sport), port in sorted(affinity.standing().items())]
    moved = [f"{port} by {used}" for port, used in affinity.instead.items() if port != used]
    return ", ".join([*words, *moved]) or NOT_BOUND


def differences(before: State, after: State) -> tuple[str, ...]:
    """Return the differences, one line each; empty when there are none."""
    lines = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key, "absent"), after.get(key, "absent")
        if was != now:
            lines.append(f"{key}: was {was}, now {now}")
    return tuple(lines)
