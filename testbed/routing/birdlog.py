"""Reading BIRD's log as it streams out of a pipe: readiness, session changes and the reason given for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"^\S+ \S+ <(?P<level>[A-Z]+)> (?P<text>.*)$")
_STATE = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_]*): State changed to (?P<state>[a-z]+)$")
_ABOUT = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_]*): (?P<what>.+)$")
_BFD = re.compile(r"^bfd\d*: Session to (?P<peer>\S+) (?:changed state from \S+ to (?P<state>\S+)|(?P<gone>removed))$")
_NO_REASON = "BGP session closed"
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A protocol of BIRD went up or left the up state; ``reason`` is what BIRD said about it just before."""

    session: str
    up: bool
    reason: str


@dataclass(frozen=True, slots=True)
class BfdChange:
    """The BFD session with the address ``peer`` has a new ``state`` (RFC 5880: Up, Init, Down, AdminDown), or ''.

    '' when there is no session any more: BFD follows a BGP session and ends with it.
    """

    peer: str
    state: str


class LogReader:
    """Splits a byte stream into lines and picks out what matters. Lines longer than 4 KiB are cut."""

    def __init__(self) -> None:
        self.started = False
        self.last = ""  # the latest line, BIRD's last words when it dies
        self._rest = b""
        self._reasons: dict[str, str] = {}

    def feed(self, data: bytes) -> list[SessionChange | BfdChange]:
        """The session changes in the lines that ``data`` completes."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LONGEST]
        changes = (self._line(line[:_LONGEST].decode(errors="replace")) for line in lines)
        return [change for change in changes if change is not None]

    def _line(self, line: str) -> SessionChange | BfdChange | None:
        if line.strip():
            self.last = line.strip()
        parts = _LINE.match(line)
        text = parts["text"] if parts else line
        if text == "Started":
            self.started = True
        state = _STATE.match(text)
        if state is not None:
            up = state["state"] == "up"
            return SessionChange(state["name"], up, "" if up else self._reasons.pop(state["name"], ""))
        if bfd := _BFD.match(text):
            return BfdChange(bfd["peer"], bfd["state"] or "")
        if (about := _ABOUT.match(text)) and about["what"] != _NO_REASON:
            self._reasons[about["name"]] = about["what"]
        return None
