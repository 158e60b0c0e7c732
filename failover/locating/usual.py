"""Comparison of a path with itself: values worse than any of its first seconds. Pure.

If nothing has changed, a value exceeds all of n earlier ones with probability 1 / (n + 1), whatever their distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpn.failover.locating.seen import HEALTHY_LOSS, Counts, Reals, Row

FIRST_NS = 2_000_000_000
"""Time in which a path shows what is usual; a fault in it goes unseen."""
_FIRST_NS = 1_000_000_000
_TIMES, _MOST = 2.0, 0.5


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


def usual_share(made: Sequence[Counts], bad: Sequence[Counts], there: Sequence[Row], width_ns: int) -> Reals:
    """Return for each path the share of bad ones up to which it may be well: twice that of its first second.

    Of that second the worse half counts. Queues that overflow lose packets of a healthy network, not always alike.
    """
    shares = [_at_first(*path, width_ns) for path in zip(made, bad, there, strict=True)]
    return np.clip(_TIMES * np.array(shares), HEALTHY_LOSS, _MOST)


def _at_first(made: Counts, bad: Counts, there: Row, width_ns: int) -> float:
    at = np.flatnonzero(there)
    first = at[: np.searchsorted(at, at[0] + _FIRST_NS // width_ns)] if at.size else at
    return max(float(bad[half].sum()) / max(int(made[half].sum()), 1) for half in np.array_split(first, 2))
