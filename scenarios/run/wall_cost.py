"""Wall time of a run by what it has to do: a first guess, and how many times as long this machine was seen to take.

The guess was measured on two shared cores. ``CACHE/run-cost.json`` has the newest runs that ended
here, each stage against its guess; of those of the same engine and traffic the median counts. The file is untrusted:
one that is damaged counts as empty, and the next run replaces it.
Changes when a stage is found to depend on something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pydantic import TypeAdapter, ValidationError

from hpn.scenarios.run.effort import CLIENT, Effort
from hpn.testbed.errors import MachineError
from hpn.testbed.files.replacing import replace
from hpn.testbed.vm.engines import EngineSpec
from hpn.testbed.vm.kernel_cache import cache_folder

FILE = "run-cost.json"
MOST_RUNS = 100
"""That are kept, of all engines."""
_NEWEST = 9
"""Of one engine and kind of traffic, whose median counts."""
_LARGEST = 1 << 16
"""Bytes of a file that we wrote."""
_LEAST, _MOST = 0.01, 1000.0
"""Times the guess: what is beyond was no measurement of a run."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Wall seconds of a run's stages: until its lab has converged, its timeline, its judgement."""

    up_s: float
    traffic_s: float
    judge_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.up_s + self.traffic_s + self.judge_s


@dataclass(frozen=True, slots=True)
class Cost:
    """How many times its first guess each stage of a run took. ``traffic`` as in ``Effort``."""

    engine: str
    traffic: str
    up: float
    run: float
    judge: float


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run is expected to take. ``measured``: runs that ended on this machine count in it."""

    stages: Stages
    measured: bool


_COSTS = TypeAdapter(tuple[Cost, ...])


def first_guess(effort: Effort, spec: EngineSpec) -> Stages:
    """The stages as two shared cores take them."""
    judge_s = 1.5 + 2e-6 * effort.packets
    if not spec.virtual_time:
        boot_s = spec.boot_target_s or 0.0
        return Stages(boot_s + 3.0 + 0.02 * effort.links, effort.drill_s, judge_s * (2 if spec.own_kernel else 1))
    of_clients = 0.9 if effort.traffic == CLIENT else 0.0
    second_s = 0.45 + 0.008 * effort.nodes + of_clients
    hop_s = 2.9e-6 * math.sqrt(effort.hosts)  # packets of many hosts come in smaller batches
    return Stages(2.0 + 0.03 * effort.links, effort.drill_s * second_s + effort.hops * hop_s, judge_s)


def expected(effort: Effort, spec: EngineSpec, costs: Sequence[Cost]) -> Expected:
    """The first guess, times what such runs were measured to take of it; without any, what other traffic there did."""
    guess, here = first_guess(effort, spec), [each for each in costs if each.engine == spec.name]
    found = [each for each in here if each.traffic == effort.traffic][-_NEWEST:] or here[-_NEWEST:]
    if not found:
        return Expected(guess, measured=False)
    return Expected(
        Stages(
            guess.up_s * median(each.up for each in found),
            guess.traffic_s * median(each.run for each in found),
            guess.judge_s * median(each.judge for each in found),
        ),
        measured=True,
    )


def cost_of(effort: Effort, spec: EngineSpec, took: Stages) -> Cost:
    """A run that took so long, against its first guess."""
    guess = first_guess(effort, spec)
    return Cost(
        spec.name,
        effort.traffic,
        took.up_s / guess.up_s,
        took.traffic_s / guess.traffic_s,
        took.judge_s / guess.judge_s,
    )


def load(folder: Callable[[], Path] = cache_folder) -> tuple[Cost, ...]:
    """The runs measured on this machine, the newest last; none when the file is absent, damaged or no file of ours."""
    try:
        path = folder() / FILE
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return ()
        found = _COSTS.validate_json(path.read_bytes())
    except (OSError, MachineError, ValidationError):
        return ()
    return tuple(each for each in found if _credible(each))[-MOST_RUNS:]


def learn(cost: Cost, folder: Callable[[], Path] = cache_folder) -> None:
    """Keep what a run took; a folder that cannot be written keeps nothing."""
    if not _credible(cost):
        return
    with suppress(OSError, MachineError):
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        replace(place / FILE, _COSTS.dump_json((*load(folder), cost)[-MOST_RUNS:], indent=0))


def _credible(cost: Cost) -> bool:
    return all(_LEAST <= each <= _MOST for each in (cost.up, cost.run, cost.judge))
