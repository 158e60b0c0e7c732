"""Links between ToRs of a direct network in figures: whose they are, how even, and whether one can be spared."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hpn.failover.analysis.placement import DataPath, spreads
from hpn.failover.analysis.port_sampling import Ports, watched
from hpn.failover.locating.draining import decide
from hpn.failover.locating.parts import Part, PartKind, Suspect
from hpn.failover.locating.seen import Accused
from hpn.failover.locating.siblings import siblings
from hpn.testbed.fabric.load import load_fabric

RING = load_fabric("tiny-torus")
LINK = "p0.s3.t0.0-p0.s4.t0.0"


def way(number: int, *places: int) -> DataPath:
    """From the host of the first ToR to that of the last."""
    links = [f"p0.s{places[0]}.h0.r0.0"]
    for here, there in pairwise(places):
        low, high = sorted((here, there))
        links.append(f"p0.s{low}.t0.0-p0.s{high}.t0.0")
    return DataPath(number, str(number), (*links, f"p0.s{places[-1]}.h0.r0.0"), None)


def test_links_between_tors_are_a_tier_of_their_own_in_the_direction_of_each_sender() -> None:
    tiers = {each.tier: each for each in spreads(RING, [way(0, 3, 4), way(1, 4, 3), way(2, 4, 5)], lambda _: True)}
    assert list(tiers) == ["host up", "tor mesh", "tor down"]
    mesh = tiers["tor mesh"]
    assert (mesh.links, mesh.crossings, mesh.most, mesh.polarisation) == (8, 3, 1, None)
    assert mesh.imbalance == pytest.approx(8 / 3)
    downwards = {each.tier: each for each in spreads(RING, [way(0, 4, 3)], lambda _: True)}["tor mesh"]
    assert (downwards.links, downwards.crossings, downwards.most) == (4, 1, 1)
    lost = spreads(RING, [way(0, 3, 4)], lambda link: link != "p0.s3.t0.0-p0.s5.t0.0")
    assert next(each.links for each in lost if each.tier == "tor mesh") == 3


def test_ports_between_tors_are_neither_up_nor_down() -> None:
    tiers = {port.tier for port in watched(RING, Ports.SWITCHES)}
    assert tiers == {"tor down", "tor mesh"}


def test_a_link_between_tors_is_spared_if_the_others_carry_what_its_switch_sends() -> None:
    others = [each.name for each in siblings(RING, RING.link(LINK))]
    assert len(others) == 4
    accused = Accused(Suspect((Part(PartKind.DIRECTION, LINK, True),)), 0.5, 0.99)
    away = {(name, RING.link(name).lower.node == "p0.s3.t0.0"): 0.9 * RING.link(name).rate_bps for name in others}
    assert decide(RING, accused, away).draining == pytest.approx(1 - 3 / 3.6)
    towards = {(name, not up): rate for (name, up), rate in away.items()}
    assert decide(RING, accused, towards).leaving == 0.0
