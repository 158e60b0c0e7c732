"""Where a watched lab is shown: in place on a terminal, as text in a log, as JSON lines for programs.

Changes when a lab is shown in another kind of place.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from rich.console import Console, Group
from rich.live import Live

from hpn.results.watch.moment import Moment
from hpn.results.watch.news import Heard, News
from hpn.results.watch.picture import block, picture
from hpn.results.watch.told import Since, document

Event = Mapping[str, object]


class View(ABC):
    """Feed it moments and events; use it as a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:  # noqa: B027  # most places need nothing
        """Leave the place as it was found."""

    @abstractmethod
    def show(self, moment: Moment) -> None:
        """The lab as it is now."""

    @abstractmethod
    def hear(self, events: Sequence[Event]) -> None:
        """Events of its timeline, as the control socket tells them."""


class Screen(View):
    """A terminal's other screen, redrawn; what stood on the terminal is there again in the end."""

    def __init__(self, console: Console, offset_ns: int) -> None:
        """``offset_ns``: what to add to CLOCK_MONOTONIC for the time of day."""
        self._console = console
        self._since, self._news = Since(), News(offset_ns)
        self._live = Live(
            console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def show(self, moment: Moment) -> None:
        """Redraw."""
        self._since.look(moment)
        width, height = self._console.size
        self._live.update(Group(*picture(moment, self._since.at_ns, self._news, width, height)), refresh=True)

    def hear(self, events: Sequence[Event]) -> None:
        """Shown when it is redrawn."""
        self._news.hear(Heard.of(event) for event in events)


class Log(View):
    """The lab in a block, then a line for each event, and for what is wrong or no longer so."""

    def __init__(self, tell: Callable[[str], None], offset_ns: int) -> None:
        """``tell`` prints a line."""
        self._tell = tell
        self._since, self._news = Since(), News(offset_ns)
        self._begun = False

    def show(self, moment: Moment) -> None:
        """What has changed in it."""
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
        """A line for each."""
        for event in events:
            self._tell(self._news.line(Heard.of(event)))


class JsonLines(View):
    """A document for each moment, one for each event."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """``tell`` prints a line."""
        self._tell = tell
        self._since = Since()

    def show(self, moment: Moment) -> None:
        """{"status": ...}."""
        self._since.look(moment)
        self._tell(json.dumps({"status": document(moment, self._since)}))

    def hear(self, events: Sequence[Event]) -> None:
        """{"event": ...}."""
        for event in events:
            self._tell(json.dumps({"event": dict(event)}))
