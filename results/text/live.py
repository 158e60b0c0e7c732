"""The live view of a running drill: a redrawn panel on a terminal, plain lines in a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import Progress as RichProgress
from rich.progress import TaskID
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hpn.results.run.progress import Progress
from hpn.results.text.values import rate
from hpn.testbed.events import EventKind
from hpn.testbed.fabric.model import Fabric

_KEPT = ("fault", "stuck")
_SHOWN_FAULTS = 8
_BAR = 50


class LiveView:
    """Live display of progress reports; a context manager. Without a terminal, each change is one line."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._phase = ""
        self._faults: list[str] = []
        self._elapsed = self._total = 0.0
        self._goodput: Mapping[str, float] = {}
        self._last_line_s = -1.0
        self._top = 0.0  # largest goodput seen: the bars' full scale
        self._live = Live(self._render(), console=console, transient=True) if console.is_terminal else None

    def __enter__(self) -> Callable[[Progress], None]:
        if self._live is not None:
            self._live.start()
        return self.show

    def __exit__(self, *_exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, news: Progress) -> None:
        """Show one progress report."""
        self._elapsed, self._total = news.elapsed_s, news.total_s
        if news.kind == "phase":
            self._phase = news.text
        elif news.kind in _KEPT:
            self._faults.append(f"{news.elapsed_s:6.2f} s  {news.text}")
        elif news.kind == "traffic":
            self._goodput = news.goodput_bps
        if self._live is not None:
            self._live.update(self._render())
        elif news.kind != "traffic":
            self._console.print(f"{self._title}: {self._stamp()}{news.text}", soft_wrap=True)
        elif self._goodput and news.elapsed_s - self._last_line_s >= 1.0:
            self._last_line_s = news.elapsed_s
            self._console.print(f"{self._title}: {self._stamp()}{self._goodput_text()}", soft_wrap=True)

    def _stamp(self) -> str:
        return f"{self._elapsed:5.1f} of {self._total:.1f} s  " if self._elapsed else ""

    def _goodput_text(self) -> str:
        return "goodput " + ", ".join(f"{name} {rate(bps)}bit/s" for name, bps in self._goodput.items())

    def _render(self) -> Group:
        rows = Table.grid(padding=(0, 1))
        done = ProgressBar(total=self._total or 1.0, completed=min(self._elapsed, self._total), width=_BAR)
        rows.add_row("time", done, f"{self._elapsed:.1f} of {self._total:.1f} s")
        self._top = max(self._top, *self._goodput.values(), 1.0)
        for name, bps in self._goodput.items():
            rows.add_row(name, ProgressBar(total=self._top, completed=bps, width=_BAR), f"{rate(bps)}bit/s")
        head = Text.assemble((self._title, "bold"), f"  {self._phase}")
        return Group(head, rows, *(Text(line) for line in self._faults[-_SHOWN_FAULTS:]))


class LiveUp:
    """Live display of a lab's start: one line on a terminal, nothing in a log. A context manager."""

    def __init__(self, console: Console, name: str, fabric: Fabric) -> None:
        self._name = name
        self._sessions = 2 * sum(link.is_routed for link in fabric.links)
        self._nodes = len(fabric.nodes)
        self._up: set[tuple[object, object]] = set()
        self._status = console.status(Text(f"{name}: starting {self._nodes} nodes")) if console.is_terminal else None

    def __enter__(self) -> Callable[[Mapping[str, object]], None]:
        if self._status is not None:
            self._status.start()
        return self.show

    def __exit__(self, *_exception: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, event: Mapping[str, object]) -> None:
        """Show one event of the lab, as received from the control socket."""
        if event.get("kind") != EventKind.BGP:
            return
        session = (event.get("node"), event.get("subject"))
        (self._up.add if event.get("what") == "established" else self._up.discard)(session)
        if self._status is not None:
            self._status.update(Text(f"{self._name}: {len(self._up)} of {self._sessions} ends of BGP sessions up"))


class Staged(Protocol):
    """Progress report of a long job: the stage, and the share of it (0 to 1) that is done."""

    @property
    def stage(self) -> str:
        """Name of the stage."""

    @property
    def done(self) -> float:
        """Share that is done, 0 to 1."""


class LiveSteps:
    """Live display of stages: a bar per stage on a terminal, a line per stage in a log. A context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = RichProgress(console=console) if console.is_terminal else None
        self._tasks: dict[str, TaskID] = {}
        self._told: set[str] = set()

    def __enter__(self) -> Callable[[Staged], None]:
        if self._bars is not None:
            self._bars.start()
        return self.show

    def __exit__(self, *_exception: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def show(self, news: Staged) -> None:
        """Show one progress report."""
        if self._bars is not None:
            if news.stage not in self._tasks:
                self._tasks[news.stage] = self._bars.add_task(news.stage, total=1.0)
            self._bars.update(self._tasks[news.stage], completed=news.done)
        elif news.stage not in self._told:
            self._told.add(news.stage)
            self._console.print(news.stage, soft_wrap=True)
