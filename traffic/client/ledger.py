"""Ledger of the steps reported by a client's ranks: checked on arrival, then packed as records. PURE, no numpy.

Changes when more data of a step is stored. Records are laid out as ``traffic.jobengine.records.SPAN``.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from hpn.traffic.client.lines import ClientStep

MOST_STEPS = 100_000
"""Most steps stored for one rank."""
MOST_DOINGS = 1_000
"""Most different collectives of one rank: each is a line of every table, and analysis reads all records for each."""
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
    told_ns: int  # when its line came
    checksum: str
    wrong: int | None


class Ledger:
    """Steps of the ``reporting`` ranks. Times are CLOCK_MONOTONIC.

    ``told_times``: True if every step was reported with its own times.
    """

    def __init__(self, reporting: Collection[int]) -> None:
        self.told_times = True
        self._ranks = sorted(reporting)
        self._rows: dict[int, dict[int, _Row]] = {rank: {} for rank in self._ranks}
        self._doings: dict[int, set[Doing]] = {rank: set() for rank in self._ranks}
        self._last_ns: dict[int, int] = {}
        self._begin_ns: int | None = None
        self._until_ns: int | None = None

    def run(self, begin_ns: int, until_ns: int) -> None:
        """Set the begin and end of the run; steps that end later are not counted."""
        self._begin_ns, self._until_ns = begin_ns, until_ns

    def take(self, ranks: Sequence[int], step: ClientStep, at_ns: int) -> str:
        """Record a step that a process of these ranks reported at that time; return why it is refused, or ''."""
        if step.rank is not None and step.rank not in ranks:
            return f"rank {step.rank} is not in this process"
        told = ranks if step.rank is None else (step.rank,)
        for rank in told:
            why = self._of_rank(rank, step, at_ns)
            if why:
                return why
        return ""

    def count(self, rank: int) -> int:
        """Return the number of steps of a rank."""
        return len(self._rows.get(rank, ()))

    def last_ns(self, rank: int) -> int | None:
        """Return when the last step of a rank ended; None without steps."""
        return self._last_ns.get(rank)

    @property
    def late_ns(self) -> int:
        """Most that a step's true end may be later than its reported one.

        It came before the rank began its next step, and before its line arrived. Lines may be held up for seconds on
        their way, by the very failure that a run is about.
        """
        return max((self._late_ns(rows, row) for rows in self._rows.values() for row in rows.values()), default=0)

    def doings(self, rank: int) -> tuple[Doing, ...]:
        """Return the different collectives that a rank reported, sorted: spans 1 and on; span 0 is the iteration."""
        return tuple(sorted(self._doings[rank]))

    def packed(self) -> bytes:
        """Return the records of all steps, rank by rank; a step with a collective has two."""
        wrong = self._differing()
        return b"".join(_SPAN.pack(*fields) for rank in self._ranks for fields in self._records(rank, wrong))

    @property
    def compared(self) -> int:
        """Number of steps whose result was checked: by another rank's sum, or by the program itself."""
        checked = [row for rows in self._rows.values() for row in rows.values()]
        sums = Counter(row.number for row in checked if row.checksum)
        told = {row.number for row in checked if row.wrong is not None}
        return len(told | {number for number, ranks in sums.items() if ranks > 1})

    @staticmethod
    def _late_ns(rows: dict[int, _Row], row: _Row) -> int:
        after = rows.get(row.number + 1)
        latest_ns = row.told_ns if after is None else min(row.told_ns, max(after.begin_ns, row.end_ns))
        return latest_ns - row.end_ns

    def _of_rank(self, rank: int, step: ClientStep, at_ns: int) -> str:
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
        rows[step.number] = _Row(rank, step.number, doing, begin_ns, end_ns, at_ns, step.checksum, step.wrong)
        self._last_ns[rank] = max(end_ns, self._last_ns.get(rank, end_ns))
        return ""

    def _differing(self) -> set[tuple[int, int]]:
        """Return rank and step where the sum differs from the majority's; on a tie the lowest rank's sum counts."""
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
