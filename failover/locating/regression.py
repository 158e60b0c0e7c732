"""Regression: links whose success rate, fitted to that of paths, is low. Pure.

NetBouncer (Tan and others, NSDI 2019), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hpn.failover.locating.parts import PartKind
from hpn.failover.locating.seen import Accused, Reals, Seen

_PENALTY = 2e-4
"""Weight of the penalty that draws a link's rate to 0 or 1."""
_STEPS = 60
_LEAST = 1e-12
_Index = npt.NDArray[np.intp]
_BAD_LINK = 0.005
"""Loss from which a link is bad; smaller ones are noise to least squares."""


def regression(seen: Seen) -> Sequence[Accused]:
    """Return the directions of links whose success rates, fitted to those of paths, are low.

    NetBouncer (NSDI 2019), section 4: least squares of path success against the product of its links, with a penalty
    that draws each link to 0 or 1, by coordinate descent. Nodes that no good path crosses are accused first.
    """
    used = seen.sent > 0
    if not used.any() or not seen.lost.any():
        return ()
    crossed = seen.suspects.crossed[:, used]
    success = 1 - seen.lost[used] / seen.sent[used]
    suspects = seen.suspects.suspects
    simple = [at for at, suspect in enumerate(suspects) if suspect.parts[0].kind is PartKind.DIRECTION]
    simple = simple or [*range(len(suspects))]  # hosts, each looked at alone
    rows = crossed[simple]
    rates = np.where(rows.any(axis=1), (rows @ success) / np.maximum(rows.sum(axis=1), 1), 1.0)
    _fit(rates, [np.flatnonzero(row) for row in rows], success)
    bad = sorted((at for at in range(len(rates)) if 1 - rates[at] > _BAD_LINK), key=lambda at: float(rates[at]))
    weight = sum(1 - rates[at] for at in bad)
    return [
        Accused(seen.suspects.suspects[simple[at]], float(1 - rates[at]), float((1 - rates[at]) / weight)) for at in bad
    ]


def _fit(rates: Reals, paths: Sequence[_Index], success: Reals) -> None:
    """Fit the rate of each link to its ``paths`` while the others stay, in turn, until none changes."""
    logs = np.log(np.maximum(rates, _LEAST))
    of_path = np.zeros(len(success))
    for at, mine in enumerate(paths):
        of_path[mine] += logs[at]
    for _ in range(_STEPS):
        before = rates.copy()
        for at, mine in enumerate(paths):
            if not mine.size:
                continue
            others = np.exp(of_path[mine] - logs[at])
            slope = float(others @ others) - 2 * _PENALTY * mine.size
            if slope <= 0:
                continue
            rates[at] = np.clip((others @ success[mine] - _PENALTY * mine.size) / slope, 0.0, 1.0)
            change = math.log(max(rates[at], _LEAST)) - logs[at]
            logs[at] += change
            of_path[mine] += change
        if np.abs(rates - before).max() < 1e-7:
            return
