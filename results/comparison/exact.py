"""Exact tests of differences between two groups of runs, Cliff's delta, and Holm's correction. Pure. Imports numpy.

Changes when another test is made. Pairs: Wilcoxon's signed-rank test, or the sign test if a bound leaves ranks open.
Groups: the Mann-Whitney test. Both count all orders, including ties, so they are exact. If a bound leaves the order of
two values open, effect size and probability are not determined; no number is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.results.comparison.intervals import Span

SIGNIFICANT = 0.05
_EXACT_RUNS = 60
"""Maximum runs of both groups for an exact test; more use the normal distribution, and the output says so."""
_EXACT_PAIRS = 150
_DIGITS = 9
"""Decimals of a difference; smaller digits are rounding errors of binary fractions."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A two-sided test; ``p`` is None if not determined."""

    name: str
    p: float | None
    exact: bool = True


def cliffs_delta(first: Sequence[Span], other: Sequence[Span]) -> Span:
    """Return how much more often a value of the other group is larger than smaller: -1 to 1 (Cliff 1993)."""
    low = sum(_sign(two.low, one.high) for one in first for two in other)
    high = sum(_sign(two.high, one.low) for one in first for two in other)
    of = len(first) * len(other)
    return Span(low / of, high / of)


def mann_whitney(first: Sequence[Span], other: Sequence[Span]) -> Tested:
    """Test if two groups have the same distribution, by the order of their values."""
    name = "Mann-Whitney"
    if not cliffs_delta(first, other).known:
        return Tested(name, None)
    pooled = [*first, *other]
    scores = [sum((one.low > two.high) - (one.high < two.low) for two in pooled) for one in pooled]
    total, of = sum(scores[len(first) :]), len(other)
    if len(pooled) > _EXACT_RUNS:
        spread = len(first) * of / (len(pooled) * (len(pooled) - 1)) * sum(score**2 for score in scores)
        return Tested(name, _by_normal(total, spread), exact=False)
    reach = sum(map(abs, scores))
    ways = np.zeros((of + 1, 2 * reach + 1))
    ways[0, reach] = 1
    for score in scores:
        ways[1:] += np.roll(ways[:-1], score, axis=1)
    return Tested(name, _share_beyond(ways[of], reach, total))


def signed(pairs: Sequence[Span]) -> Tested:
    """Test if differences of pairs are centred on 0. Pairs that do not differ are left out."""
    if all(each.known for each in pairs):
        return _signed_rank([each.low for each in pairs if each.low])
    signs = [(_sign(each.low, 0.0), _sign(each.high, 0.0)) for each in pairs]
    if any(low != high for low, high in signs):
        return Tested("sign", None)
    up, down = (sum(low == way for low, _ in signs) for way in (1, -1))
    tail = sum(math.comb(up + down, k) for k in range(min(up, down) + 1)) / 2 ** (up + down)
    return Tested("sign", min(1.0, 2 * tail))


def _signed_rank(found: Sequence[float]) -> Tested:
    name = "Wilcoxon signed-rank"
    sizes = np.round(np.abs(np.array(found)), _DIGITS)
    ranks = [int((sizes < each).sum() + (sizes <= each).sum() + 1) for each in sizes]  # twice the rank, ties shared
    total = sum(rank if each > 0 else -rank for rank, each in zip(ranks, found, strict=True))
    if len(ranks) > _EXACT_PAIRS:
        return Tested(name, _by_normal(total, sum(rank**2 for rank in ranks)), exact=False)
    reach = sum(ranks)
    ways = np.zeros(2 * reach + 1)
    ways[reach] = 1
    for rank in ranks:
        ways = (np.roll(ways, rank) + np.roll(ways, -rank)) / 2
    return Tested(name, _share_beyond(ways, reach, total))


def holm(chances: Sequence[float]) -> list[float]:
    """Return the probabilities corrected for multiple tests (Holm 1979)."""
    ordered = sorted(range(len(chances)), key=chances.__getitem__)
    found, least = [0.0] * len(chances), 0.0
    for done, at in enumerate(ordered):
        least = max(least, min(1.0, (len(chances) - done) * chances[at]))
        found[at] = least
    return found


def _sign(one: float, other: float) -> int:
    return (one > other) - (one < other)


def _share_beyond(ways: npt.NDArray[np.float64], middle: int, total: int) -> float:
    """Return the share of all orders that are at least as far from the middle."""
    far = np.abs(np.arange(len(ways)) - middle) >= abs(total)
    return min(1.0, float(ways[far].sum() / ways.sum()))


def _by_normal(total: float, spread: float) -> float:
    return math.erfc(abs(total) / math.sqrt(2 * spread)) if spread else 1.0
