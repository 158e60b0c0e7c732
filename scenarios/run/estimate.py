"""How long runs will take, in words, before they begin; nothing for what is over within a minute.

Changes when the line should tell something more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import wall_cost
from hpn.scenarios.run.effort import Effort, effort_of
from hpn.scenarios.run.wall_cost import Cost, Expected
from hpn.testbed.errors import HpnError
from hpn.testbed.vm.engines import ENGINES, EngineSpec

WORTH_TELLING_S = 60.0
EVERY_S = 30.0
"""Of wall time, between two lines that tell what is left."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A run that is asked for."""

    effort: Effort
    spec: EngineSpec


def asked_of(runs: Mapping[str, tuple[Drill, EngineSpec]]) -> dict[str, Asked]:
    """The runs by name, without those that cannot be counted; one drill that runs many times is counted once."""
    drills = {id(drill): drill for drill, _ in runs.values()}
    efforts = {key: counted(drill) for key, drill in drills.items()}
    found = ((name, efforts[id(drill)], spec) for name, (drill, spec) in runs.items())
    return {name: Asked(effort, spec) for name, effort, spec in found if effort is not None}


def virtual_time_line(drill: Drill) -> str:
    """The line for one run of a drill in virtual time, as a note on its file; '' when it is not worth it."""
    spec = next((each for each in ENGINES.values() if each.virtual_time), None)
    effort = counted(drill)
    line = "" if spec is None or effort is None else told([Asked(effort, spec)], wall_cost.load())
    return f"in virtual time it {line}" if line else ""


def seconds_of(asked: Mapping[str, Asked], costs: Sequence[Cost]) -> dict[str, float]:
    """Wall seconds of each run, alone."""
    return {name: wall_cost.expected(each.effort, each.spec, costs).stages.total_s for name, each in asked.items()}


def at_once(spec: EngineSpec, jobs: int, cores: int | None = None) -> int:
    """How many of so many runs side by side this machine has the cores for."""
    cores = cores or len(os.sched_getaffinity(0))
    return max(1, min(jobs, cores // (spec.cores or cores)))


def told(asked: Sequence[Asked], costs: Sequence[Cost], jobs: int = 1, cores: int | None = None) -> str:
    """The line for runs, ``jobs`` side by side as far as there are cores; '' when it is not worth it."""
    found = [wall_cost.expected(each.effort, each.spec, costs) for each in asked]
    alone_s = [each.stages.total_s for each in found]
    shared_s = (s / at_once(each.spec, jobs, cores) for s, each in zip(alone_s, asked, strict=True))
    total_s = max([sum(shared_s), *alone_s])  # side by side it is never faster than the longest run
    if total_s <= WORTH_TELLING_S:
        return ""
    head = "takes" if len(asked) == 1 else f"{len(asked):,} runs take"
    return f"{head} about {in_words(total_s)} ({_counts(asked)}; {basis_of(found)})"


def basis_of(found: Iterable[Expected]) -> str:
    """Where figures are from."""
    return "measured on this machine" if all(each.measured for each in found) else "first guess, not measured here yet"


def _counts(asked: Sequence[Asked]) -> str:
    """Packets, where all runs have those of their drill's file: a guest in real time gets fewer."""
    packets = sum(each.effort.packets for each in asked)
    fewer = any(each.spec.own_kernel and not each.spec.virtual_time for each in asked)
    nodes = {each.effort.nodes for each in asked}
    size = f"{'up to ' if len(nodes) > 1 else ''}{max(nodes):,} nodes"
    return ", ".join((*([f"{packets:,} packets"] if packets and not fewer else ()), size))


def in_words(seconds: float) -> str:
    """About so long: '5 s', '70 s', '8 min', '2.5 h'."""
    if seconds < 10:
        return f"{max(1, round(seconds))} s"
    if seconds < 95:
        return f"{round(seconds, -1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5700 else f"{seconds / 3600:.1f} h"


def counted(drill: Drill) -> Effort | None:
    """What one run has to do; None for a drill that does not fit: its run says so."""
    try:
        return effort_of(drill)
    except HpnError:
        return None
