"""Orders for drill runs: one run, or a batch of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.origin import Origin
from hpn.scenarios.run.phase import in_phase, phase_of
from hpn.testbed.vm.engines import HOST


@dataclass(frozen=True, slots=True)
class Order:
    """Order for one run.

    ``command`` goes into the manifest. ``repeat`` counts from 1 and is 0 for a single run. The phase of its faults and
    its seeds are drawn from ``phase`` (``scenarios.run.phase``).
    """

    drill: Drill
    out: Path
    command: tuple[str, ...]
    repeat: int = 0
    engine: str = HOST.name  # name to record in the manifest
    slow: int | None = None  # divisor of the traffic rate; None: as the engine requires
    keep_records: bool = False  # for a new analysis by ``hpn analyse``
    phase: int = 1
    slowed: int = 1  # divisor already applied to the drill, as this guest requires
    origin: Origin = Origin()  # noqa: RUF009 - frozen
    raise_neighbours: bool = False  # raise the limit of this machine's neighbour table while the lab is up

    @property
    def phased(self) -> Drill:
        """Drill with the phase of this run."""
        return in_phase(self.drill, self.phase)

    @property
    def delay_ns(self) -> int:
        """Delay of the faults by the phase; the timeline is longer by as much."""
        return phase_of(self.drill.topology, self.phase).shift_ns

    @property
    def title(self) -> str:
        """Title such as 'link-down' or 'link-down #2'."""
        return f"{self.drill.name} #{self.repeat}" if self.repeat else self.drill.name


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch of drills, each run ``repeat`` times, numbered from ``first``; run folders are OUT/DRILL or OUT/DRILL-N.

    If drills share a name, the folders of the second are OUT/DRILL.2 or OUT/DRILL.2-N.
    """

    drills: Sequence[Drill]
    repeat: int
    out: Path
    command: tuple[str, ...]
    slow: int | None = None
    tries: int = 1  # attempts per run while its measurement is in doubt
    keep_records: bool = False
    first: int = 1  # number of the first repeat
    raise_neighbours: bool = False

    def orders(self) -> Iterator[Order]:
        """Yield every run to be made, in order."""
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
        """Yield a folder name for each drill: its own, with '.2' and so on for further drills of that name."""
        seen: Counter[str] = Counter()
        for drill in self.drills:
            seen[drill.name] += 1
            yield drill.name if seen[drill.name] == 1 else f"{drill.name}.{seen[drill.name]}"

    def by_drill(self, runs: Sequence[RunFolder]) -> Iterator[Sequence[RunFolder]]:
        """Yield the runs made so far, grouped by drill."""
        for _, found in groupby(runs, self._folder_of):
            yield tuple(found)

    def _folder_of(self, run: RunFolder) -> str:
        return run.path.name if self.repeat == 1 else run.path.name.rpartition("-")[0]
