"""How long a lab may take to converge: a while, and longer only as long as it gets closer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from testbed.errors import MachineError
from testbed.lab import convergence
from testbed.lab.convergence import Gap, until_converged
from testbed.lab.timeline import Timeline


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


async def test_who_names_a_time_means_it() -> None:
    with pytest.raises(MachineError, match=r"within 0.01 s"):
        await until_converged(_Slow([40, 30, 20]), 0.01)
