"""Two cables with their far ends exchanged: which go together, what else may be there, how a drill file says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.failover.faults import MS, AdminDown, CablesSwapped, End, Fault, HostDown, PlannedFault, SilentDrop, settled
from hpn.failover.faults.compose import clash
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.document import parse

FABRIC = build(PRESETS["tiny"].spec)
ONE, BESIDE = "p0.s0.h0.r0.0", "p0.s0.h0.r1.0"
UPLINK = next(link.name for link in FABRIC.links if link.is_routed)
S = 1000 * MS


def test_without_a_second_cable_the_next_one_of_its_kind_and_plane_is_meant() -> None:
    for link in FABRIC.links:
        fault = settled(CablesSwapped(link.name), FABRIC)
        one, other = fault.links_hit(FABRIC)
        assert one is link
        assert other is not link
        assert (one.kind, one.plane, one.rate_bps) == (other.kind, other.plane, other.rate_bps)


@pytest.mark.parametrize(
    ("other", "told"),
    [(ONE, "cannot be exchanged with itself"), (UPLINK, "is not of the kind and rate"), ("p0.s0.h9.r0.0", "no link")],
)
def test_a_second_cable_that_cannot_be_is_refused_with_file_and_line(other: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        settled(CablesSwapped(ONE, other), FABRIC)
    text = f"""drill: swapped
summary: x
topology: tiny
timeline:
  healthy: 1 s
  faults:
    - {{fault: cables-swapped, target: {ONE}, at: 1 s, for: 1 s,
       with: {other}}}
expect:
  - state_restored: yes
"""
    with pytest.raises(InputError, match=rf"swapped\.yaml:[78]: .*{told}"):
        drill_from(parse(text, "swapped.yaml"), Path())


@pytest.mark.parametrize("other", [AdminDown(BESIDE, End.HOST), HostDown("p0.s0.h0"), CablesSwapped(BESIDE, ONE)])
def test_nothing_may_take_the_carrier_of_a_cable_that_moves(other: Fault) -> None:
    moved = PlannedFault("moved", settled(CablesSwapped(ONE, BESIDE), FABRIC), 2 * S, S)
    there = PlannedFault("other", other, 2 * S, S)
    assert clash(moved, there, FABRIC) == clash(there, moved, FABRIC) != ""


def test_a_loss_on_a_cable_that_moves_is_of_its_port() -> None:
    moved = PlannedFault("moved", settled(CablesSwapped(ONE, BESIDE), FABRIC), 2 * S, S)
    assert clash(moved, PlannedFault("loss", SilentDrop(ONE, 0.01), 2 * S, S), FABRIC) == ""
