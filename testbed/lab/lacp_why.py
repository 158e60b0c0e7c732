"""Reasons for an idle port, derived from LACP: shown by ``hpn inspect lacp`` and a failing ``up``. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hpn.testbed.fabric.model import Fabric
from hpn.testbed.lag.lacpdu import PortInfo, PortState
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Mux, Rx, Selected


def why_idle(fabric: Fabric, port: PortStatus, system: Sequence[PortStatus], condition: str = "") -> str:
    """Explain in one clause, '' if the port distributes. ``system``: the LAG's ports, ``condition``: the ToR's."""
    if port.mux is Mux.COLLECTING_DISTRIBUTING:
        return ""
    if not port.enabled:
        return "no carrier"
    if port.rx is not Rx.CURRENT:
        return "hears no LACPDU"
    if port.selected is Selected.STANDBY:
        return _refused(fabric, port, system, condition)
    if PortState.SYNCHRONIZATION not in port.partner.state:
        return f"{_who(fabric, port.partner)} is not in synchronization"
    return "waits for other ports to join"


def _refused(fabric: Fabric, port: PortStatus, system: Sequence[PortStatus], condition: str) -> str:
    held = next((other for other in system if other.selected is Selected.SELECTED and other is not port), None)
    if held is None:
        return f"the ToR holds it back: {condition}" if condition else "not selected"
    if PortState.AGGREGATION not in port.partner.state:
        return f"{_who(fabric, port.partner)} refuses aggregation"
    for name in ("system", "system_priority", "key"):
        ours, theirs = getattr(held.partner, name), getattr(port.partner, name)
        if ours != theirs:
            told = f"partner {name.replace('_', ' ')} {theirs} of {_who(fabric, port.partner)}"
            return f"{told}; the LAG has {ours} of {_who(fabric, held.partner)}"
    return f"{_who(fabric, held.partner)} refuses aggregation"


def _who(fabric: Fabric, partner: PortInfo) -> str:
    """Return the ToR port with this LACP identity; for a NIC or an unknown port, its system ID."""
    port = fabric.tor_port_by_lacp.get((partner.system, partner.key, partner.port))
    return partner.system if port is None else port.label
