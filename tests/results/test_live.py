"""The live view of a drill says what path control could not do, on a terminal and in a log."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hpn.results.run.progress import Progress
from hpn.results.text.live import LiveView
from hpn.results.watch.event_lines import stuck_line
from hpn.testbed.events import Event, EventKind
from hpn.testbed.routing.pathcontrol.actions import STUCK


def stuck(number: int, what: str = STUCK) -> Event:
    return Event(number, EventKind.PATH, "p0.s1.h0", str(number), what, {"dst": "10.0.0.4", "tries": 64})


def test_queue_pairs_that_are_stuck_are_one_line() -> None:
    assert stuck_line([stuck(1, "moved")]) == ""
    assert stuck_line([stuck(1, "moved"), stuck(6)]) == "path stuck p0.s1.h0:6 dst=10.0.0.4 tries=64"
    assert stuck_line([stuck(6), stuck(8)]) == "path stuck x2, first p0.s1.h0:6 dst=10.0.0.4 tries=64"


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "log"])
def test_a_queue_pair_that_is_stuck_is_shown_and_goodput_stays(terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, _environ={})
    view = LiveView(console, "cut")
    with view as show:
        show(Progress("traffic", "", 2.0, 9.0, {"plane 0": 1e8}))
        show(Progress("stuck", "path stuck p0.s1.h0:6", 2.1, 9.0))
        console.print(view._render())
    said = out.getvalue()
    assert "path stuck p0.s1.h0:6" in said
    assert view._goodput == {"plane 0": 1e8}
