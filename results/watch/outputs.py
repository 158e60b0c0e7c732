"""Outputs for a watched lab: full screen on a terminal, text in a log, JSON lines for programs.

Changes when a lab is shown in another kind of output.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Self

from rich.console import Console, Group
from rich.live import Live

from hpn.results.watch.event_lines import EventLines, HeardEvent
from hpn.results.watch.lately import Lately
from hpn.results.watch.plane_totals import planes, rails
from hpn.results.watch.problems import Problem, problems
from hpn.results.watch.screen import block, picture
from hpn.results.watch.snapshot import Snapshot


@dataclass(slots=True)
class ChangesSince:
    """Time at which each problem of a lab was first seen."""

    at_ns: dict[tuple[str, str], int] = field(default_factory=dict)
    _before: dict[tuple[str, str], Problem] = field(default_factory=dict)

    def look(self, moment: Snapshot) -> tuple[list[Problem], list[Problem]]:
        """Return new problems, and those that are over."""
        now = {trouble.key: trouble for trouble in problems(moment)}
        new = [trouble for key, trouble in now.items() if key not in self._before]
        over = [trouble for key, trouble in self._before.items() if key not in now]
        for trouble in over:
            del self.at_ns[trouble.key]
        self.at_ns |= {trouble.key: moment.condition.at_ns for trouble in new}
        self._before = now
        return new, over


def document(moment: Snapshot, since: ChangesSince) -> dict[str, object]:
    """Return a moment as JSON: problems, planes, rails, every link. Rates in bit/s, ages in seconds."""
    return {
        "lab": moment.lab,
        "at_ns": moment.condition.at_ns,
        "wrong": [_trouble(moment, trouble, since) for trouble in problems(moment)],
        "planes": [asdict(one) for one in planes(moment)],
        "rails": [asdict(one) for one in rails(moment)],
        "links": _links(moment),
    }


def _trouble(moment: Snapshot, trouble: Problem, since: ChangesSince) -> dict[str, object]:
    age_ns = moment.condition.at_ns - since.at_ns.get(trouble.key, moment.condition.at_ns)
    return {**asdict(trouble), "for_s": round(age_ns / 1e9, 3)}


def _links(moment: Snapshot) -> Sequence[dict[str, object]]:
    return [
        {
            "link": link.name,
            "plane": link.plane,
            "state": moment.state(link),
            "up_bps": moment.rate(link.lower).sent_bps,
            "down_bps": moment.rate(link.upper).sent_bps,
            "load": moment.load(link),
            "drops_per_s": moment.rate(link.lower).drops_per_s + moment.rate(link.upper).drops_per_s,
        }
        for link in moment.fabric.links
    ]


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
        self._since, self._news, self._lately = ChangesSince(), EventLines(offset_ns), Lately()
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
        self._lately.look(moment)
        lines = picture(moment, self._since.at_ns, self._news, self._lately, *self._console.size)
        self._live.update(Group(*lines), refresh=True)

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
