"""What a path control agent wants done; the agents themselves are pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Send:
    """Put ``payload`` on the wire at interface ``port``."""

    port: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Move:
    """Give a connection another UDP source port, which the LAG carries through ``to_port``."""

    connection: int
    dst_ip: str
    old_sport: int
    sport: int
    from_port: str
    to_port: str


@dataclass(frozen=True, slots=True)
class Steer:
    """Have what the LAG sends to a destination through ``from_port`` leave by ``to_port``; None: by ``from_port``."""

    dst_ip: str
    from_port: str
    to_port: str | None


STEERED, RELEASED = STEERING = ("steered", "released")
"""What the timeline says of a destination that a LAG steers from now on, and no more."""


@dataclass(frozen=True, slots=True)
class Reachability:
    """A destination was lost or came back through a port, as its ToR says."""

    dst_ip: str
    port: str
    reachable: bool


@dataclass(frozen=True, slots=True)
class Hold:
    """A destination that came back through a port keeps flapping: nothing goes home to that port for ``hold_ns``."""

    dst_ip: str
    port: str
    hold_ns: int


@dataclass(frozen=True, slots=True)
class Stuck:
    """No source port was found that the LAG carries through a port where the destination is reachable."""

    connection: int
    dst_ip: str
    sport: int  # that it keeps
    port: str  # that the LAG carries it through, where the destination is lost
    tries: int


STUCK = "stuck"
"""What the timeline says of such a connection, once until it is placed."""

Action = Send | Move | Steer | Reachability | Hold | Stuck
