"""Actions that a path control agent requests; the agents themselves are pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Send:
    """Send ``payload`` at interface ``port``."""

    port: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Move:
    """Change a connection's UDP source port to one that the LAG sends through ``to_port``."""

    connection: int
    dst_ip: str
    old_sport: int
    sport: int
    from_port: str
    to_port: str


@dataclass(frozen=True, slots=True)
class Rebind:
    """Bind a queue pair to another port of its adapter (queue affinity)."""

    connection: int
    dst_ip: str
    from_port: str
    to_port: str


REBOUND = "rebound"
"""Timeline word for such a queue pair."""


@dataclass(frozen=True, slots=True)
class Steer:
    """Steer packets to a destination from ``from_port``, the LAG's choice, to ``to_port``; None: stop steering."""

    dst_ip: str
    from_port: str
    to_port: str | None


STEERED, RELEASED = STEERING = ("steered", "released")
"""Timeline words for a destination whose steering starts or ends."""


@dataclass(frozen=True, slots=True)
class Reachability:
    """A destination was lost or came back through a port, as its ToR reports."""

    dst_ip: str
    port: str
    reachable: bool


@dataclass(frozen=True, slots=True)
class Hold:
    """A destination that came back through a port keeps flapping: nothing reverts to that port for ``hold_ns``."""

    dst_ip: str
    port: str
    hold_ns: int


@dataclass(frozen=True, slots=True)
class Stuck:
    """No source port leads the LAG to a port where the destination is reachable.

    ``tries`` 0: none was tried, as its adapter binds the queue pair to a port.
    """

    connection: int
    dst_ip: str
    sport: int  # current one, which stays
    port: str  # port that the LAG uses for it, where the destination is lost
    tries: int


STUCK = "stuck"
"""Timeline word for such a connection, emitted once until it is placed."""

Action = Send | Move | Rebind | Steer | Reachability | Hold | Stuck
