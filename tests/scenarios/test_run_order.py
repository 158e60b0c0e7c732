"""Every run to be made gets a folder of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.scenarios.drill import catalogue
from hpn.scenarios.run.run_order import Batch


@pytest.mark.parametrize("repeat", [1, 2])
def test_two_drills_of_one_name_get_two_folders(repeat: int) -> None:
    flap = catalogue.load("link-flap")
    other = replace(flap, summary="the same name in another file")
    orders = list(Batch((flap, other, catalogue.load("link-down"), flap), repeat, Path("out"), ()).orders())
    assert len({order.out for order in orders}) == 4 * repeat
    assert orders[0].out == Path("out/link-flap" if repeat == 1 else "out/link-flap-1"), "the first keeps its name"
    assert orders[repeat].out == Path("out/link-flap.2" if repeat == 1 else "out/link-flap.2-1")
