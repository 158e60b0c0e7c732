"""The two-sample test that the model's calibration rests on, and its table of no runs."""

from __future__ import annotations

from pathlib import Path

from hpn.scenarios.model.measured import Measured
from tests.product.model_calibration import table, wanted
from tests.product.model_cells import FAULTS, TOPOLOGIES, cells
from tests.product.model_compared import same_distribution


def test_equal_samples_are_alike_and_others_are_not() -> None:
    one, other = [1.0, 2.0, 3.0, 4.0] * 4, [11.0, 12.0, 13.0, 14.0] * 4
    assert same_distribution(one, one[::-1], 0.01) == 1.0
    assert same_distribution(one, other, 0.01) < 0.01
    assert same_distribution(one, [value + 0.02 for value in one], 0.01) == 1.0, "less than three steps apart"


def test_nothing_is_taken_from_what_is_held_out() -> None:
    assert all(not set(cell.taken_from) & set(cell.held_out) for cell in cells())
    assert {phase for cell in cells() for phase in cell.taken_from} == {1, 2, 4, 5, 6}


def test_a_row_for_each_topology_and_fault(tmp_path: Path) -> None:
    rows = table(tmp_path, Measured()).splitlines()[2:-2]
    assert len(rows) == len(TOPOLOGIES) * len(FAULTS) == 18
    assert len({(phase, cell.name) for phase, cell in wanted()}) == len(list(wanted())) == 138
