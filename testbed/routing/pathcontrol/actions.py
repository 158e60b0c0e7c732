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


Action = Send | Move | Reachability | Hold
