"""Location while streams run: an answer for each bin of counts, over paths that change meanwhile. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hpn.failover.analysis.series import Bins
from hpn.failover.locating.counting import SPREAD_NS, Bin
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.parts import Ends, Way, suspects_of, ways_of
from hpn.failover.locating.rounds import STEP_NS, WINDOWS_NS, Answering, Round

_KEPT = max(WINDOWS_NS) // STEP_NS + 1
"""Totals kept: as many as the longest window needs."""
_UNKNOWN = -1

Rows = npt.NDArray[np.intp]
"""Row of each flow's path, in the order of flow ids; -1: unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class _Epoch:
    from_ns: int
    rows: Rows


class LiveLocation:
    """Answers of a method about flows, by id with the host that each begins at. Bins are STEP_NS wide.

    A path counts while it is known: from ``know`` on until ``changed``. Where the next answer of the switches is the
    same path, it counts in between as well.
    """

    def __init__(self, ends: Ends, hosts: Mapping[int, str], method: str) -> None:
        self._ends, self._hosts, self._flows = ends, hosts, sorted(hosts)
        self._number: dict[tuple[int, tuple[Way, ...]], int] = {}
        self._epochs: deque[_Epoch] = deque()
        self._doubted_ns: int | None = None
        self._waiting: deque[Bin] = deque()
        self._before: Bin | None = None
        self._answering = Answering(method)
        self._sent, self._lost = (np.zeros((0, 1), np.int64) for _ in range(2))
        self.suspects = suspects_of(ends, ())
        self.left_out = 0

    def know(self, at_ns: int, paths: Mapping[int, Sequence[str]]) -> None:
        """Take the links of each flow's path at a time; empty or missing: unknown, or packets do not arrive."""
        rows = np.array([self._row(flow, paths.get(flow, ())) for flow in self._flows], np.intp)
        if self._doubted_ns is not None and self._epochs:
            self._epochs.append(_Epoch(self._doubted_ns, _common(self._epochs[-1].rows, rows)))
        self._doubted_ns = None
        self._epochs.append(_Epoch(at_ns, rows))
        if len(self._number) > len(self._sent):
            self._grow()

    def changed(self, at_ns: int) -> None:
        """Doubt all paths from a time on, until they are known again."""
        self._doubted_ns = at_ns if self._doubted_ns is None else min(self._doubted_ns, at_ns)

    @property
    def is_doubted(self) -> bool:
        """True while paths must be asked for again."""
        return self._doubted_ns is not None

    def take(self, bins: Iterator[Bin]) -> Iterator[Round]:
        """Yield the answer of each bin whose paths are known; others wait for ``know``."""
        self._waiting.extend(bins)
        while self._waiting and (self._doubted_ns is None or self._waiting[0].end_ns <= self._doubted_ns):
            yield self._answer(self._waiting.popleft())

    def present(self) -> Iterator[tuple[int, tuple[Way, ...]]]:
        """Yield the flows whose path was known last, and its links with their directions."""
        paths = list(self._number)
        rows = self._epochs[-1].rows if self._epochs else np.empty(0, np.intp)
        yield from (paths[row] for row in rows if row != _UNKNOWN)

    def _row(self, flow: int, links: Sequence[str]) -> int:
        if not links:
            return _UNKNOWN
        return self._number.setdefault((flow, ways_of(self._ends, self._hosts[flow], links)), len(self._number))

    def _grow(self) -> None:
        """Make room for new paths, and say anew which parts they tell apart."""
        more = len(self._number) - len(self._sent)
        self._sent, self._lost = (np.pad(each, ((0, more), (0, 0))) for each in (self._sent, self._lost))
        self.suspects = suspects_of(self._ends, [ways for _, ways in self._number])
        self._answering.regroup(self.suspects)

    def _answer(self, now: Bin) -> Round:
        sent, lost = (np.zeros(len(self._sent), np.int64) for _ in range(2))
        rows = self._rows(now.end_ns)
        if now.whole and not now.doubt:
            before = self._before
            some = rows != _UNKNOWN
            sent[rows[some]] = (now.sent - (0 if before is None else before.sent))[some]
            lost[rows[some]] = (now.lost - (0 if before is None else before.lost))[some]
        else:
            self.left_out += 1
        self._before = now
        self._sent, self._lost = _with(self._sent, sent), _with(self._lost, lost)
        self._answering.forget(max(0, self._sent.shape[1] - _KEPT - 1))
        self._sent, self._lost = _kept(self._sent), _kept(self._lost)
        count = self._sent.shape[1] - 1
        bins = Bins(now.end_ns - count * STEP_NS, STEP_NS, count)
        found = self._answering.at(Observed(bins, self.suspects, self._sent, self._lost), count)
        return replace(found, doubt=now.doubt)

    def _rows(self, end_ns: int) -> Rows:
        """Return the paths that flows had all the while the packets of the bin that ends then were sent."""
        while len(self._epochs) > 1 and self._epochs[1].from_ns <= end_ns - STEP_NS - SPREAD_NS:
            self._epochs.popleft()
        if not self._epochs:
            return np.full(len(self._flows), _UNKNOWN, np.intp)
        rows = self._epochs[0].rows
        for epoch in self._epochs:
            if epoch.from_ns < end_ns:
                rows = _common(rows, epoch.rows)
        return rows


def _common(these: Rows, others: Rows) -> Rows:
    return np.where(these == others, these, _UNKNOWN)


def _with(totals: npt.NDArray[np.int64], more: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.column_stack([totals, totals[:, -1] + more])


def _kept(totals: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the first column, which is 0, and the last ones."""
    if totals.shape[1] <= _KEPT + 1:
        return totals
    return np.column_stack([totals[:, :1], totals[:, -_KEPT:]])
