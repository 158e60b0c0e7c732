"""Parser of BIRD's log: session changes and their reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"^\S+ \S+ <(?P<level>[A-Z]+)> (?P<text>.*)$")
_STATE = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_]*): State changed to (?P<state>[a-z]+)$")
_ABOUT = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_]*): (?P<what>.+)$")
_BFD = re.compile(r"^bfd\d*: Session to (?P<peer>\S+) (?:changed state from \S+ to (?P<state>\S+)|(?P<gone>removed))$")
_NO_REASON = "BGP session closed"


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A protocol of BIRD went up or left the up state; ``reason`` is BIRD's last message about it before."""

    session: str
    up: bool
    reason: str


@dataclass(frozen=True, slots=True)
class BfdChange:
    """The BFD session with the address ``peer`` has a new ``state`` (RFC 5880: Up, Init, Down, AdminDown), or ''.

    '' when the session was removed: BFD follows a BGP session and ends with it.
    """

    peer: str
    state: str


class LogReader:
    """Filter for the relevant lines of BIRD's log."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def read(self, line: str) -> SessionChange | BfdChange | None:
        """Return the change that this line reports, if any."""
        parts = _LINE.match(line)
        text = parts["text"] if parts else line
        state = _STATE.match(text)
        if state is not None:
            up = state["state"] == "up"
            return SessionChange(state["name"], up, "" if up else self._reasons.pop(state["name"], ""))
        if bfd := _BFD.match(text):
            return BfdChange(bfd["peer"], bfd["state"] or "")
        if (about := _ABOUT.match(text)) and about["what"] != _NO_REASON:
            self._reasons[about["name"]] = about["what"]
        return None
