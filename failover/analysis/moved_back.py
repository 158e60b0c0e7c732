"""Check that path control moved only queue pairs that had to move, and that exactly these reverted. Pure.

It reads only the timeline: the ToRs' reports about destinations, changes of LAGs, and every move. Changes when path
control gets another reason to move a queue pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hpn.testbed.events import Event, EventKind
from hpn.testbed.routing.pathcontrol.actions import REBOUND, STUCK
from hpn.testbed.routing.pathcontrol.message import LIFETIME_REFRESHES
from hpn.traffic.flows.flow import FlowSpec

_MS = 1_000_000
_SLACK_NS = 50 * _MS
"""Delay allowed before a queue pair reverts: it does so at its agent's next check, in bursts of 128 per millisecond."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A change by an event: its name, and the details with the value before and after."""

    name: str
    before: str
    after: str


_CHANGED = {"moved": _Change("source port", "old_sport", "sport"), REBOUND: _Change("port", "from_port", "to_port")}

_Moved = tuple[str, int]
"""Event that moved a connection, 'moved' or 'rebound', and the connection."""


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections that are moved: a queue pair's data has twice the flow's id, its acknowledgements one more.

    ``gone``: flows that were closed or have died, which never revert.
    """

    flows: Mapping[int, FlowSpec]
    lags: Mapping[tuple[str, str], str]  # host and LAG interface to NIC
    refresh_ms: int
    gone: Collection[int] = ()

    def nic(self, connection: int) -> str:
        """Return the NIC whose agent moves it."""
        flow, is_ack = divmod(connection, 2)
        return self.flows[flow].dst_nic if is_ack else self.flows[flow].src_nic

    def name(self, connection: int) -> str:
        """Return the connection's name in messages."""
        flow, is_ack = divmod(connection, 2)
        return f"{self.flows[flow].name}{' (acknowledgements)' if is_ack else ''}"


@dataclass(slots=True)
class _Known:
    """State of an agent's knowledge at some moment."""

    lost: dict[tuple[str, str], set[str]] = field(default_factory=dict)  # host and destination: ports
    held_until: dict[tuple[str, str], int] = field(default_factory=dict)
    lag_at: dict[str, int] = field(default_factory=dict)  # NIC: the last change of its LAG
    home: dict[_Moved, str | int | float] = field(default_factory=dict)  # its source port, or port, on a healthy lab
    now: dict[_Moved, Event] = field(default_factory=dict)  # its last move


def strays(events: Iterable[Event], connections: Connections, end_ns: int) -> tuple[str, ...]:
    """Return errors of path control, one line each: a move without a reason, a failed move, a queue pair not reverted.

    A queue pair may leave when its ToR reports the destination lost behind the port in use. It may also leave when its
    own NIC's LAG has changed: a returned port is in doubt until its ToR reports. It may revert at any time. ``events``
    in order of arrival.
    """
    known = _Known()
    doubt_ns = LIFETIME_REFRESHES * connections.refresh_ms * _MS + _SLACK_NS
    found = [text for event in events for text in _follow(event, known, connections, doubt_ns)]
    away = _away(known, connections, doubt_ns, end_ns)
    return (*found, *away)


def _follow(event: Event, known: _Known, connections: Connections, doubt_ns: int) -> Iterator[str]:
    """Apply one event; yield what is wrong with it if it is a move."""
    if event.kind is EventKind.LAG:
        nic = connections.lags.get((event.node, event.subject))
        if nic is not None:
            known.lag_at[nic] = event.at_ns
    if event.kind is not EventKind.PATH:
        return
    about = event.node, event.subject
    if event.what == "unreachable":
        known.lost.setdefault(about, set()).add(str(event.detail["port"]))
        known.held_until.pop(about, None)
    elif event.what == "reachable":
        known.lost.get(about, set()).discard(str(event.detail["port"]))
        known.held_until[about] = event.at_ns
    elif event.what == "held":
        known.held_until[about] = event.at_ns + int(float(event.detail["ms"]) * _MS)
    elif event.what == "rehomed":
        number = int(event.subject) if event.subject.isdecimal() else -1
        known.home["moved", number] = int(event.detail["sport"])
        known.now.pop(("moved", number), None)
    elif event.what == STUCK and _flow_of(event) in connections.flows:
        yield from _stuck(event, connections)
    elif event.what in _CHANGED and _flow_of(event) in connections.flows:
        yield from _moved(event, known, connections, doubt_ns)


def _stuck(event: Event, connections: Connections) -> Iterator[str]:
    """Yield the error of a queue pair that no source port helps; one that its adapter binds was not to be helped."""
    if event.detail["tries"]:
        yield (
            f"queue pair {connections.name(int(event.subject))} stays on {event.detail['port']}, where its destination"
            f" is lost: no source port of {event.detail['tries']} leads to a port that works"
        )


def _flow_of(event: Event) -> int:
    """Return the flow of a moved connection; -1 if the subject is not a number, as in a manipulated record."""
    return int(event.subject) // 2 if event.subject.isdecimal() else -1


def _moved(event: Event, known: _Known, connections: Connections, doubt_ns: int) -> Iterator[str]:
    number, detail = int(event.subject), event.detail
    changed = _CHANGED[event.what]
    home = known.home.setdefault((event.what, number), detail[changed.before])
    known.now[event.what, number] = event
    lost = known.lost.get((event.node, str(detail["dst"])), set())
    changed_ns = known.lag_at.get(connections.nic(number))
    doubted = changed_ns is not None and event.at_ns - changed_ns <= doubt_ns
    if detail[changed.after] != home and detail["from_port"] not in lost and not doubted:
        yield (
            f"queue pair {connections.name(number)} left {detail['from_port']} for {detail['to_port']}, {changed.name}"
            f" {detail[changed.before]} to {detail[changed.after]}, though its destination was not lost"
        )


def _away(known: _Known, connections: Connections, doubt_ns: int, end_ns: int) -> Iterator[str]:
    """Yield queue pairs that did not revert though nothing prevents it."""
    for (what, number), event in known.now.items():
        about = event.node, str(event.detail["dst"])
        changed_ns = known.lag_at.get(connections.nic(number))
        doubted = changed_ns is not None and end_ns - changed_ns <= doubt_ns
        held = known.held_until.get(about, 0) + _SLACK_NS > end_ns
        excused = doubted or held or known.lost.get(about) or number // 2 in connections.gone
        changed = _CHANGED[what]
        if event.detail[changed.after] != known.home[what, number] and not excused:
            yield (
                f"queue pair {connections.name(number)} moved at a failure and did not return: {changed.name}"
                f" {event.detail[changed.after]} at the end, {known.home[what, number]} before"
            )
