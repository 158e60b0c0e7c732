"""How a lab is asked whether it stands: again and again, and cheaply."""

from __future__ import annotations

from functools import partial

from testbed.fabric.build import build
from testbed.lab.convergence import Checks, Gap, expected_routes
from tests.lab.running import tiny


class _Parts:
    """Things that stand or not; counts how often they are looked at."""

    def __init__(self, missing: set[int], count: int) -> None:
        self.missing = missing
        self.looks = 0
        self.convergence = Checks(partial(self._look, part) for part in range(count))

    def _look(self, part: int) -> Gap | None:
        self.looks += 1
        return Gap("lacp", str(part), "missing") if part in self.missing else None


def test_a_lab_stands_when_every_check_passes_at_the_same_time() -> None:
    parts = _Parts({3}, 5)
    assert not parts.convergence.stand
    parts.missing = {1}  # what was missing is there, and what was there is gone
    assert not parts.convergence.stand
    parts.missing = set()
    assert parts.convergence.stand
    parts.missing = {4}
    assert not parts.convergence.stand
    assert [gap.where for gap in parts.convergence.gaps()] == ["4"]


def test_while_one_thing_is_missing_only_that_is_looked_at() -> None:
    parts = _Parts({600}, 1000)
    assert not parts.convergence.stand
    parts.looks = 0
    for _ in range(50):
        assert not parts.convergence.stand
    assert parts.looks == 50


def test_what_is_expected_has_each_host_and_subnet_that_a_switch_leads_to() -> None:
    fabric = build(tiny())
    wanted = expected_routes(fabric)
    assert wanted["p0.a0.0"][f"{fabric.nics[0].ip}/32"] == 1
    far = wanted["p0.s1.t0.0"]
    assert far[f"{fabric.nics[0].ip}/32"] == far[fabric.nics[0].subnet] == 2
