"""Rates of flows over directed links: max-min fair shares by progressive filling, and constant rates with loss. PURE.

Paths are an integer array (flows, hops) of link numbers, -1 where a path is shorter than the longest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SAME = 1 - 1e-12
"""Shares that differ by less are one share: sums taken in another order."""
_SETTLED = 1e-12
_MOST_ROUNDS = 10_000
_UNDAMPED_ROUNDS = 64
"""Longer than any path of a fabric without loops, in which a round settles at least one more hop."""


def max_min(paths: Indices, capacity: Floats, demand: Floats | None = None) -> Floats:
    """Max-min fair rate of each flow, bit/s (Bertsekas and Gallager, Data Networks, 6.5.2).

    ``capacity`` is per link and ``demand`` the most that a flow sends, bit/s (infinite, or left out: all it gets). A
    flow over a link of capacity 0 gets 0; one without links gets its demand. A link counts once however often a
    path names it. ValueError for arrays that do not fit together, or capacities that are negative or not finite.

    A round settles every link that is the tightest of each of its flows, not only the tightest of all: shares of the
    others can but grow, so the result is that of filling link by link.
    """
    columns = _columns(paths, capacity)
    wanted = np.full(len(paths), np.inf) if demand is None else np.asarray(demand, dtype=np.float64)
    if wanted.shape != (len(paths),) or np.isnan(wanted).any() or (wanted < 0).any():
        raise ValueError("demand is one number of at least 0 for each flow")
    links = len(capacity)
    rates = np.zeros(len(paths))
    who = np.arange(len(paths))
    left = np.append(capacity, np.inf)  # the last link stands for none: nobody is held up there
    crossing = _crossing(columns, links)
    while len(who):
        share = left / np.maximum(crossing, 1)
        tightest = wanted.copy()
        for column in columns:
            np.minimum(tightest, share[column], out=tightest)
        settled = _settled(columns, share, tightest, wanted)
        rates[who[settled]] = tightest[settled]
        for column in columns:
            gone = column[settled]
            crossing -= np.bincount(gone, minlength=links + 1)
            left -= np.bincount(gone, weights=np.where(gone < links, tightest[settled], 0.0), minlength=links + 1)
        np.maximum(left, 0.0, out=left)
        going = ~settled
        who, wanted, columns = who[going], wanted[going], [column[going] for column in columns]
    return rates


def proportional_drop(paths: Indices, capacity: Floats, offered: Floats) -> tuple[Floats, Floats]:
    """What arrives of flows of constant rate, and what comes to each link before its drops, both in bit/s.

    A link that is offered more than its capacity drops the same share of every flow, hop after hop; nobody slows
    down. A flow without links arrives whole. ValueError as in ``max_min``.
    """
    columns = _columns(paths, capacity, once=False)
    links = len(capacity)
    if np.shape(offered) != (len(paths),) or not np.isfinite(offered).all() or (np.asarray(offered) < 0).any():
        raise ValueError("offered is one finite number of at least 0 for each flow")
    passes = np.ones(links + 1)
    for rounds in range(_MOST_ROUNDS):
        rate, load = _carried(columns, passes, np.asarray(offered, dtype=np.float64))
        found = np.ones(links + 1)
        full = load[:links] > capacity
        found[:links][full] = capacity[full] / load[:links][full]
        if np.abs(found - passes).max() <= _SETTLED:
            return rate, load[:links]
        passes = found if rounds < _UNDAMPED_ROUNDS else (found + passes) / 2  # paths that feed each other swing
    raise ValueError("these paths lead round in circles, and what is dropped does not settle")


def link_load(paths: Indices, rates: Floats, links: int) -> Floats:
    """What flows of these rates put on each of ``links`` links, bit/s; a link counts once for each time it is named."""
    load = np.zeros(links)
    for hop in range(paths.shape[1]):
        column = paths[:, hop]
        on = column >= 0
        load += np.bincount(column[on], weights=rates[on], minlength=links)
    return load


def _columns(paths: Indices, capacity: Floats, *, once: bool = True) -> list[npt.NDArray[np.int64]]:
    """Link numbers hop by hop, the number of links standing for none; with ``once`` a flow names a link only once."""
    links = len(capacity)
    if paths.ndim != 2 or capacity.ndim != 1:
        raise ValueError("paths have two dimensions (flows, hops), capacity one")
    if not np.isfinite(capacity).all() or (capacity < 0).any():
        raise ValueError("a link's capacity is finite and at least 0")
    if paths.size and not -1 <= int(paths.min()) <= int(paths.max()) < links:
        raise ValueError(f"a path names a link that is none of 0 to {links - 1}")
    columns = [np.where(paths[:, hop] < 0, links, paths[:, hop]).astype(np.int64) for hop in range(paths.shape[1])]
    if once:
        for at, column in enumerate(columns):
            for before in columns[:at]:
                column[column == before] = links
    return columns


def _crossing(columns: list[npt.NDArray[np.int64]], links: int) -> npt.NDArray[np.int64]:
    counts = np.zeros(links + 1, dtype=np.int64)
    for column in columns:
        counts += np.bincount(column, minlength=links + 1)
    return counts


def _settled(
    columns: list[npt.NDArray[np.int64]], share: Floats, tightest: Floats, wanted: Floats
) -> npt.NDArray[np.bool_]:
    """Which flows have their rate: those over a link that is the tightest of each of its flows, and the sated."""
    bottleneck = np.ones(len(share), dtype=np.bool_)
    bottleneck[-1] = False
    for column in columns:
        bottleneck[column[tightest < share[column] * _SAME]] = False
    settled = tightest >= wanted
    for column in columns:
        settled |= bottleneck[column]
    return settled


def _carried(columns: list[npt.NDArray[np.int64]], passes: Floats, offered: Floats) -> tuple[Floats, Floats]:
    rate, load = offered.copy(), np.zeros(len(passes))
    for column in columns:
        load += np.bincount(column, weights=np.where(column < len(passes) - 1, rate, 0.0), minlength=len(passes))
        rate *= passes[column]
    return rate, load
