"""Matrix of one drill: each run differs from the first in one thing, and no axis is run at the value of the first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch import matrix
from hpn.scenarios.drill import catalogue
from hpn.scenarios.run import engines
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import MachineError
from hpn.testbed.vm import kernel_cache
from hpn.testbed.vm.engines import EngineSpec, named
from hpn.testbed.vm.kernel_cache import Built
from tests.results.sample import MANIFEST

VIRTUAL = named("uml-virtual-time")
Runs = list[tuple[EngineSpec, Order]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The runs that are asked for; the first one is of lab hosts, Linux bonding and Linux 6.12.117."""
    asked: Runs = []

    def run_on(spec: EngineSpec, order: Order, *_: object) -> RunFolder:
        asked.append((spec, order))
        manifest = replace(
            MANIFEST, engine=spec.name, datapath="kernel", kernel="6.12.117", host_profile=order.drill.topology.profile
        )
        return MagicMock(spec=RunFolder, manifest=lambda: manifest)

    monkeypatch.setattr(engines, "run_on", run_on)
    return asked


def _names(drill: str, *axes: str) -> list[str]:
    cells = matrix.run(catalogue.load(drill), axes, VIRTUAL, Path("out"), (), lambda _: None)
    return [cell.name for cell in cells]


def test_an_axis_is_run_at_each_value_but_that_of_the_first_run(runs: Runs) -> None:
    assert _names("link-down", "profile", "daemon", "datapath", "daemon") == [
        "base", "profile production", "daemon frr", "datapath nft",
    ]  # fmt: skip
    fabrics = [order.drill.topology for _, order in runs]
    assert [(fabric.profile, fabric.bgp.daemon, fabric.lag) for fabric in fabrics] == [
        ("lab", "bird", "auto"), ("production", "bird", "auto"), ("lab", "frr", "auto"), ("lab", "bird", "nft"),
    ]  # fmt: skip
    assert [order.out.name for _, order in runs] == ["base", "profile-production", "daemon-frr", "datapath-nft"]


def test_what_else_a_drill_sets_of_bgp_stays(runs: Runs) -> None:
    _names("tor-control-hang", "daemon")
    (_, base), (_, frr) = runs
    assert base.drill.topology.bgp != catalogue.load("link-down").topology.bgp
    assert frr.drill.topology.bgp == base.drill.topology.bgp.model_copy(update={"daemon": "frr"})


def test_each_kernel_here_is_booted_and_the_drill_is_the_same(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    built = [Built(f"k{at}", release, "", "", "", 0.0) for at, release in enumerate(("6.1.162", "6.12.117"))]
    monkeypatch.setattr(kernel_cache, "usable", lambda: built)
    assert _names("link-down", "kernel") == ["base", "kernel 6.1.162"]
    (_, base), (spec, other) = runs
    assert other.drill == base.drill
    assert spec.name == VIRTUAL.name
    assert spec.engine()._wanted == built[0].program  # type: ignore[attr-defined]


def test_nothing_follows_a_first_run_that_could_not_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> RunFolder:
        raise MachineError("no kernel")

    monkeypatch.setattr(engines, "run_on", refuse)
    assert _names("link-down", "profile", "daemon") == ["base"]


def test_a_value_that_contradicts_the_fabric_is_left_out_with_the_reason(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    axis = replace(
        matrix.AXES["daemon"],
        name="odd",
        now=lambda *_: "",
        variants=lambda _, spec: iter([matrix.Variant("lost", spec, {"bgp": {"daemon": "quagga"}})]),
    )
    monkeypatch.setitem(matrix.AXES._entries, "odd", axis)
    drill = catalogue.load("link-down")
    _, cell = matrix.run(drill, ["odd"], VIRTUAL, Path("out"), (), lambda _: None)
    assert "bgp.daemon" in str(cell.made)
    assert len(runs) == 1
