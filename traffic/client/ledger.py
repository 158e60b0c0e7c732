"""The steps that a client's ranks have told: checked as they come, and the records made of them. PURE, no numpy.

Changes when more is kept of a step. Records are laid out as ``traffic.jobengine.records.SPAN``.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from hpn.traffic.client.lines import Step

MOST_STEPS = 100_000
"""Of one rank, that are kept."""
MOST_DOINGS = 1_000
"""Different collectives of one rank: each is a line of every table, and analysis looks at all records for each."""
_SPAN = struct.Struct("<IIIIqq")
Doing = tuple[str, int]
"""Kind of a collective, and its bytes."""


@dataclass(frozen=True, slots=True)
class _Row:
    rank: int
    number: int
    doing: Doing | None
    begin_ns: int
    end_ns: int
    checksum: str
    wrong: int | None


class Ledger:
    """What ``reporting`` ranks have done. Times are CLOCK_MONOTONIC.

    ``told_times``: whether every step came with times of its own. ``late_ns``: the longest from the end that a step
    claims to the arrival of its line; nothing shows that it did not end as late as that.
    """

    def __init__(self, reporting: Collection[int]) -> None:
        self.told_times = True
        self.late_ns = 0
        self._ranks = sorted(reporting)
        self._rows: dict[int, dict[int, _Row]] = {rank: {} for rank in self._ranks}
        self._doings: dict[int, set[Doing]] = {rank: set() for rank in self._ranks}
        self._last_ns: dict[int, int] = {}
        self._begin_ns: int | None = None
        self._until_ns: int | None = None

    def run(self, begin_ns: int, until_ns: int) -> None:
        """The run lasts from then to then; what ends later is not counted."""
        self._begin_ns, self._until_ns = begin_ns, until_ns

    def take(self, ranks: Sequence[int], step: Step, at_ns: int) -> str:
        """Note a step that a process of these ranks told at that time; why not, or ''."""
        if step.rank is not None and step.rank not in ranks:
            return f"rank {step.rank} is not in this process"
        told = ranks if step.rank is None else (step.rank,)
        for rank in told:
            why = self._of_rank(rank, step, at_ns)
            if why:
                return why
        return ""

    def count(self, rank: int) -> int:
        """How many steps of a rank there are."""
        return len(self._rows.get(rank, ()))

    def last_ns(self, rank: int) -> int | None:
        """When the last of them ended; None for none."""
        return self._last_ns.get(rank)

    def doings(self, rank: int) -> tuple[Doing, ...]:
        """The different collectives that a rank has told, in order: spans 1 and on; span 0 is the iteration."""
        return tuple(sorted(self._doings[rank]))

    def packed(self) -> bytes:
        """Records of all steps, rank by rank; of a step with a collective two."""
        wrong = self._differing()
        return b"".join(_SPAN.pack(*fields) for rank in self._ranks for fields in self._records(rank, wrong))

    @property
    def compared(self) -> int:
        """Steps whose result was checked: its sum by that of another rank, or by the program itself."""
        checked = [row for rows in self._rows.values() for row in rows.values()]
        sums = Counter(row.number for row in checked if row.checksum)
        told = {row.number for row in checked if row.wrong is not None}
        return len(told | {number for number, ranks in sums.items() if ranks > 1})

    def _of_rank(self, rank: int, step: Step, at_ns: int) -> str:
        if rank not in self._rows:
            return f"rank {rank} does not report steps"
        if self._begin_ns is None or self._until_ns is None or at_ns < self._begin_ns:
            return "it came before the run's begin"
        rows = self._rows[rank]
        if step.number in rows:
            return f"rank {rank} has told step {step.number} before"
        if len(rows) >= MOST_STEPS:
            return f"rank {rank} has told more than {MOST_STEPS} steps"
        begin_ns, end_ns = step.begin_ns, step.end_ns
        if begin_ns is None or end_ns is None:
            self.told_times = False
            begin_ns, end_ns = self._last_ns.get(rank, self._begin_ns), at_ns
        if begin_ns < self._begin_ns:
            return "it began before the run"
        if end_ns > at_ns:
            return "it ended after it was told"
        if end_ns > self._until_ns:
            return ""
        doing = (step.kind, step.size_bytes) if step.kind else None
        if doing is not None and doing not in self._doings[rank]:
            if len(self._doings[rank]) >= MOST_DOINGS:
                return f"rank {rank} has told more than {MOST_DOINGS} different kinds and bytes"
            self._doings[rank].add(doing)
        rows[step.number] = _Row(rank, step.number, doing, begin_ns, end_ns, step.checksum, step.wrong)
        self._last_ns[rank] = max(end_ns, self._last_ns.get(rank, end_ns))
        self.late_ns = max(self.late_ns, at_ns - end_ns)
        return ""

    def _differing(self) -> set[tuple[int, int]]:
        """Rank and step where the sum is not that of most ranks; of two that as many have, the lowest rank's counts."""
        sums: dict[int, list[tuple[int, str]]] = {}
        for rank in self._ranks:
            for row in self._rows[rank].values():
                if row.checksum:
                    sums.setdefault(row.number, []).append((rank, row.checksum))
        found = set()
        for number, told in sums.items():
            right = Counter(checksum for _, checksum in told).most_common(1)[0][0]
            found |= {(rank, number) for rank, checksum in told if checksum != right}
        return found

    def _records(self, rank: int, differing: set[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
        spans = {doing: at for at, doing in enumerate(self.doings(rank), 1)}
        for row in self._rows[rank].values():
            wrong = (row.wrong or 0) + ((rank, row.number) in differing)
            times = (row.begin_ns, row.end_ns)
            if row.doing is None:
                yield (rank, row.number, 0, wrong, *times)
            else:
                yield (rank, row.number, 0, 0, *times)
                yield (rank, row.number, spans[row.doing], wrong, *times)
