"""Wall time of a run from its effort: a first guess, corrected by the ratio that this machine measured.

The guess for virtual time is the CPU time of five library drills, as a run there keeps one core busy.
``CACHE/run-costs.json`` has the newest runs that ended here, with each stage as a ratio to its guess. The median counts
over runs of the same engine and traffic. The file is untrusted: a damaged one counts as empty, and the next run
replaces it.

Changes when a stage depends on something else.
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

FILE = "run-costs.json"
MOST_RUNS = 100
"""Number of runs stored, over all engines."""
_NEWEST = 9
"""Number of newest runs of one engine and kind of traffic in the median."""
_LARGEST = 1 << 16
"""Maximum size in bytes of a file that we wrote."""
_LEAST, _MOST = 0.01, 1000.0
"""Limits of the ratio to the guess; values outside cannot be a measurement of a run."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Wall time in seconds of a run's stages: lab up until converged, timeline, judgement."""

    up_s: float
    traffic_s: float
    judge_s: float

    @property
    def total_s(self) -> float:
        """Total wall time in seconds."""
        return self.up_s + self.traffic_s + self.judge_s


@dataclass(frozen=True, slots=True)
class Cost:
    """Ratio of each stage's wall time to its first guess. ``traffic`` as in ``Effort``."""

    engine: str
    traffic: str
    up: float
    run: float
    judge: float


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected wall time of a run; ``measured`` is True if runs on this machine contribute."""

    stages: Stages
    measured: bool


_COSTS = TypeAdapter(tuple[Cost, ...])


def first_guess(effort: Effort, spec: EngineSpec) -> Stages:
    """Return the stages as measured on a core of their own."""
    judge_s = 1.5 + 2e-6 * effort.packets
    if not spec.virtual_time:
        boot_s = spec.boot_target_s or 0.0
        return Stages(boot_s + 3.0 + 0.02 * effort.links, effort.drill_s, judge_s * (2 if spec.own_kernel else 1))
    of_clients = 0.9 if effort.traffic == CLIENT else 0.0
    second_s = 0.72 + 0.013 * effort.nodes + of_clients
    hop_s = 4.6e-6 * math.sqrt(effort.hosts)  # packets of many hosts come in smaller batches
    return Stages(3.2 + 0.048 * effort.links, effort.drill_s * second_s + effort.hops * hop_s, judge_s)


def expected(effort: Effort, spec: EngineSpec, costs: Sequence[Cost]) -> Expected:
    """Return the first guess times the measured ratio of such runs, or of other traffic on that engine if none."""
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
    """Return the ratio of a run's stages to its first guess."""
    guess = first_guess(effort, spec)
    return Cost(
        spec.name,
        effort.traffic,
        took.up_s / guess.up_s,
        took.traffic_s / guess.traffic_s,
        took.judge_s / guess.judge_s,
    )


def load(folder: Callable[[], Path] = cache_folder) -> tuple[Cost, ...]:
    """Return the runs measured on this machine, the newest last; empty when the file is absent or invalid."""
    try:
        path = folder() / FILE
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return ()
        found = _COSTS.validate_json(path.read_bytes())
    except (OSError, MachineError, ValidationError):
        return ()
    return tuple(each for each in found if _credible(each))[-MOST_RUNS:]


def learn(cost: Cost, folder: Callable[[], Path] = cache_folder) -> None:
    """Store the cost of a run; no-op if the folder cannot be written."""
    if not _credible(cost):
        return
    with suppress(OSError, MachineError):
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        replace(place / FILE, _COSTS.dump_json((*load(folder), cost)[-MOST_RUNS:], indent=0))


def _credible(cost: Cost) -> bool:
    return all(_LEAST <= each <= _MOST for each in (cost.up, cost.run, cost.judge))
