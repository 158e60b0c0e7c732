"""Rates of flows over directed links: max-min fair shares by progressive filling, and constant rates with loss. PURE.

Paths are an integer array (flows, hops) of link numbers, -1 where a path is shorter than the longest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

_SAME = 1 - 1e-12
"""Relative tolerance: closer shares count as equal, as sums in another order differ."""
_SETTLED = 1e-12
_MOST_ROUNDS = 10_000
_UNDAMPED_ROUNDS = 64
"""Rounds without damping: more than the longest path without loops; each round settles at least one more hop."""


def max_min(paths: Indices, capacity: Floats, demand: Floats | None = None) -> Floats:
    """Return the max-min fair rate of each flow, bit/s (Bertsekas and Gallager, Data Networks, 6.5.2).

    ``capacity`` is per link. ``demand`` is the most that a flow sends, bit/s (infinite, or left out: unlimited). A flow
    over a link of capacity 0 gets 0; one without links gets its demand. A link counts once however often a path names
    it. ValueError for arrays that do not fit together, or capacities that are negative or not finite.

    A round settles every link that is the tightest of each of its flows, not only the tightest of all. Shares of the
    others can only grow, so the result is that of filling link by link.
    """
    on = _numbered(paths, capacity)
    wanted = np.full(len(paths), np.inf) if demand is None else np.array(demand, dtype=np.float64)
    if wanted.shape != (len(paths),) or np.isnan(wanted).any() or (wanted < 0).any():
        raise ValueError("demand is one number of at least 0 for each flow")
    _once(on, len(capacity))
    rates = wanted.copy()
    who = np.flatnonzero((on < len(capacity)).any(axis=0))
    on, wanted = on.take(who, axis=1), wanted[who]
    left = np.append(capacity, np.inf)  # the last link means none: no flow is limited there
    crossing = np.bincount(on.ravel(), minlength=len(left))
    while len(who):
        share = left / np.maximum(crossing, 1)
        tightest, settled = _round(on, share, wanted)
        fixed = tightest[settled]
        rates[who[settled]] = fixed
        gone = on[:, settled].ravel()
        crossing -= np.bincount(gone, minlength=len(left))
        left -= np.bincount(gone, weights=np.tile(fixed, len(on)), minlength=len(left))
        np.maximum(left, 0.0, out=left)
        going = np.flatnonzero(~settled)
        who, wanted, on = who[going], wanted[going], on.take(going, axis=1)
    return rates


def proportional_drop(paths: Indices, capacity: Floats, offered: Floats) -> tuple[Floats, Floats]:
    """Return the rate that arrives of each constant-rate flow, and each link's load before its drops, both in bit/s.

    A link that is offered more than its capacity drops the same share of every flow, hop after hop; no sender slows
    down. A flow without links arrives completely. ValueError as in ``max_min``.
    """
    on = _numbered(paths, capacity)
    links = len(capacity)
    if np.shape(offered) != (len(paths),) or not np.isfinite(offered).all() or (np.asarray(offered) < 0).any():
        raise ValueError("offered is one finite number of at least 0 for each flow")
    passes = np.ones(links + 1)
    for rounds in range(_MOST_ROUNDS):
        rate, load = _carried(on, passes, np.asarray(offered, dtype=np.float64))
        found = np.ones(links + 1)
        full = load[:links] > capacity
        found[:links][full] = capacity[full] / load[:links][full]
        if np.abs(found - passes).max() <= _SETTLED:
            return rate, load[:links]
        passes = found if rounds < _UNDAMPED_ROUNDS else (found + passes) / 2  # paths that feed each other oscillate
    raise ValueError("these paths lead round in circles, and what is dropped does not settle")


def padded(paths: npt.NDArray[np.int32], hops: int) -> npt.NDArray[np.int32]:
    """Return the paths with room for so many links; paths with more room are returned as they are."""
    missing = hops - paths.shape[1]
    return paths if missing <= 0 else np.pad(paths, ((0, 0), (0, missing)), constant_values=-1)


def link_load(paths: Indices, rates: Floats, links: int) -> Floats:
    """Return the load of each of ``links`` links, bit/s; a link counts once for each time it is named."""
    load = np.zeros(links)
    for hop in range(paths.shape[1]):
        column = paths[:, hop]
        on = column >= 0
        load += np.bincount(column[on], weights=rates[on], minlength=links)
    return load


def _numbered(paths: Indices, capacity: Floats) -> Numbers:
    """Return link numbers as (hops, flows); the number of links means none."""
    links = len(capacity)
    if paths.ndim != 2 or capacity.ndim != 1:
        raise ValueError("paths have two dimensions (flows, hops), capacity one")
    if not np.isfinite(capacity).all() or (capacity < 0).any():
        raise ValueError("a link's capacity is finite and at least 0")
    if paths.size and not -1 <= int(paths.min()) <= int(paths.max()) < links:
        raise ValueError(f"a path names a link that is none of 0 to {links - 1}")
    on = np.array(paths.T, dtype=np.int64, order="C")
    on[on < 0] = links
    return on


def _once(on: Numbers, links: int) -> None:
    """Clear repeated links in a path."""
    for at in range(1, len(on)):
        for before in range(at):
            on[at][on[at] == on[before]] = links


def _round(on: Numbers, share: Floats, wanted: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the tightest share of each flow, and True for settled flows: satisfied, or on their bottleneck."""
    shares = share.take(on)
    tightest = np.minimum(shares.min(axis=0), wanted)
    shares *= _SAME
    bottleneck = np.ones(len(share), dtype=np.bool_)
    bottleneck[on.ravel().compress((tightest < shares).ravel())] = False  # on[mask] takes six times as long
    bottleneck[-1] = False
    return tightest, bottleneck.take(on).any(axis=0) | (tightest >= wanted)


def _carried(on: Numbers, passes: Floats, offered: Floats) -> tuple[Floats, Floats]:
    rate, load = offered.copy(), np.zeros(len(passes))
    for hop in on:
        load += np.bincount(hop, weights=rate, minlength=len(passes))
        rate *= passes[hop]
    return rate, load
