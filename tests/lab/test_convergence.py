"""How a lab is asked whether it stands: again and again, and cheaply."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from hpn.testbed.fabric.build import build
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.lab.convergence import Checks, Gap, _Routes, steering_checks
from hpn.testbed.lab.expected_routes import expected_routes
from hpn.testbed.lab.parts import LabParts
from hpn.testbed.lab.watch import Watcher
from hpn.testbed.lag.steering import Steering
from hpn.testbed.routing.pathcontrol.actions import Steer
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
    assert len(wanted["p0.a0.0"][f"{fabric.nics[0].ip}/32"]) == 1
    far = wanted["p0.s1.t0.0"]
    assert far[f"{fabric.nics[0].ip}/32"] == far[fabric.nics[0].subnet]
    assert {link.end_at("p0.s1.t0.0").ifindex for link in fabric.links if link.is_routed} >= far[fabric.nics[0].subnet]
    assert len(far[fabric.nics[0].subnet]) == 2


def test_a_route_with_as_many_next_hops_on_a_longer_path_is_not_converged() -> None:
    wanted = {"10.0.0.1/32": frozenset({2, 3}), "10.0.1.1/32": frozenset({2}), "10.0.2.1/32": frozenset[int]()}
    found = dict(wanted) | {"10.0.1.1/32": frozenset({3}), "10.0.2.1/32": frozenset({9})}
    changed = set[str]()
    watcher = SimpleNamespace(
        next_hops=lambda _switch, prefix: len(found[prefix]),
        ports=lambda _switch, prefix: found[prefix],
        changed_routes=lambda _switch: changed,
    )
    check = _Routes(cast(Watcher, cast(Any, watcher)), "leaf1", wanted)
    text = "leaf1: 1 of 3 routes incomplete (10.0.1.1/32 takes longer paths)"
    assert check() == Gap("route", "leaf1", text)
    found["10.0.1.1/32"] = frozenset({2})
    changed.add("10.0.1.1/32")
    assert check() is None
    found["10.0.0.1/32"] = frozenset({2})
    changed.add("10.0.0.1/32")
    assert (gap := check()) is not None
    assert gap.text.endswith("(10.0.0.1/32 has 1 of 2 next hops)")


def test_a_lab_whose_lags_steer_does_not_stand_however_whole_its_routes_are() -> None:
    nft = cast(Nft, cast(Any, SimpleNamespace(run=lambda _script: "")))
    steering = Steering(nft, "bond0", ("r0p0", "r0p1"))
    nic = SimpleNamespace(nic=SimpleNamespace(name="h.r0"), steering=steering, held_until_ns=7)
    without = SimpleNamespace(nic=SimpleNamespace(name="h.r1"), steering=None, held_until_ns=0)
    lab = cast(LabParts, cast(Any, SimpleNamespace(nics={"h.r0": nic, "h.r1": without})))
    checks = Checks(steering_checks(lab))
    assert checks.stand
    steering.apply([Steer("10.0.1.2", "r0p0", "r0p1"), Steer("10.0.1.1", "r0p0", "r0p1")])
    assert not checks.stand
    text = "h.r0: path control steers 10.0.1.1 from r0p0 to r0p1 and 1 more"
    assert list(checks.gaps()) == [Gap("path", "h.r0", text, held_until_ns=7)]
    steering.apply([Steer("10.0.1.1", "r0p0", None)])
    assert [gap.text for gap in checks.gaps()] == ["h.r0: path control steers 10.0.1.2 from r0p0 to r0p1"]
    steering.apply([Steer("10.0.1.2", "r0p0", None)])
    assert checks.stand
