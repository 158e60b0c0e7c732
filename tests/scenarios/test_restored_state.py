"""A lab that a drill has left: compared once it converged and what path control holds away from home may go home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from hpn.scenarios.run import restored_state as module
from hpn.scenarios.run.restored_state import restored
from hpn.testbed.errors import MachineError
from hpn.testbed.lab import convergence
from hpn.testbed.lab.convergence import Gap, until_converged
from hpn.testbed.lab.lab import Lab

BEFORE = {"steering": "nothing"}
MS = 10**6
STEERED = "10.0.0.1 from r0p1 to r0p0"


class Clocked:
    """A lab whose steering ends at ``home_ms``; every wait looks at its condition every 100 ms of its own clock.

    Path control holds what it steers until ``held_ms``.
    """

    lost: str | None = None

    def __init__(self, home_ms: float, held_ms: float = 0) -> None:
        self.ms, self.home_ms, self.held_ms = 0.0, home_ms, held_ms

    @property
    def stands(self) -> bool:
        return self.ms >= self.home_ms

    def missing(self) -> list[Gap]:
        return [] if self.stands else [Gap("path", "h.r0", f"h.r0: steers {STEERED}", round(self.held_ms * MS))]

    async def converged(self, timeout_s: float) -> None:
        await until_converged(self, timeout_s)

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        end_ms = self.ms + timeout_s * 1e3
        while not condition():
            self.ms += 100
            if self.ms > end_ms:
                raise TimeoutError


def found(monkeypatch: pytest.MonkeyPatch, lab: Clocked) -> tuple[str, ...]:
    monkeypatch.setattr(module, "state", lambda _lab: {"steering": "nothing" if lab.stands else STEERED})
    monkeypatch.setattr(module, "deviations", lambda _lab: ())
    monkeypatch.setattr(convergence, "now_ns", lambda: round(lab.ms * MS))
    return asyncio.run(restored(cast(Lab, cast(Any, lab)), BEFORE))


@pytest.mark.parametrize("held_ms", [7_900, 15_900])
def test_what_is_held_away_from_home_has_until_the_hold_ends(monkeypatch: pytest.MonkeyPatch, held_ms: int) -> None:
    lab = Clocked(home_ms=held_ms + 100, held_ms=held_ms)
    assert found(monkeypatch, lab) == ()
    assert lab.ms == held_ms + 100


def test_what_does_not_go_home_when_the_hold_has_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Clocked(home_ms=60_000, held_ms=15_900)
    assert found(monkeypatch, lab) == (f"steering: was nothing, now {STEERED}",)
    assert 15_900 < lab.ms <= 17_100


@pytest.mark.parametrize("held_ms", [0, 8_000])
def test_what_no_hold_keeps_any_longer_has_as_long_as_all_else(monkeypatch: pytest.MonkeyPatch, held_ms: int) -> None:
    lab = Clocked(home_ms=60_000, held_ms=held_ms)
    assert len(found(monkeypatch, lab)) == 1
    assert lab.ms <= 10_200


def test_a_lab_that_is_as_it_was_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Clocked(home_ms=0, held_ms=8_000)
    assert found(monkeypatch, lab) == ()
    assert lab.ms == 0


def test_a_lab_that_does_not_converge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Open(Clocked):
        async def converged(self, _timeout_s: float) -> None:
            raise MachineError("LACP")

    assert found(monkeypatch, Open(home_ms=0)) == ("the lab did not converge again",)
