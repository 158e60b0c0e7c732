"""Reading the log of FRR's daemons: that one is up and listens, and what becomes of BGP sessions."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHANGE = re.compile(
    r"%ADJCHANGE: neighbor (?P<peer>[0-9.]+)\S* in vrf \S+ (?P<state>Up|Down)(?: (?P<reason>.*\S))?\s*$"
)
_STARTED = re.compile(r" starting: \S*vty@\d+")


@dataclass(frozen=True, slots=True)
class SessionChange:
    """The session with the address ``peer`` is established, or no longer for the ``reason`` that FRR gives."""

    peer: str
    up: bool
    reason: str


def has_started(line: str) -> bool:
    """Whether this line says that its daemon listens on its sockets."""
    return _STARTED.search(line) is not None


def session_change(line: str) -> SessionChange | None:
    """The change of a BGP session that this line tells of."""
    found = _CHANGE.search(line)
    return None if found is None else SessionChange(found["peer"], found["state"] == "Up", found["reason"] or "")
