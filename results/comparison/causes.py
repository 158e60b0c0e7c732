"""What is known to make one group of runs slower than another. Pure.

Changes when an engine or a datapath gets another timer. A cause is named only for the side that it makes slower: that
virtual time computes in no time explains that a machine was slower, never that it was faster.
"""

from __future__ import annotations

from collections.abc import Iterator

from results.comparison.figures import Key
from results.comparison.groups import Group
from testbed.lag.datapath import LagKind
from testbed.lag.datapaths import DATAPATHS
from testbed.vm.engines import has_virtual_time

CPU_COST = "CPU time: in virtual time computing takes none, elsewhere it is part of every reaction"
UNEXPLAINED = "unexplained: compare the events.jsonl of the two runs"
_LEAST_IDLE_PCT = 10.0
_REPAIR = " repair "


def causes(slower: Group, faster: Group, key: Key) -> Iterator[str]:
    """Why ``slower`` may take more ms than ``faster``, one line each; nothing where nothing is known."""
    one, other = slower.runs[0].manifest, faster.runs[0].manifest
    if one.datapath != other.datapath and key.name != "detect":
        mine, theirs = DATAPATHS.get(one.datapath), DATAPATHS.get(other.datapath)
        at_repair = _REPAIR in f"{key.where} {key.name} "
        if mine is not None and theirs is not None and _pace(mine, at_repair) > _pace(theirs, at_repair):
            yield mine.at_repair if at_repair else mine.at_failure
    if has_virtual_time(other.engine) and not has_virtual_time(one.engine):
        yield CPU_COST
    idle = [run.metrics.host.idle_mean_pct for run in slower.runs if run.metrics.host is not None]
    if idle and min(idle) < _LEAST_IDLE_PCT and not has_virtual_time(one.engine):
        yield f"CPU noise: a host of {slower.label} was {min(idle):.0f} % idle"


def _pace(kind: LagKind, at_repair: bool) -> float:
    return kind.repair_within_ms if at_repair else kind.failure_within_ms
