"""Voting: links that lossy paths have in common. Pure.

007 (Arzani and others, NSDI 2018), algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpn.failover.locating.parts import Suspect, Suspects
from hpn.failover.locating.seen import MOST_FAULTS, Accused, Row, Seen

_LEAST = 0.01
"""Share of all votes below which no link is accused, as published."""


def voting(seen: Seen) -> Sequence[Accused]:
    """Return the links that lossy paths have in common: each path votes for its links, 1 / hops for each.

    007 (NSDI 2018), algorithm 1: the link with most votes is at fault, the paths across it are explained, and the
    next one follows while it has at least 1 % of all votes. Paths, not packets, vote; links have no direction here.
    """
    links = sorted({name for path in seen.suspects.paths for name, _ in path})
    index = {name: at for at, name in enumerate(links)}
    crossing = np.zeros((len(links), len(seen.sent)), dtype=np.bool_)
    for at, path in enumerate(seen.suspects.paths):
        crossing[[index[name] for name, _ in path], at] = True
    share = np.array([1 / len(path) for path in seen.suspects.paths])
    left = seen.lost > 2 * seen.healthy * seen.sent
    total = float(share[left] @ crossing[:, left].sum(axis=0)) if left.any() else 0.0
    found: list[Accused] = []
    while left.any() and len(found) < MOST_FAULTS:
        votes = crossing @ (share * left)
        best = int(votes.argmax())
        if votes[best] < _LEAST * total:
            break
        here = crossing[best]
        suspect = _of_row(seen.suspects, here)
        found.append(Accused(suspect, _rate(seen, here), float(votes[best] / votes.sum())))
        left &= ~here
    return found


def _rate(seen: Seen, here: Row) -> float:
    sent = int(seen.sent[here].sum())
    return float(seen.lost[here].sum() / sent) if sent else 0.0


def _of_row(suspects: Suspects, row: Row) -> Suspect:
    """Return the suspect that exactly these paths cross."""
    return suspects.suspects[int(np.flatnonzero((suspects.crossed == row).all(axis=1))[0])]
