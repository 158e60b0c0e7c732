"""Pieces of a span of offered load: flows leave their old paths one after the other. Imports numpy. Pure.

Changes when it is decided otherwise what flows cross before they have moved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpn.scenarios.model.offered import Going
from hpn.traffic.fluid.links import Links

Links32 = NDArray[np.int32]
"""Directed links of flows, one row per flow; -1: no link."""
_WHILE_NS = 5_000_000


def pieces_after(links: Links, before: Going | None, after: Going) -> list[Going]:
    """Return the pieces from the old paths to the new ones, as flows move at different times after an edge."""
    if before is None:
        return [after]
    width = max(before.data.shape[1], after.data.shape[1])
    dead = np.append(_dead(links, after.down), False)  # the last element stands for -1, no link
    found: list[Going] = []
    bounds = [after.begin_ns, *_steps(after)]
    for begin_ns, end_ns in pairwise([*bounds, after.end_ns]):
        moved = after.since_ns <= begin_ns
        stays = ~moved & ~dead[_padded(before.data, width)].any(axis=1)
        found.append(
            replace(
                after,
                begin_ns=begin_ns,
                end_ns=end_ns,
                data=np.where(moved[:, None], _padded(after.data, width), _padded(before.data, width)),
                sends=np.where(moved, after.sends, before.sends & stays),
                arrives=np.where(moved, after.arrives, before.arrives & stays),
                known=np.where(moved, after.known, before.known),
                marred=np.where(moved, after.marred, before.marred | after.marred),
                since_ns=np.where(moved, after.since_ns, begin_ns),
                moved=moved & after.moved,
            )
        )
    return found


def _dead(links: Links, names: Iterable[str]) -> NDArray[np.bool_]:
    found = np.zeros(len(links), dtype=np.bool_)
    found[links.of_parts(names)] = True
    return found


def _steps(after: Going) -> list[int]:
    """Return the times after which flows have moved; times closer than ``_WHILE_NS`` count as one."""
    found: list[int] = []
    for at_ns in sorted(set(after.since_ns.tolist())):
        if at_ns <= after.begin_ns:
            continue
        if found and at_ns - found[-1] < _WHILE_NS:
            found[-1] = at_ns
        else:
            found.append(at_ns)
    return found


def _padded(paths: Links32, width: int) -> Links32:
    return np.pad(paths, ((0, 0), (0, width - paths.shape[1])), constant_values=-1)


def differ(before: Links32, after: Links32) -> NDArray[np.bool_]:
    """Return True for the flows whose paths differ."""
    width = max(before.shape[1], after.shape[1])
    return np.asarray((_padded(before, width) != _padded(after, width)).any(axis=1))
