"""Entropy values of a multipath queue pair: an equal share of each port, none twice, and the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from hpn.traffic.flows.entropy import entropy_values
from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec

FLOW = FlowSpec(3, "a>b", "a", "b", "10.0.0.1", "10.0.0.2", 50_000, 50_001, 100.0)


@dataclass(frozen=True)
class _Lag:
    """A NIC whose LAG hashes badly: three of four source ports leave by port 0 of those that are up."""

    many: int
    up: Sequence[int]

    def ports(self, nic: str) -> int:
        return self.many

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        return self.up[0 if sport % 4 else sport // 4 % len(self.up)]

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        raise AssertionError("links do not matter")

    def rate_bps(self, link: str) -> int:
        raise AssertionError("links do not matter")


@pytest.mark.parametrize(("ports", "count"), [(1, 16), (2, 128), (2, 3), (4, 64), (8, 256), (8, 20)])
def test_each_port_has_an_equal_share_give_or_take_one(ports: int, count: int) -> None:
    values = entropy_values(FLOW, count, _Lag(ports, range(ports)), seed=1)
    shares = Counter(value.port for value in values)
    assert len({value.sport for value in values}) == len(values) == count
    assert max(shares.values()) - min(shares.values()) <= 1
    assert len(shares) == min(ports, count)
    assert all(SPORT_MIN <= value.sport <= SPORT_MAX for value in values)
    assert [value.port for value in values[:ports]] == list(range(min(ports, count))), "ports take turns"


def test_values_are_drawn_by_the_seed_and_the_queue_pair() -> None:
    lag = _Lag(2, (0, 1))
    assert entropy_values(FLOW, 32, lag, 1) == entropy_values(FLOW, 32, lag, 1)
    assert entropy_values(FLOW, 32, lag, 1) != entropy_values(FLOW, 32, lag, 2)


def test_while_a_port_is_down_its_share_leaves_by_the_others() -> None:
    values = entropy_values(FLOW, 32, _Lag(2, (1,)), 1)
    assert len(values) == 32
    assert {value.port for value in values} == {1}
