"""Failover times measured in the lab, from which the model draws, each with its source run. PURE.

``measured.json`` is written only by ``hpn model --calibrate RUN...``.
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


class FailoverStep(StrEnum):
    """Effect of an edge on a flow; its time counts from the edge."""

    OUTAGE = "outage"  # its path broke and another existed: duration of packet loss
    MOVED = "moved"  # its path worked, but it changed to another: time of the change
    RESUMED = "resumed"  # it had no path and got one: time of the first arrival


class Side(StrEnum):
    """Position of the edge on a flow's path."""

    UP = "up"  # at its source NIC
    DOWN = "down"  # at its destination NIC
    TRANSIT = "transit"  # in between


@dataclass(frozen=True, slots=True)
class Case:
    """Kind of effect on flows."""

    fault: str  # kind of fault
    edge: EdgeKind
    side: Side
    step: FailoverStep

    @property
    def text(self) -> str:
        """Case as text: 'link-down repair, resumed (down)'."""
        return f"{self.fault} {self.edge}, {self.step} ({self.side})"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions, other than the fault, that determine the duration of a failover."""

    architecture: str
    path_control: str  # policy
    lag: str  # datapath
    daemon: str  # of BGP
    valleys: bool = False  # bgp.asn per-switch: switches hunt for paths after a withdrawal


@dataclass(frozen=True, slots=True)
class Source:
    """Run that was measured."""

    drill: str
    engine: str
    kernel: str
    phase: int
    commit: str
    conditions: Conditions


Pause = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Times:
    """Times of one run for one case, in ms, one per flow.

    ``pauses``: a second loss of each flow as start and end in ms from the edge; None: no second loss. It occurs when a
    bond's only port is back: the bond sends before LACP has agreed, and stops when LACP does.
    """

    source: int  # index of the run
    case: Case
    ms: tuple[float, ...]
    most_ms: float  # upper bound of the longest, by the packets around it
    pauses: tuple[Pause | None, ...] = ()


@dataclass(frozen=True, slots=True)
class FailoverTimes:
    """Measured times of all runs."""

    sources: tuple[Source, ...] = ()
    times: tuple[Times, ...] = ()
    format: int = field(default=FORMAT)

    def cases(self) -> frozenset[Case]:
        """Return the cases that have been measured under any conditions."""
        return frozenset(times.case for times in self.times)


_DOCUMENT = TypeAdapter(FailoverTimes)


def load(path: Path = SHIPPED) -> FailoverTimes:
    """Read a file of times. InputError when it is invalid."""
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
def shipped() -> FailoverTimes:
    """Return the times that come with hpn."""
    return load()


def text_of(measured: FailoverTimes) -> str:
    """Return the text of the file."""
    return _DOCUMENT.dump_json(measured, indent=1).decode() + "\n"


def _check(found: FailoverTimes, path: Path) -> None:
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
    """Times and pauses drawn for some flows, and the full measured range, in ms."""

    ms: tuple[float, ...]
    pauses: tuple[Pause | None, ...]
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Used:
    """Basis of drawn times: number of runs, their fault and their conditions."""

    fault: str
    conditions: Conditions
    runs: int
    same: bool  # fault and conditions match the request


class Draws:
    """Random source of failover times; flows of one edge share a run, as they share its timers' phases in a lab.

    The seed makes the times reproducible.
    """

    def __init__(self, measured: FailoverTimes, conditions: Conditions, seed: int) -> None:
        self._measured, self._conditions = measured, conditions
        self._random = random.Random(f"{seed}/failover")
        self.used: dict[Case, Used] = {}

    def draw(self, case: Case, alike: Sequence[Hashable]) -> Drawn | None:
        """Draw a time for each flow, equal for equal values of ``alike``; None when no run has such a case.

        Runs of the same fault are preferred to runs of another carrier fault on the same side of flows. Of these, runs
        under the most similar conditions are used. A hunt for paths takes a time of its own, so only runs with valleys
        serve a fabric with valleys, and only runs without them one without.
        """
        near = [times for times in self._measured.times if self._serves(times, case)]
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

    def _serves(self, times: Times, case: Case) -> bool:
        there = self._measured.sources[times.source].conditions
        return there.valleys == self._conditions.valleys and replace(times.case, fault=case.fault) == case

    def _best(self, found: Sequence[Times]) -> Sequence[Times]:
        ranks = [self._unlike(self._measured.sources[times.source].conditions) for times in found]
        return [times for times, rank in zip(found, ranks, strict=True) if rank == min(ranks)]

    def _unlike(self, other: Conditions) -> int:
        """Return the distance to other conditions, with the most important condition weighted most."""
        mine = self._conditions
        return (
            8 * (mine.path_control != other.path_control)
            + 4 * (mine.architecture != other.architecture)
            + 2 * (mine.daemon != other.daemon)
            + (mine.lag != other.lag)
        )
