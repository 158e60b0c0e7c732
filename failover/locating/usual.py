"""Comparison of a path with itself: values worse than any of its first seconds. Pure.

If nothing has changed, a value exceeds all of n earlier ones with probability 1 / (n + 1), whatever their distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpn.failover.locating.seen import HEALTHY_LOSS, Counts, Reals, Row

FIRST_NS = 2_000_000_000
"""Time in which a path shows what is usual; a fault in it goes unseen."""


def unusual(
    values: Sequence[Reals], there: Sequence[Row], width_ns: int, room: float, times: float = 1.0
) -> tuple[list[Counts], list[Counts], float]:
    """Return for each path which bins have a value, which of these are worse than usual, and the healthy share of bad.

    ``values``: larger is worse; ``there``: bins that have one. Worse is above ``times`` the largest of the first, and
    ``room``.
    """
    made, bad, sizes = [], [], []
    for value, is_there in zip(values, there, strict=True):
        at = np.flatnonzero(is_there)
        first = at[: np.searchsorted(at, at[0] + FIRST_NS // width_ns)] if at.size else at
        limit = times * value[first].max() + room if first.size else np.inf
        made.append(is_there.astype(np.int64))
        bad.append((is_there & (value > limit)).astype(np.int64))
        sizes += [first.size] if first.size else []
    healthy = float(np.mean([1 / (size + 1) for size in sizes])) if sizes else HEALTHY_LOSS
    return made, bad, healthy
