"""Max-min rates against linear programming, which knows nothing of links that fill: scipy's HiGHS (make extras)."""

from __future__ import annotations

import numpy as np
import pytest

from hpn.traffic.fluid.solve import Floats, max_min

optimize = pytest.importorskip("scipy.optimize")

SOLVER = 1e-6  # HiGHS meets its constraints to 1e-7


def _most(weights: Floats, uses: Floats, capacity: Floats, bounds: list[tuple[float, float]]) -> tuple[float, Floats]:
    """The largest weighted sum of rates, and the rates; the last variable is the level that all have at least."""
    found = optimize.linprog(-weights, A_ub=uses, b_ub=capacity, bounds=bounds, method="highs")
    assert found.success, found.message
    return -float(found.fun), np.asarray(found.x)


def lexicographic(uses: Floats, capacity: Floats, demand: Floats) -> Floats:
    """Raise the least rate as far as it goes, fix the flows that no allocation with it gives more, and so on."""
    flows = uses.shape[1]
    fixed = np.full(flows, np.nan)
    while np.isnan(fixed).any():
        free = np.flatnonzero(np.isnan(fixed))
        at_least = np.zeros((len(free), flows + 1))  # level - rate <= 0
        at_least[np.arange(len(free)), free], at_least[:, -1] = -1, 1
        table = np.vstack([np.column_stack([uses, np.zeros(len(uses))]), at_least])
        limits = np.concatenate([capacity, np.zeros(len(free))])
        bounds = [(0.0, d) if np.isnan(f) else (f * (1 - SOLVER), f) for f, d in zip(fixed, demand, strict=True)]
        level, _ = _most(np.eye(flows + 1)[-1], table, limits, [*bounds, (0.0, demand[free].max())])
        held = [*bounds, (level * (1 - SOLVER), level)]
        most = [_most(np.eye(flows + 1)[flow], table, limits, held)[0] for flow in free]
        tight = free[np.array(most) <= level * (1 + 30 * SOLVER) + 1e-9]
        assert len(tight)
        fixed[tight] = level
    return fixed


@pytest.mark.parametrize("seed", range(25))
def test_rates_are_lexicographically_the_largest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    links, flows = int(rng.integers(1, 7)), int(rng.integers(2, 9))
    paths = np.array([rng.permutation(links + 2)[:2] for _ in range(flows)])  # some name fewer than two links
    paths[paths >= links] = -1
    paths[:, 0] = np.where((paths < 0).all(axis=1), 0, paths[:, 0])
    capacity = rng.choice([1.0, 2.0, 4.0, 10.0], links) * rng.choice([1.0, rng.uniform(0.5, 2)], links)
    demand = rng.choice([0.3, 1.0, 100.0], flows)
    uses = np.array([[float(link in path) for path in paths] for link in range(links)])
    found = max_min(paths.astype(np.int32), capacity, demand)
    np.testing.assert_allclose(found, lexicographic(uses, capacity, demand), rtol=1e-4)
