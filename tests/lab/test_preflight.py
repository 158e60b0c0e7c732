"""What a machine lacks for a lab is said before it starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.lab.service import preflight
from hpn.testbed.routing.daemons import DAEMONS


@pytest.mark.parametrize(("preset", "least_mb", "most_mb"), [("medium", 149, 450), ("segment", 1034, 1600)])
def test_a_lab_is_refused_where_less_memory_is_free_than_one_was_measured_to_take(
    preset: str, least_mb: int, most_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = build(load_topology(preset))
    name = fabric.spec.bgp.daemon
    monkeypatch.setattr(preflight, "kinds_of", lambda _fabric: (replace(DAEMONS[name], missing=lambda: None),))
    monkeypatch.setattr(preflight, "neighbour_limit", lambda: 10**6)
    monkeypatch.setattr(preflight, "available_memory", lambda: least_mb << 20)
    with pytest.raises(MachineError, match=rf"about \d+ MB of memory and {least_mb} MB are free"):
        preflight.check(fabric)
    monkeypatch.setattr(preflight, "available_memory", lambda: most_mb << 20)
    preflight.check(fabric)
