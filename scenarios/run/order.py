"""What is asked of a drill run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.origin import Origin
from hpn.scenarios.run.phase import in_phase
from hpn.testbed.vm.engines import HOST


@dataclass(frozen=True, slots=True)
class Order:
    """One run to be made. ``command`` goes into the manifest; ``repeat`` counts from 1, 0 when there is only one.

    ``phase`` is the number that its faults' phase and its seeds are drawn from (``scenarios.run.phase``).
    """

    drill: Drill
    out: Path
    command: tuple[str, ...]
    repeat: int = 0
    engine: str = HOST.name  # what the manifest is to record
    slow: int | None = None  # traffic divided by this; None: as the engine asks
    keep_records: bool = False  # so that ``hpn analyse`` can make metrics and verdict anew
    phase: int = 1
    slowed: int = 1  # the drill is divided by this already, as this guest asks
    origin: Origin = Origin()  # noqa: RUF009 - frozen
    raise_neighbours: bool = False  # let this machine's neighbour table hold the lab while it is up

    @property
    def phased(self) -> Drill:
        """The drill as this run makes it."""
        return in_phase(self.drill, self.phase)

    @property
    def title(self) -> str:
        """'link-down' or 'link-down #2'."""
        return f"{self.drill.name} #{self.repeat}" if self.repeat else self.drill.name


@dataclass(frozen=True, slots=True)
class Batch:
    """Several drills, each run ``repeat`` times, numbered from ``first``; run folders are OUT/DRILL or OUT/DRILL-N.

    Of drills that share their name the second's are OUT/DRILL.2 or OUT/DRILL.2-N.
    """

    drills: Sequence[Drill]
    repeat: int
    out: Path
    command: tuple[str, ...]
    slow: int | None = None
    tries: int = 1  # of each run, as long as it cannot be trusted
    keep_records: bool = False
    first: int = 1  # number of the first repeat
    raise_neighbours: bool = False

    def orders(self) -> Iterator[Order]:
        """Every run to be made, in order."""
        for drill, folder in zip(self.drills, self._folders(), strict=True):
            for number in range(self.first, self.first + self.repeat):
                name = folder if self.repeat == 1 else f"{folder}-{number}"
                order = Order(drill, self.out / name, self.command, 0 if self.repeat == 1 else number, phase=number)
                yield replace(
                    order,
                    slow=self.slow,
                    keep_records=self.keep_records,
                    raise_neighbours=self.raise_neighbours,
                )

    def _folders(self) -> Iterator[str]:
        """A name for each drill's run folders: its own, with '.2' and so on for further drills of that name."""
        seen: Counter[str] = Counter()
        for drill in self.drills:
            seen[drill.name] += 1
            yield drill.name if seen[drill.name] == 1 else f"{drill.name}.{seen[drill.name]}"

    def by_drill(self, runs: Sequence[RunFolder]) -> Iterator[Sequence[RunFolder]]:
        """The runs made so far, grouped by drill."""
        for _, found in groupby(runs, self._folder_of):
            yield tuple(found)

    def _folder_of(self, run: RunFolder) -> str:
        return run.path.name if self.repeat == 1 else run.path.name.rpartition("-")[0]
