"""How long failovers took in the lab: what the model draws from, each figure with the run that it comes from. PURE.

``measured.json`` is made by ``hpn model --calibrate RUN...`` and by nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hpn.failover.analysis.model import EdgeKind
from hpn.testbed.errors import InputError
from hpn.testbed.files.bounded import read_bounded

SHIPPED = Path(__file__).parent / "measured.json"
FORMAT = 1
_MOST_BYTES = 64_000_000


class Step(StrEnum):
    """What became of a flow at an edge; its time counts from the edge."""

    OUTAGE = "outage"  # its way broke and there was another: how long it lost packets
    MOVED = "moved"  # its way held, and it left it for another: when
    RESUMED = "resumed"  # it had no way, and got one: when it arrived again


class Side(StrEnum):
    """Where of a flow's way the edge is."""

    UP = "up"  # at its source NIC
    DOWN = "down"  # at its destination NIC
    TRANSIT = "transit"  # in between


@dataclass(frozen=True, slots=True)
class Case:
    """One sort of thing that happens to flows."""

    fault: str  # its kind
    edge: EdgeKind
    side: Side
    step: Step

    @property
    def text(self) -> str:
        """'link-down repair, resumed (down)'."""
        return f"{self.fault} {self.edge}, {self.step} ({self.side})"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a failover's duration depends on, beside the fault."""

    architecture: str
    path_control: str  # its policy
    lag: str  # datapath
    daemon: str  # of BGP


@dataclass(frozen=True, slots=True)
class Source:
    """A run that was measured."""

    drill: str
    engine: str
    kernel: str
    phase: int
    commit: str
    conditions: Conditions


Pause = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Times:
    """What one run saw of one case: a time for each flow, ms.

    ``pauses``: for each flow from when to when it lost packets once more, ms from the edge; None: it did not. A bond
    whose only port is back sends before LACP has agreed, and stops when it does.
    """

    source: int  # index of the run
    case: Case
    ms: tuple[float, ...]
    most_ms: float  # what the longest may have been, by the packets around it
    pauses: tuple[Pause | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """All of it."""

    sources: tuple[Source, ...] = ()
    times: tuple[Times, ...] = ()
    format: int = field(default=FORMAT)

    def cases(self) -> frozenset[Case]:
        """What has been measured under any conditions."""
        return frozenset(times.case for times in self.times)


_DOCUMENT = TypeAdapter(Measured)


def load(path: Path = SHIPPED) -> Measured:
    """Read a file of times. InputError when it is none, or holds what is no time."""
    try:
        found = _DOCUMENT.validate_json(read_bounded(path, _MOST_BYTES, "file of measured times"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; hpn model --calibrate RUN... --times {path} makes it") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {where}: {first['msg']}; hpn model --calibrate RUN... makes such files") from None
    _check(found, path)
    return found


@cache
def shipped() -> Measured:
    """The times that come with hpn."""
    return load()


def text_of(measured: Measured) -> str:
    """The file's text."""
    return _DOCUMENT.dump_json(measured, indent=1).decode() + "\n"


def _check(found: Measured, path: Path) -> None:
    if found.format != FORMAT:
        raise InputError(f"{path} has format {found.format}; this hpn reads {FORMAT}")
    for times in found.times:
        if not 0 <= times.source < len(found.sources) or not times.ms:
            raise InputError(f"{path}: {times.case.text} has no run or no times; make the file anew")
        if not all(0 <= ms < 1e9 for ms in (*times.ms, times.most_ms)):
            raise InputError(f"{path}: {times.case.text} has a time that is none; make the file anew")
        if times.pauses and not (len(times.pauses) == len(times.ms) and all(map(_fits, times.pauses, times.ms))):
            raise InputError(f"{path}: {times.case.text} has a pause that is none; make the file anew")


def _fits(pause: Pause | None, ms: float) -> bool:
    return pause is None or ms <= pause[0] <= pause[1] < 1e9


@dataclass(frozen=True, slots=True)
class Drawn:
    """Times for some flows and their pauses, and the whole range that was measured, ms."""

    ms: tuple[float, ...]
    pauses: tuple[Pause | None, ...]
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Used:
    """What times were drawn from: how many runs, of which fault, under which conditions."""

    fault: str
    conditions: Conditions
    runs: int
    same: bool  # fault and conditions are those that were asked for


class Draws:
    """Draws times by a seed. The flows of one edge share a run, as in a lab they would share its timers' phases."""

    def __init__(self, measured: Measured, conditions: Conditions, seed: int) -> None:
        self._measured, self._conditions = measured, conditions
        self._random = random.Random(f"{seed}/failover")
        self.used: dict[Case, Used] = {}

    def draw(self, case: Case, alike: Sequence[Hashable]) -> Drawn | None:
        """A time for each of some flows, the same for equal ones of ``alike``; None when no run has shown such a case.

        From runs of the same fault, or else of another that took carrier away on the same side of flows; of these from
        runs under the same conditions, or else those that are most alike.
        """
        near = [times for times in self._measured.times if replace(times.case, fault=case.fault) == case]
        exact = [times for times in near if times.case == case]
        found = self._best(exact or near)
        if not found:
            return None
        chosen = self._random.choice(found)
        least, most = min(min(times.ms) for times in found), max(times.most_ms for times in found)
        like = self._measured.sources[chosen.source].conditions
        same = bool(exact) and like == self._conditions
        self.used[case] = Used(chosen.case.fault, like, len({times.source for times in found}), same)
        of = {key: self._random.randrange(len(chosen.ms)) for key in dict.fromkeys(alike)}
        picked = [of[key] for key in alike]
        pauses = tuple(chosen.pauses[at] if chosen.pauses else None for at in picked)
        return Drawn(tuple(chosen.ms[at] for at in picked), pauses, least, most)

    def _best(self, found: Sequence[Times]) -> Sequence[Times]:
        ranks = [self._unlike(self._measured.sources[times.source].conditions) for times in found]
        return [times for times, rank in zip(found, ranks, strict=True) if rank == min(ranks)]

    def _unlike(self, other: Conditions) -> int:
        """How unlike other conditions are: what decides most weighs most."""
        mine = self._conditions
        return (
            8 * (mine.path_control != other.path_control)
            + 4 * (mine.architecture != other.architecture)
            + 2 * (mine.daemon != other.daemon)
            + (mine.lag != other.lag)
        )
