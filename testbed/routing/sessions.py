"""BGP and BFD session states of one switch, by port; changes are emitted to the timeline."""

from __future__ import annotations

from collections.abc import Mapping

from hpn.testbed.events import Event, EventKind, EventSink, now_ns


class Sessions:
    """Sessions of one switch, as its daemon's log reports them."""

    def __init__(self, node: str, emit: EventSink) -> None:
        self._node = node
        self._emit = emit
        self._established: set[str] = set()
        self._bfd: dict[str, str] = {}

    @property
    def established(self) -> frozenset[str]:
        """Ports whose BGP session is up."""
        return frozenset(self._established)

    @property
    def bfd(self) -> Mapping[str, str]:
        """State of the BFD session of each port that has one: Up, Init, Down, AdminDown."""
        return self._bfd

    def up(self, port: str) -> None:
        """Record that the BGP session of this port is established."""
        if port not in self._established:
            self._established.add(port)
            self._say(EventKind.BGP, port, "established")

    def down(self, port: str, reason: str) -> None:
        """Record that the BGP session of this port is down."""
        if port in self._established:
            self._established.remove(port)
            self._say(EventKind.BGP, port, "down", reason=reason)

    def on_bfd(self, port: str, state: str) -> None:
        """Record the state of this port's BFD session; '' when it was removed."""
        before = self._bfd.pop(port, "")
        if state:
            self._bfd[port] = state
        if (before == "Up") != (state == "Up"):
            self._say(EventKind.BFD, port, "up" if state == "Up" else "down" if state else "removed")

    def end(self, reason: str) -> None:
        """End every session, since the daemon is dead."""
        for port in sorted(self._established):
            self._say(EventKind.BGP, port, "down", reason=reason)
        self._established.clear()
        self._bfd.clear()

    def _say(self, kind: EventKind, port: str, what: str, **detail: str) -> None:
        self._emit(Event(now_ns(), kind, self._node, port, what, detail))
