"""The source ports of a sprayed queue pair lead where they should."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN
from hpn.traffic.flows.spraying import sprayed
from tests.traffic.test_paths import AGGS, Fabric, flow

anchors = st.integers(SPORT_MIN, SPORT_MAX)


def _agg(sport: int) -> int:
    return sport // 2 % AGGS


@given(anchors, st.integers(2, 16), st.integers(0, 9))
def test_paths_apart_share_no_link_between_switches_behind_one_port_of_the_nic(
    anchor: int, ports: int, seed: int
) -> None:
    found = sprayed(flow(1, "x", "y", anchor), ports, Fabric(), set(), apart=True, seed=seed)
    assert found[0] == anchor
    assert {sport % 2 for sport in found} == {anchor % 2}
    assert len({_agg(sport) for sport in found}) == len(found) == min(ports, AGGS)


@given(anchors, st.integers(2, 64), st.integers(0, 9))
def test_drawn_ones_are_as_many_as_asked_behind_one_port_and_nobody_else_s(anchor: int, ports: int, seed: int) -> None:
    taken = set(range(SPORT_MIN, SPORT_MIN + 8000))
    found = sprayed(flow(1, "x", "y", anchor), ports, Fabric(), taken, apart=False, seed=seed)
    assert found[0] == anchor
    assert len(set(found)) == len(found) == ports
    assert {sport % 2 for sport in found} == {anchor % 2}
    assert not taken.intersection(found[1:])
    assert all(SPORT_MIN <= sport <= SPORT_MAX for sport in found)
    assert found == sprayed(flow(1, "x", "y", anchor), ports, Fabric(), taken, apart=False, seed=seed)


class Cut(Fabric):
    """Nothing arrives by the last Agg of a plane."""

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> list[str]:
        return [] if _agg(sport) == AGGS - 1 else list(super().links(src_nic, dst_nic, sport, bound))


def test_a_path_on_which_nothing_arrives_is_none() -> None:
    found = sprayed(flow(1, "x", "y", SPORT_MIN), AGGS, Cut(), set(), apart=True, seed=1)
    assert {_agg(sport) for sport in found} == set(range(AGGS - 1))
