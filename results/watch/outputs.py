"""Outputs for a watched lab: full screen on a terminal, text in a log, JSON lines for programs.

Changes when a lab is shown in another kind of output.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from rich.console import Console, Group
from rich.live import Live

from hpn.results.watch.changes import ChangesSince, document
from hpn.results.watch.event_lines import EventLines, HeardEvent
from hpn.results.watch.screen import block, picture
from hpn.results.watch.snapshot import Snapshot

Event = Mapping[str, object]


class View(ABC):
    """Output of moments and events; a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:  # noqa: B027  # most places need nothing
        """Restore the output's initial state."""

    @abstractmethod
    def show(self, moment: Snapshot) -> None:
        """Show the current state of the lab."""

    @abstractmethod
    def hear(self, events: Sequence[Event]) -> None:
        """Show events of its timeline, as received from the control socket."""


class Screen(View):
    """Alternate screen of a terminal, redrawn; the previous content reappears at the end."""

    def __init__(self, console: Console, offset_ns: int) -> None:
        """Create the screen. ``offset_ns``: added to CLOCK_MONOTONIC to get the time of day."""
        self._console = console
        self._since, self._news = ChangesSince(), EventLines(offset_ns)
        self._live = Live(
            console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def show(self, moment: Snapshot) -> None:
        """Redraw the screen."""
        self._since.look(moment)
        width, height = self._console.size
        self._live.update(Group(*picture(moment, self._since.at_ns, self._news, width, height)), refresh=True)

    def hear(self, events: Sequence[Event]) -> None:
        """Store events until the next redraw."""
        self._news.hear(HeardEvent.of(event) for event in events)


class Log(View):
    """Log: the lab in a block, then a line for each event, new problem and solved problem."""

    def __init__(self, tell: Callable[[str], None], offset_ns: int) -> None:
        """Create the log; ``tell`` prints a line."""
        self._tell = tell
        self._since, self._news = ChangesSince(), EventLines(offset_ns)
        self._begun = False

    def show(self, moment: Snapshot) -> None:
        """Print the changes."""
        new, over = self._since.look(moment)
        if not self._begun:
            self._begun = True
            for line in block(moment, self._since.at_ns):
                self._tell(line)
            return
        clock = self._news.clock(moment.condition.at_ns)
        for trouble in new:
            self._tell(f"{clock} wrong: {trouble}")
        for trouble in over:
            self._tell(f"{clock} no longer: {trouble}")
        if over and not self._since.at_ns:
            self._tell(f"{clock} all is well")

    def hear(self, events: Sequence[Event]) -> None:
        """Print a line for each event."""
        for event in events:
            self._tell(self._news.line(HeardEvent.of(event)))


class JsonLines(View):
    """JSON lines: a document for each moment and for each event."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """Create the output; ``tell`` prints a line."""
        self._tell = tell
        self._since = ChangesSince()

    def show(self, moment: Snapshot) -> None:
        """Print {"status": ...}."""
        self._since.look(moment)
        self._tell(json.dumps({"status": document(moment, self._since)}))

    def hear(self, events: Sequence[Event]) -> None:
        """Print {"event": ...} for each event."""
        for event in events:
            self._tell(json.dumps({"event": dict(event)}))
