"""Estimated duration of runs as text, before they begin; empty if they take less than a minute.

Changes when the line should contain more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import wall_cost
from hpn.scenarios.run.effort import Effort, effort_of
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.wall_cost import Cost, Expected
from hpn.testbed.errors import HpnError
from hpn.testbed.vm.engines import ENGINES, EngineSpec

WORTH_TELLING_S = 60.0
EVERY_S = 30.0
"""Wall time in seconds between two lines that report the remaining time."""


@dataclass(frozen=True, slots=True)
class EstimateRequest:
    """Requested run: its effort and its engine."""

    effort: Effort
    spec: EngineSpec


def asked_of(runs: Mapping[str, tuple[Order, EngineSpec]]) -> dict[str, EstimateRequest]:
    """Return the runs by name, without those that cannot be estimated; a drill that runs many times is counted once."""
    drills = {id(order.drill): order.drill for order, _ in runs.values()}
    efforts = {key: counted(drill) for key, drill in drills.items()}
    found = ((name, efforts[id(order.drill)], order, spec) for name, (order, spec) in runs.items())
    return {
        name: EstimateRequest(effort.longer(order.delay_ns), spec)
        for name, effort, order, spec in found
        if effort is not None
    }


def virtual_time_line(drill: Drill) -> str:
    """Return the estimate for one run of a drill in virtual time, as a note on its file; '' if not worth showing."""
    spec = next((each for each in ENGINES.values() if each.virtual_time), None)
    effort = counted(drill)
    line = "" if spec is None or effort is None else told([EstimateRequest(effort, spec)], wall_cost.load())
    return f"in virtual time it {line}" if line else ""


def seconds_of(asked: Mapping[str, EstimateRequest], costs: Sequence[Cost]) -> dict[str, float]:
    """Return the wall time of each run in seconds, if it runs alone."""
    return {name: wall_cost.expected(each.effort, each.spec, costs).stages.total_s for name, each in asked.items()}


def at_once(spec: EngineSpec, jobs: int, cores: int | None = None) -> int:
    """Return how many of ``jobs`` concurrent runs the cores of this machine allow."""
    cores = cores or len(os.sched_getaffinity(0))
    return max(1, min(jobs, cores // (spec.cores or cores)))


def told(asked: Sequence[EstimateRequest], costs: Sequence[Cost], jobs: int = 1, cores: int | None = None) -> str:
    """Return the estimate for runs, at most ``jobs`` at once as cores allow; '' if not worth showing."""
    found = [wall_cost.expected(each.effort, each.spec, costs) for each in asked]
    alone_s = [each.stages.total_s for each in found]
    shared_s = (s / at_once(each.spec, jobs, cores) for s, each in zip(alone_s, asked, strict=True))
    total_s = max([sum(shared_s), *alone_s])  # concurrent runs never finish before the longest one
    if total_s <= WORTH_TELLING_S:
        return ""
    head = "takes" if len(asked) == 1 else f"{len(asked):,} runs take"
    return f"{head} about {in_words(total_s)} ({_counts(asked)}; {basis_of(found)})"


def basis_of(found: Iterable[Expected]) -> str:
    """Return the source of the figures, as text."""
    return "measured on this machine" if all(each.measured for each in found) else "first guess, not measured here yet"


def _counts(asked: Sequence[EstimateRequest]) -> str:
    """Return packets and nodes as text.

    Packets are left out for a guest in real time, which sends fewer than its drill's file says.
    """
    packets = sum(each.effort.packets for each in asked)
    fewer = any(each.spec.own_kernel and not each.spec.virtual_time for each in asked)
    nodes = {each.effort.nodes for each in asked}
    size = f"{'up to ' if len(nodes) > 1 else ''}{max(nodes):,} nodes"
    return ", ".join((*([f"{packets:,} packets"] if packets and not fewer else ()), size))


def in_words(seconds: float) -> str:
    """Return an approximate duration as text: '5 s', '70 s', '8 min', '2.5 h'."""
    if seconds < 10:
        return f"{max(1, round(seconds))} s"
    if seconds < 95:
        return f"{round(seconds, -1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5700 else f"{seconds / 3600:.1f} h"


def counted(drill: Drill) -> Effort | None:
    """Return the effort of one run; None for a drill that does not fit, which its run reports."""
    try:
        return effort_of(drill)
    except HpnError:
        return None
