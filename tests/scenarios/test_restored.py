"""A lab that a drill has left: compared once it converged and what path control holds away from home may go home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from scenarios.run import restored as module
from scenarios.run.restored import held_until_ns, restored
from testbed.errors import MachineError
from testbed.events import Event, EventKind
from testbed.lab.lab import Lab

BEFORE = {"steering": "nothing"}
MS = 10**6


class Clocked:
    """A lab whose steering ends at ``home_ms``; every wait looks at its condition every 100 ms of its own clock."""

    lost: str | None = None

    def __init__(self, home_ms: float) -> None:
        self.ms, self.home_ms, self.waited_s = 0.0, home_ms, 0.0

    async def converged(self, _timeout_s: float) -> None:
        """It has."""

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        self.waited_s = timeout_s
        end_ms = self.ms + timeout_s * 1e3
        while not condition():
            self.ms += 100
            if self.ms > end_ms:
                raise TimeoutError


def found(monkeypatch: pytest.MonkeyPatch, lab: Clocked, *holds: tuple[float, float]) -> tuple[str, ...]:
    events = [Event(round(at * MS), EventKind.PATH, "h", "10.0.0.1", "held", {"ms": ms}) for at, ms in holds]
    steering = {True: "nothing", False: "10.0.0.1 from r0p1 to r0p0"}
    monkeypatch.setattr(module, "state", lambda _lab: {"steering": steering[lab.ms >= lab.home_ms]})
    monkeypatch.setattr(module, "deviations", lambda _lab: ())
    monkeypatch.setattr(module, "now_ns", lambda: round(lab.ms * MS))
    return asyncio.run(restored(cast(Lab, cast(Any, lab)), BEFORE, events))


def test_what_is_held_away_from_home_has_until_the_hold_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, Clocked(home_ms=7_900), (-110, 8000), (0, 1000)) == ()


def test_what_does_not_go_home_when_the_hold_has_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Clocked(home_ms=60_000)
    (told,) = found(monkeypatch, lab, (-110, 8000))
    assert "steering: was nothing, now 10.0.0.1 from r0p1 to r0p0" in told
    assert lab.waited_s == pytest.approx(8.89)


@pytest.mark.parametrize("holds", [(), ((-5_000.0, 1000.0),)])
def test_nothing_is_waited_for_where_nothing_is_held(
    monkeypatch: pytest.MonkeyPatch, holds: tuple[tuple[float, float], ...]
) -> None:
    lab = Clocked(home_ms=60_000)
    assert len(found(monkeypatch, lab, *holds)) == 1
    assert lab.waited_s <= 1


def test_a_lab_that_is_as_it_was_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Clocked(home_ms=0)
    assert found(monkeypatch, lab, (0, 8000)) == ()
    assert lab.ms == 0


def test_a_lab_that_does_not_converge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Open(Clocked):
        async def converged(self, _timeout_s: float) -> None:
            raise MachineError("LACP")

    assert found(monkeypatch, Open(home_ms=0)) == ("the lab did not converge again",)


def test_the_last_hold_counts() -> None:
    hold = Event(5, EventKind.PATH, "h", "10.0.0.1", "held", {"ms": 2.5})
    steered = Event(9, EventKind.PATH, "h", "10.0.0.1", "steered", {})
    later = Event(7, EventKind.PATH, "h", "10.0.0.1", "held", {"ms": 1})
    assert held_until_ns([hold, steered, later]) == 5 + 2_500_000
    assert held_until_ns([steered]) == 0
