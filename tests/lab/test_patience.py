"""How long a lab may take to converge: a while, and longer only as long as it gets closer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.lab import convergence
from hpn.testbed.lab.convergence import RELEASED_S, Gap, until_converged
from hpn.testbed.lab.timeline import Timeline


class _Slow:
    """A lab of which so many parts are missing, each time it is asked."""

    def __init__(self, missing: Sequence[int]) -> None:
        self._counts = list(missing)

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        await Timeline(lambda _event: None).wait_for(condition, timeout_s)

    def missing(self) -> list[Gap]:
        return [Gap("lacp", "port", "port: waits")] * self._counts.pop(0)

    @property
    def stands(self) -> bool:
        return self._counts[:1] in ([], [0])


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "CONVERGE_S", 0.06)
    monkeypatch.setattr(convergence, "PROGRESS_S", 0.02)


async def test_a_lab_that_gets_closer_has_longer() -> None:
    await until_converged(_Slow([40, 30, 20, 3, 1]))


@pytest.mark.parametrize(
    ("counts", "waited"),
    [([40, 40, 40], "0.06"), ([40, 30, 20, 20, 10], "0.1"), ([40, 30, 20, 30, 10], "0.1")],
)
async def test_a_lab_that_gets_no_closer_is_given_up(counts: list[int], waited: str) -> None:
    with pytest.raises(MachineError, match=rf"did not converge within {waited} s: port: waits"):
        await until_converged(_Slow(counts))


class _Held(_Slow):
    """A lab that is missing one thing, which is held for 50 ms of the clock at each of so many holds."""

    def __init__(self, holds: int) -> None:
        self._waits, self._holds = 0, holds
        self.waited_s: list[float] = []

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> None:
        self.waited_s.append(timeout_s)
        self._waits += 1
        if not condition():
            raise TimeoutError

    def missing(self) -> list[Gap]:
        return [Gap("path", "nic", "nic: is steered", 7_050_000_000)]

    @property
    def stands(self) -> bool:
        return self._waits > self._holds


async def test_what_is_held_has_until_the_hold_ends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "now_ns", lambda: 7_000_000_000)
    lab = _Held(1)
    await until_converged(lab, 0.01)
    assert lab.waited_s == pytest.approx([0.01, 0.05 + RELEASED_S])
    with pytest.raises(MachineError, match=r"within 1.06 s: nic: is steered"):
        await until_converged(_Held(2), 0.01)


async def test_who_names_a_time_means_it() -> None:
    with pytest.raises(MachineError, match=r"within 0.01 s"):
        await until_converged(_Slow([40, 30, 20]), 0.01)
