"""The two-sample test that the model's calibration rests on, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hpn.scenarios.model.failover_times import FailoverTimes
from tests.product.model_calibration import Row, detail, rows, summary, wanted
from tests.product.model_cells import TOPOLOGIES, cells
from tests.product.model_compared import Compared, Largest, same_distribution


def test_equal_samples_are_alike_and_others_are_not() -> None:
    one, other = [1.0, 2.0, 3.0, 4.0] * 4, [11.0, 12.0, 13.0, 14.0] * 4
    assert same_distribution(one, one[::-1], 0.01) == 1.0
    assert same_distribution(one, other, 0.01) < 0.01
    assert same_distribution(one, [value + 0.02 for value in one], 0.01) == 1.0, "less than three steps apart"


def test_nothing_is_taken_from_what_is_held_out() -> None:
    assert all(not set(cell.taken_from) & set(cell.held_out) for cell in cells())
    assert {phase for cell in cells() for phase in cell.taken_from} == {1, 2, 4, 5, 6}


def test_a_row_for_each_topology_and_fault_and_one_for_each_topology() -> None:
    found = tuple(rows({}, FailoverTimes()))
    assert len(detail(found).splitlines()[2:]) == 3 * len(TOPOLOGIES) == 33
    assert len(summary(found).splitlines()[2:-2]) == len(TOPOLOGIES)
    each = [(phase, cell.name) for phase, of_phase in wanted().items() for cell in of_phase]
    assert len(set(each)) == len(each) == 270


def test_the_row_of_a_topology_has_the_worst_of_its_faults() -> None:
    cut = _streams(load=0.01, home_s=((2.4, 2.5), (2.4,)), alike=1.0)
    crash = _streams(load=0.02, home_s=((1.9,), (2.0,)), alike=0.14)
    found = (Row("hpn", "link-down", cut, _job(100, 110)), Row("hpn", "tor-crash", crash, _job(100, 150, "overload")))
    line = "| hpn | 2.0% | 0.0% | - | 1.9 to 2.5; 2.0 to 2.4 | 0.14 | 0.0% | 10.0% | - |"
    assert line in summary(found).splitlines()
    assert summary(found).endswith(
        "Of 8 paths of queue pairs before, in and after the faults, 2 differ from the lab's.\n"
    )
    assert "| hpn | tor-crash | 2.0% | 0.0% | - | 1.9; 2.0 | 0.14 | 0.0% | not trusted | - |" in detail(found)


def test_a_job_that_overloads_links_without_a_fault_is_trusted_in_no_window() -> None:
    found = (Row("full-mesh", "link-down", None, replace(_job(100, 150, "overload"), always=True)),)
    assert summary(found).splitlines()[2].endswith("| not trusted | not trusted | - |")


def _streams(*, load: float, home_s: tuple[Sequence[float], Sequence[float]], alike: float) -> Compared:
    return Compared((4, 1), Largest(load, None), Largest(0.0, 0.3), None, home_s, alike, (), ())


def _job(lab_ms: float, model_ms: float, *doubts: str) -> Compared:
    nothing = Largest(None, None)
    times = (("before", 100.0, 100.0), ("after failure", lab_ms, model_ms))
    return Compared((0, 0), nothing, nothing, None, ((), ()), None, times, doubts)
