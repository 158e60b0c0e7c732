"""Daemons in direct networks: a ToR announces all it learns to every neighbour, and only its subnet when it drains."""

from __future__ import annotations

from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.routing.bird.config import config
from hpn.testbed.routing.frr.config import bgpd, filter_of
from hpn.testbed.routing.neighbours import neighbours

FABRIC = load_fabric("tiny-torus")
TOR = FABRIC.node("p0.s4.t0.0")
"""A ToR with neighbours before it and after it: of either end one connects."""


def test_a_tor_has_a_session_over_each_of_its_links_and_one_end_connects() -> None:
    found = neighbours(FABRIC, TOR)
    assert sorted(each.above for each in found) == [False, False, True, True]
    for each in found:
        [back] = [there for there in neighbours(FABRIC, FABRIC.node(each.node)) if there.node == TOR.name]
        assert back.above != each.above


def _exports(text: str) -> list[str]:
    """What the sessions of each template announce."""
    return [template.partition("export ")[2].partition(";")[0] for template in text.split("\ntemplate bgp ")[1:]]


def test_bird_announces_all_to_every_neighbour_and_only_the_subnet_when_it_drains() -> None:
    assert _exports(config(FABRIC, TOR)) == ["all", "all"]
    assert _exports(config(FABRIC, TOR, draining=True)) == ["where source = RTS_STATIC"] * 2


def test_frr_announces_all_to_every_neighbour_and_only_its_own_when_it_drains() -> None:
    filters = [filter_of(each) for each in neighbours(FABRIC, TOR)]
    assert not any(each in bgpd(FABRIC, TOR) for each in filters)
    assert all(each in bgpd(FABRIC, TOR, draining=True) for each in filters)
