"""The lab's timeline record: events with their place and time, on one clock (DESIGN rule 6)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class EventKind(StrEnum):
    """Source of an event within the lab."""

    LINK = "link"  # kernel link state: carrier-up, carrier-down, admin-up, admin-down
    LACP = "lacp"  # a machine's new state (testbed.lag.states), or partner-changed
    LAG = "lag"  # a host's LAG datapath was rewritten: active (detail: ports; late_ms, early_ms where at_ns may be off)
    # and remapped: its adapter sends by another port what is bound to one
    NEIGHBOUR = "neighbour"  # a ToR learned or lost a host: learned, lost
    ROUTE = "route"  # a switch's kernel FIB: host-route-added, host-route-removed; short: of next hops, once converged
    BGP = "bgp"  # a session: established, down
    BFD = "bfd"  # beside a BGP session: up, down, removed (it ended with its BGP session)
    PATH = "path"  # host-switch path control: unreachable, reachable, held, moved, rebound, stuck
    FAULT = "fault"  # the injector: inject, injected, restore, restored, healed
    DAEMON = "daemon"  # a daemon: started, died; of a stack: shut-down, returned, took-over
    LOCATE = "locate"  # a drill that locates: accused, acquitted, drained, left, returned
    PHASE = "phase"  # the drill: starting ..., converged, healthy, analysing
    QP = "qp"  # a queue pair: error
    JOB = "job"  # of ranks: died, restarted
    CLIENT = "client"  # a process of a client: ready, said, misread, error, ended


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline.

    ``at_ns`` is CLOCK_MONOTONIC in nanoseconds, taken as near to the cause as the source allows (kernel
    events: on receipt of the netlink message). ``subject`` is what it is about: a port, prefix or fault id.
    """

    at_ns: int
    kind: EventKind
    node: str
    subject: str
    what: str
    detail: Mapping[str, str | int | float] = field(default_factory=dict)


EventSink = Callable[[Event], None]


def now_ns() -> int:
    """Return the time on the lab's one clock: CLOCK_MONOTONIC, nanoseconds."""
    return time.monotonic_ns()
