"""Number of runs needed to see a difference: power of the rank tests, by resampling existing runs. Pure. Imports numpy.

Changes when another test is made or runs are drawn in another way. For each number of runs, about a thousand samples
are drawn with replacement (from a fixed seed, so repeatable) and tested as in ``exact``. Equal values of a draw are
ranked at random, since new runs would differ. A difference is the Hodges-Lehmann shift, which belongs to these tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hpn.results.comparison.exact import SIGNIFICANT
from hpn.results.judge.repeats.bootstrap import SEED

MOST_RUNS = 1000
"""Maximum number of further runs searched: larger numbers are impractical and would look exact."""
_POWER = 0.8
_EXACT_PAIRS, _EXACT_RUNS = 60, 25
_DRAWN = 200_000
"""Values drawn for each number of runs; the result is then accurate to some 5 %."""
_MOST_DRAWS, _LEAST_DRAWS = 2000, 200
Numbers = npt.NDArray[np.float64]
_NORMAL = np.array([NormalDist().inv_cdf((at + 0.5) / 101) for at in range(101)])


def shift_of_pairs(pairs: Sequence[float]) -> float:
    """Return Hodges and Lehmann's (1963) estimate: the median of the means of all pairs, self-pairs included."""
    halves = _few(pairs) / 2
    return float(np.median((halves[:, None] + halves)[np.triu_indices(len(halves))]))


def shift_of_groups(first: Sequence[float], other: Sequence[float]) -> float:
    """Return the median of all differences between a value of the other group and one of the first."""
    return float(np.median(_few(other)[:, None] - _few(first)))


def _few(values: Sequence[float]) -> Numbers:
    """Return the values, or MOST_RUNS quantiles if there are more, since all pairs of them are formed."""
    ordered = np.sort(np.array(values))
    return ordered if len(ordered) <= MOST_RUNS else ordered[np.linspace(0, len(ordered) - 1, MOST_RUNS).astype(int)]


def pairs_needed(pairs: Sequence[float], difference: float | None = None, figures: int = 1) -> int:
    """Return about how many pairs show such a difference with 80 % power, at 5 % corrected for ``figures`` tests.

    One more than the maximum if MOST_RUNS further pairs are not enough. ``difference``: shift all pairs to it; None:
    leave them unchanged.
    """
    level, values = SIGNIFICANT / figures, _shifted(np.array(pairs), shift_of_pairs(pairs), difference)
    least = next(runs for runs in count(1) if 2 / 2**runs < level)
    return _fewest(least, len(pairs) + MOST_RUNS, lambda runs: _power_of_pairs(values, runs, level))


def runs_of_groups(
    first: Sequence[float], other: Sequence[float], difference: float | None = None, figures: int = 1
) -> int:
    """Return about how many runs of each of two groups are needed; otherwise as ``pairs_needed``."""
    level, one = SIGNIFICANT / figures, np.array(first)
    two = _shifted(np.array(other), shift_of_groups(first, other), difference)
    least = next(runs for runs in count(1) if 2 / math.comb(2 * runs, runs) < level)
    most = min(len(first), len(other)) + MOST_RUNS
    return _fewest(least, most, lambda runs: _power_of_groups(one, two, runs, level))


def _shifted(values: Numbers, seen: float, difference: float | None) -> Numbers:
    return values if difference is None else _smooth(values - seen) + math.copysign(difference, seen)


def _smooth(values: Numbers) -> Numbers:
    """Return the values, each replaced by normal ones around it, with the same variance (Silverman and Young 1987).

    With only a few values, the smallest shift would seem significant, because it separates equal ones.
    """
    spread = float(np.std(values))
    width = 0.9 * spread * len(values) ** -0.2
    if not width or not math.isfinite(width):
        return values
    middle = float(values.mean())
    apart: Numbers = (values[:, None] - middle + width * _NORMAL).ravel() * (spread / math.hypot(spread, width))
    return middle + apart


def _fewest(least: int, most: int, power: Callable[[int], float]) -> int:
    """Return the smallest number with enough power, by doubling and then bisection."""
    low, high = least - 1, least
    while power(high) < _POWER:
        if high >= most:
            return most + 1
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= _POWER else (middle, high)
    return high


def _power_of_pairs(values: Numbers, runs: int, level: float) -> float:
    random, shape = np.random.default_rng(SEED), (_draws(runs), runs)
    drawn = random.integers(0, len(values), shape)
    signs = np.sign(values)[drawn]
    ranks = _ranks(_order(np.abs(values))[drawn] + random.random(shape))
    zeros = (signs == 0).sum(axis=1)  # they have the lowest ranks, and are left out
    totals = np.abs((signs * (ranks - zeros[:, None])).sum(axis=1))
    critical = {left: _critical_of_pairs(int(left), level) for left in np.unique(runs - zeros)}
    return float(np.mean(totals >= np.array([critical[left] for left in runs - zeros])))


def _power_of_groups(one: Numbers, two: Numbers, runs: int, level: float) -> float:
    random, draws = np.random.default_rng(SEED), _draws(runs)
    order = _order(np.concatenate([one, two]))
    drawn = np.hstack(
        [
            order[random.integers(0, len(one), (draws, runs))],
            order[random.integers(len(one), len(order), (draws, runs))],
        ]
    )
    ranks = _ranks(drawn + random.random(drawn.shape))
    totals = np.abs(2 * ranks[:, runs:].sum(axis=1) - runs * (2 * runs + 1))  # from the middle, twice
    return float(np.mean(totals >= _critical_of_groups(runs, level)))


def _draws(runs: int) -> int:
    return max(_LEAST_DRAWS, min(_MOST_DRAWS, _DRAWN // runs))


def _order(values: Numbers) -> Numbers:
    """Return each value's rank among the distinct values, so that a random number below 1 may break ties."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.float64)


def _ranks(drawn: Numbers) -> npt.NDArray[np.int64]:
    """Return the ranks in each row, from 1."""
    found: npt.NDArray[np.int64] = drawn.argsort(axis=1).argsort(axis=1) + 1
    return found


@cache
def _critical_of_pairs(runs: int, level: float) -> float:
    """Return the smallest sum of signed ranks that is rarer than the level; infinite if there is none."""
    if runs > _EXACT_PAIRS:
        return _far(level) * math.sqrt(runs * (runs + 1) * (2 * runs + 1) / 6)
    ways = np.ones(1)
    for rank in range(1, runs + 1):  # distribution of the sum of positive ranks
        ways = (np.append(ways, np.zeros(rank)) + np.append(np.zeros(rank), ways)) / 2
    return _critical(ways, level)


@cache
def _critical_of_groups(runs: int, level: float) -> float:
    """Return twice the smallest distance of a rank sum from its mean that is rarer than the level, for two groups."""
    if runs > _EXACT_RUNS:
        return _far(level) * runs * math.sqrt((2 * runs + 1) / 3)
    ways = np.zeros((runs + 1, runs * runs + 1))  # by members and by Mann and Whitney's U
    ways[0, 0] = 1
    for rank in range(2 * runs):
        for members in range(min(runs, rank + 1), 0, -1):
            over = rank - (members - 1)  # members of the other group below this one
            if 0 <= over <= runs:
                ways[members, over:] += ways[members - 1, : runs * runs + 1 - over]
    return _critical(ways[runs] / ways[runs].sum(), level)


def _critical(ways: Numbers, level: float) -> float:
    """Return twice the smallest distance from the mean at which both tails together are rarer than the level.

    ``ways``: the probabilities of 0, 1, ...
    """
    last = len(ways) - 1
    tails = 2 * np.cumsum(ways)[: (last + 1) // 2]
    rare = np.nonzero(tails < level)[0]
    return float(last - 2 * rare[-1]) if len(rare) else math.inf


def _far(level: float) -> float:
    return NormalDist().inv_cdf(1 - level / 2)
