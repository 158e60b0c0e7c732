"""How long runs will take, in words, before they begin; nothing for what is over within a minute.

Changes when the line should tell something more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from scenarios.drill.model import Drill
from scenarios.run import wall_cost
from scenarios.run.effort import Effort, effort_of
from scenarios.run.order import Batch
from scenarios.run.wall_cost import Cost, Expected
from testbed.errors import HpnError
from testbed.vm.engines import ENGINES, EngineSpec

WORTH_TELLING_S = 60.0


def line_of(batch: Batch, spec: EngineSpec, jobs: int = 1) -> str:
    """The line for all runs of a batch, ``jobs`` side by side as far as there are cores; '' when it is not worth it."""
    efforts = [found for drill in batch.drills if (found := counted(drill)) is not None]
    return told(efforts, batch.repeat, spec, wall_cost.load(), at_once(spec, jobs))


def virtual_time_line(drill: Drill) -> str:
    """The line for one run of a drill in virtual time, as a note on its file; '' when it is not worth it."""
    spec = next((each for each in ENGINES.values() if each.virtual_time), None)
    effort = counted(drill)
    if spec is None or effort is None:
        return ""
    line = told([effort], 1, spec, wall_cost.load())
    return f"in virtual time it {line}" if line else ""


def at_once(spec: EngineSpec, jobs: int, cores: int | None = None) -> int:
    """How many of so many runs side by side this machine has the cores for."""
    cores = cores or len(os.sched_getaffinity(0))
    return max(1, min(jobs, cores // (spec.cores or cores)))


def told(efforts: Sequence[Effort], repeat: int, spec: EngineSpec, costs: Sequence[Cost], side_by_side: int = 1) -> str:
    """The same of efforts that were counted, each made ``repeat`` times."""
    found = [wall_cost.expected(each, spec, costs) for each in efforts]
    total_s = _total_s(found, repeat, side_by_side)
    if total_s <= WORTH_TELLING_S:
        return ""
    runs = len(efforts) * repeat
    packets = sum(each.packets for each in efforts) * repeat
    nodes = max(each.nodes for each in efforts)
    counts = [f"{packets:,} packets"] if packets and not (spec.own_kernel and not spec.virtual_time) else []
    counts.append(f"{nodes:,} nodes" if len(efforts) == 1 else f"up to {nodes:,} nodes")
    basis = "measured on this machine" if all(each.measured for each in found) else "first guess, not measured here yet"
    head = f"takes about {in_words(total_s)}" if runs == 1 else f"{runs:,} runs take about {in_words(total_s)}"
    return f"{head} ({', '.join(counts)}; {basis})"


def in_words(seconds: float) -> str:
    """About so long: '5 s', '70 s', '8 min', '2.5 h'."""
    if seconds < 10:
        return f"{max(1, round(seconds))} s"
    if seconds < 95:
        return f"{round(seconds, -1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5700 else f"{seconds / 3600:.1f} h"


def _total_s(found: Sequence[Expected], repeat: int, side_by_side: int) -> float:
    """Side by side it is never faster than the longest run."""
    totals = [each.stages.total_s for each in found]
    return max(sum(totals) * repeat / side_by_side, *totals) if totals else 0.0


def counted(drill: Drill) -> Effort | None:
    """What one run has to do; None for a drill that does not fit: its run says so."""
    try:
        return effort_of(drill)
    except HpnError:
        return None
