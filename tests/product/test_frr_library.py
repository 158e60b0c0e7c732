"""``make frr``: every drill of the library but those with BFD and of a segment, each with FRR, otherwise unchanged."""

from __future__ import annotations

from pathlib import Path

from hpn.scenarios.batch.suite.suite import load_suite
from hpn.scenarios.drill import catalogue
from hpn.testbed.fabric.spec import FabricSpec
from tests.product.frr_library import main, names


def without_daemon(spec: FabricSpec) -> FabricSpec:
    """The specification as BIRD has it; of Cores that are to hash no more is asked."""
    bgp = spec.bgp.model_copy(update={"daemon": "bird"})
    return spec.model_copy(update={"bgp": bgp, "name": "", "core_ports": "auto"})


def test_each_is_the_library_s_with_frr(tmp_path: Path) -> None:
    main(tmp_path)
    runs = load_suite(tmp_path / "suite.yaml", ("uml-virtual-time",)).runs
    assert (
        {run.name for run in runs} == set(names()) == set(catalogue.names()) - {"black-hole-bfd", "segment-tor-crash"}
    )
    for run in runs:
        drill, usual = run.drill, catalogue.load(run.name)
        assert drill.topology.bgp.daemon == "frr"
        assert without_daemon(drill.topology) == without_daemon(usual.topology)
        assert (drill.timeline, drill.expectations) == (usual.timeline, usual.expectations)
