"""One drill on several engines: medians side by side, and a named cause for each difference."""

from __future__ import annotations

from dataclasses import replace

from failover.analysis.model import DrillMetrics
from results.comparison.causes import CPU_COST, UNEXPLAINED
from results.engines import Difference, engine_tables, side_by_side
from results.run.manifest import Manifest
from tests.results.sample import MANIFEST, metrics, other_run
from tests.results.shown import as_text

KERNEL = replace(MANIFEST, engine="qemu", datapath="kernel")
VIRTUAL = replace(MANIFEST, engine="uml-virtual-time", datapath="kernel")
FAILURE = metrics().edges[0].edge.label


def worst(found: tuple[Difference, ...]) -> Difference:
    return next(d for d in found if (d.edge, d.figure) == (FAILURE, "worst outage"))


def compare(*runs: tuple[Manifest, DrillMetrics]) -> Difference:
    return worst(side_by_side(runs))


def test_medians_stand_side_by_side_in_the_order_given() -> None:
    base = metrics()
    repeats = [(KERNEL, other_run(base, ms)) for ms in (30.0, 90.0, 50.0)]
    found = compare((MANIFEST, other_run(base, 20.0)), *repeats)
    assert dict(found.values_ms) == {"host/nft": 20.0, "qemu/kernel": 50.0}


def test_a_difference_inside_the_noise_is_agreement() -> None:
    base = metrics()
    found = compare((MANIFEST, other_run(base, 20.0)), (KERNEL, other_run(base, 20.1)))
    assert found.reasons["qemu/kernel"].startswith("agrees: 18.08..21.92 and 18.18..22.02 ms")


def test_bonding_that_is_slower_at_a_failure_is_explained_by_miimon_and_at_a_repair_by_lacp() -> None:
    base = metrics()
    found = compare((MANIFEST, other_run(base, 20.0)), (KERNEL, other_run(base, 500.0)))
    assert found.reasons["qemu/kernel"] == (
        "miimon: Linux bonding looks at carrier every 10 ms and writes its ports when it next gets the lock"
    )
    repair = base.edges[1]
    slow = replace(repair, phases=replace(repair.phases, converge=replace(repair.phases.converge, ms=2400.0)))
    fast = replace(repair, phases=replace(repair.phases, converge=replace(repair.phases.converge, ms=300.0)))
    both = side_by_side(
        [(m, replace(base, edges=(base.edges[0], edge))) for m, edge in ((MANIFEST, fast), (KERNEL, slow))]
    )
    (converge,) = (d for d in both if (d.edge, d.figure) == (repair.edge.label, "converge"))
    assert converge.reasons["qemu/kernel"] == (
        "LACP timers: Linux bonding selects a repaired port anew and waits 2 s before it aggregates (802.1AX 6.4.4), in"
        " steps of 100 ms"
    )


def test_no_cause_is_named_for_the_side_that_it_makes_slower_when_that_side_was_faster() -> None:
    base = metrics()
    found = compare((MANIFEST, other_run(base, 500.0)), (KERNEL, other_run(base, 20.0)))
    assert found.reasons == {"qemu/kernel": UNEXPLAINED}
    nft = replace(VIRTUAL, datapath="nft")
    found = compare((MANIFEST, other_run(base, 20.0)), (nft, other_run(base, 500.0)))
    assert found.reasons == {"uml-virtual-time/nft": UNEXPLAINED}


def test_a_datapath_of_a_plug_in_that_is_not_loaded_is_named_as_unknown() -> None:
    base = metrics()
    mine = replace(MANIFEST, engine="uml", datapath="mine")
    found = compare((MANIFEST, other_run(base, 20.0)), (mine, other_run(base, 500.0)))
    told = "nothing is known here of the mine datapath (a plug-in?)"
    assert found.reasons == {"uml/mine": told}


def test_virtual_time_and_a_busy_host_are_named() -> None:
    base = replace(metrics(), inconclusive=("4 senders paused",))
    found = compare((KERNEL, other_run(base, 500.0)), (VIRTUAL, other_run(metrics(), 20.0)))
    assert CPU_COST in found.reasons["uml-virtual-time/kernel"]
    assert "CPU noise on qemu/kernel: 4 senders paused" in found.reasons["uml-virtual-time/kernel"]


def test_what_nothing_explains_is_called_so() -> None:
    base = metrics()
    same = replace(MANIFEST, engine="uml")
    assert compare((MANIFEST, other_run(base, 20.0)), (same, other_run(base, 500.0))).reasons == {
        "uml/nft": UNEXPLAINED
    }


def test_a_figure_an_engine_lacks_is_shown_as_missing_and_each_reason_once() -> None:
    base = metrics()
    without = replace(base, edges=base.edges[1:])
    found = side_by_side([(MANIFEST, base), (KERNEL, without)])
    assert worst(found).values_ms["qemu/kernel"] is None
    shown = "".join(as_text(part) for part in engine_tables(found))
    assert "failover times in ms" in shown
    assert shown.count("not measured") == 1
    assert side_by_side([]) == ()
    assert engine_tables(()) == []
