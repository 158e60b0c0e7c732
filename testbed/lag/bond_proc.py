"""LACP status from /proc/net/bonding, in the same form as our own speaker's.

Pure. The driver shows both ends' parameters but not the states of its machines, which follow from the state octets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpn.testbed.lag.bond import mux_state, receive_state
from hpn.testbed.lag.lacpdu import PortInfo, PortState
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.lag.states import Selected

_ACTOR, _PARTNER = "details actor lacp pdu", "details partner lacp pdu"
_NO_SYSTEM = "00:00:00:00:00:00"


def parse(text: str) -> tuple[PortStatus, ...]:
    """Return every member port, in the driver's order. Without CAP_NET_ADMIN the driver omits both ends: zeros."""
    head, *members = text.split("\nSlave Interface: ")
    active = _fields(head).get("Active Aggregator Info/Aggregator ID", "")
    return tuple(_member(member, active) for member in members)


def _member(text: str, active: str) -> PortStatus:
    name, _, rest = text.partition("\n")
    fields = _fields(rest)
    actor, partner = _end(fields, _ACTOR, "port key"), _end(fields, _PARTNER, "oper key")
    up = fields.get("MII Status") == "up"
    ours = fields.get("Aggregator ID") == active
    return PortStatus(
        name=name.strip(),
        enabled=up,
        actor=actor,
        partner=partner,
        rx=receive_state(up, actor.state),
        mux=mux_state(ours, actor.state),
        selected=Selected.SELECTED if ours else Selected.STANDBY,
    )


def _end(fields: Mapping[str, str], section: str, key: str) -> PortInfo:
    def number(name: str) -> int:
        return int(fields.get(f"{section}/{name}", "0"))

    return PortInfo(
        system_priority=number("system priority"),
        system=fields.get(f"{section}/system mac address", _NO_SYSTEM),
        key=number(key),
        port_priority=number("port priority"),
        port=number("port number"),
        state=PortState(number("port state")),
    )


def _fields(text: str) -> dict[str, str]:
    return dict(_lines(text))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each 'name: value'; those indented below a title as 'title/name'."""
    title = ""
    for line in text.splitlines():
        name, colon, value = line.strip().partition(":")
        if not colon:
            continue
        indented = line[0].isspace()
        if not value.strip() and not indented:
            title = name
        yield (f"{title}/{name}" if indented else name), value.strip()
