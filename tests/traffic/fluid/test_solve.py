"""Rates against textbook water filling, what makes an allocation max-min, and sums by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.traffic.fluid.solve import Floats, Indices, link_load, max_min, proportional_drop

INF = float("inf")


@dataclass(frozen=True)
class Case:
    """A small network: links of each flow, capacities, demands."""

    paths: list[list[int]]
    capacity: list[float]
    demand: list[float]

    @property
    def array(self) -> Indices:
        """Paths as the solver takes them."""
        hops = max(map(len, self.paths), default=0)
        return np.array([path + [-1] * (hops - len(path)) for path in self.paths], np.int32).reshape(
            len(self.paths), hops
        )

    def solved(self) -> Floats:
        """By the code."""
        return max_min(self.array, np.array(self.capacity), np.array(self.demand))


def water_filling(case: Case) -> list[float]:
    """The textbook's: raise all rates alike until a link is full or a flow sated, freeze those, go on."""
    rates = [0.0] * len(case.paths)
    growing = set(range(len(rates)))
    while growing:
        steps = [case.demand[flow] - rates[flow] for flow in growing]
        for link, capacity in enumerate(case.capacity):
            on = [flow for flow, path in enumerate(case.paths) if link in path]
            if up := [flow for flow in on if flow in growing]:
                steps.append((capacity - sum(rates[flow] for flow in on)) / len(up))
        step = max(0.0, min(steps))
        if step == INF:
            return [INF if flow in growing else rate for flow, rate in enumerate(rates)]
        for flow in growing:
            rates[flow] += step
        growing -= {flow for flow in growing if rates[flow] >= case.demand[flow] * (1 - 1e-13)}
        for link, capacity in enumerate(case.capacity):
            on = [flow for flow, path in enumerate(case.paths) if link in path]
            if sum(rates[flow] for flow in on) >= capacity * (1 - 1e-13):
                growing -= set(on)
    return rates


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to 12 flows over up to 8 links, some dead, some flows with a demand."""
    links = draw(st.integers(1, 8))
    path = st.lists(st.integers(0, links - 1), max_size=4, unique=True)
    paths = draw(st.lists(path, min_size=1, max_size=12))
    rate = st.floats(1e6, 1e12)
    capacity = draw(st.lists(st.one_of(rate, st.sampled_from([0.0, 1e9, 2e11])), min_size=links, max_size=links))
    demand = draw(st.lists(st.one_of(rate, st.sampled_from([0.0, INF])), min_size=len(paths), max_size=len(paths)))
    return Case(paths, capacity, demand)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_rates_are_those_of_textbook_water_filling(case: Case) -> None:
    np.testing.assert_allclose(case.solved(), water_filling(case), rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_each_flow_is_sated_or_has_a_full_link_where_nobody_has_more(case: Case) -> None:
    """What max-min means, whoever finds it (Bertsekas and Gallager, proposition 6.1)."""
    rates = case.solved()
    load = link_load(case.array, np.where(np.isinf(rates), 0, rates), len(case.capacity))
    assert (load <= np.array(case.capacity) * (1 + 1e-9)).all()
    for flow, path in enumerate(case.paths):
        sated = rates[flow] >= case.demand[flow]
        assert sated or any(_holds_up(case, rates, load, flow, link) for link in path)


def _holds_up(case: Case, rates: Floats, load: Floats, flow: int, link: int) -> bool:
    most = max(rates[other] for other, path in enumerate(case.paths) if link in path)
    return bool(load[link] >= case.capacity[link] * (1 - 1e-9) and rates[flow] >= most * (1 - 1e-9))


def test_a_pod_sized_random_instance_is_max_min() -> None:
    """Twenty thousand flows over four tiers, by the definition: textbook filling would take minutes."""
    rng = np.random.default_rng(7)
    paths = np.stack([rng.integers(0, 500, 20_000) + 500 * tier for tier in range(4)], axis=1).astype(np.int32)
    capacity = rng.uniform(1e9, 4e11, 2000)
    rates = max_min(paths, capacity)
    load = link_load(paths, rates, 2000)
    most = np.zeros(2000)
    np.maximum.at(most, paths.ravel(), np.repeat(rates, 4))
    full = load >= capacity * (1 - 1e-9)
    assert (load <= capacity * (1 + 1e-9)).all()
    assert (full[paths] & (rates[:, None] >= most[paths] * (1 - 1e-9))).any(axis=1).all()


@pytest.mark.parametrize(
    ("paths", "capacity", "demand", "rates"),
    [
        ([[0], [0], [1]], [10, 7], [INF] * 3, [5, 5, 7]),
        ([[0, 1], [0], [1]], [10, 30], [INF] * 3, [5, 5, 25]),
        ([[0], [0]], [10], [2, INF], [2, 8]),
        ([[0], [1]], [0, 4], [INF] * 2, [0, 4]),
        ([[], []], [1], [3, INF], [3, INF]),
        ([[0, 0], [0]], [10], [INF] * 2, [5, 5]),
    ],
    ids=["shared", "chain", "demand", "dead", "in the host", "named twice"],
)
def test_small_cases_by_hand(
    paths: list[list[int]], capacity: Sequence[float], demand: list[float], rates: list[float]
) -> None:
    assert Case(paths, [*map(float, capacity)], demand).solved().tolist() == rates


def test_no_flows_have_no_rates() -> None:
    assert max_min(np.zeros((0, 4), np.int32), np.ones(3)).shape == (0,)


@pytest.mark.parametrize(
    ("paths", "capacity", "demand"),
    [
        ([[2]], [1.0, 1.0], None),
        ([[-2]], [1.0], None),
        ([[0]], [-1.0], None),
        ([[0]], [INF], None),
        ([[0]], [float("nan")], None),
        ([[0]], [1.0], [1.0, 2.0]),
        ([[0]], [1.0], [-1.0]),
        ([[0]], [1.0], [float("nan")]),
    ],
)
def test_arrays_that_make_no_network_are_refused(
    paths: list[list[int]], capacity: list[float], demand: list[float] | None
) -> None:
    with pytest.raises(ValueError):
        max_min(np.array(paths, np.int32), np.array(capacity), None if demand is None else np.array(demand))


def test_a_full_link_drops_the_same_share_of_each_flow_hop_after_hop() -> None:
    paths = np.array([[0, 1], [0, -1], [1, -1]], np.int32)
    delivered, load = proportional_drop(paths, np.array([10.0, 6.0]), np.array([15.0, 5.0, 5.0]))
    # Link 0 is offered 20 and passes half; link 1 gets 7.5 of flow 0 and 5 of flow 2 and passes 6 of 12.5.
    assert load.tolist() == [20.0, 12.5]
    np.testing.assert_allclose(delivered, [7.5 * 6 / 12.5, 2.5, 5 * 6 / 12.5], rtol=1e-12)


def test_constant_rates_that_fit_arrive_whole_and_a_dead_link_passes_nothing() -> None:
    paths = np.array([[0], [1], [-1]], np.int32)
    delivered, load = proportional_drop(paths, np.array([10.0, 0.0]), np.array([9.0, 4.0, 3.0]))
    assert (delivered.tolist(), load.tolist()) == ([9.0, 0.0, 3.0], [9.0, 4.0])


def test_paths_that_feed_each_other_settle() -> None:
    paths = np.array([[0, 1], [1, 0]], np.int32)
    delivered, load = proportional_drop(paths, np.array([10.0, 10.0]), np.array([30.0, 30.0]))
    passed = 10 / load[0]
    assert load[0] == pytest.approx(30 + 30 * passed)  # what it is offered first hand, and what the other link passed
    np.testing.assert_allclose(delivered, 30 * passed * passed, rtol=1e-9)


def test_load_is_the_sum_of_rates() -> None:
    paths = np.array([[0, 1], [1, -1]], np.int32)
    assert link_load(paths, np.array([2.0, 3.0]), 3).tolist() == [2.0, 5.0, 0.0]
