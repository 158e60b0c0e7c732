"""Parser of the FRR daemons' logs: a daemon's start, and changes of BGP sessions."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHANGE = re.compile(
    r"%ADJCHANGE: neighbor (?P<peer>[0-9.]+)\S* in vrf \S+ (?P<state>Up|Down)(?: (?P<reason>.*\S))?\s*$"
)
_STARTED = re.compile(r" starting: \S*vty@\d+")


@dataclass(frozen=True, slots=True)
class SessionChange:
    """The session with the address ``peer`` is established, or went down for FRR's ``reason``."""

    peer: str
    up: bool
    reason: str


def has_started(line: str) -> bool:
    """Return True if this line reports that its daemon listens on its sockets."""
    return _STARTED.search(line) is not None


def session_change(line: str) -> SessionChange | None:
    """Return the change of a BGP session that this line reports, if any."""
    found = _CHANGE.search(line)
    return None if found is None else SessionChange(found["peer"], found["state"] == "Up", found["reason"] or "")
