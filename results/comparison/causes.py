"""Known causes that make one set of runs slower than another. Pure.

Changes when an engine or a datapath gets another timer. A cause is named only for the side that it makes slower. That
computing takes no virtual time explains why a machine was slower, never why it was faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.run.manifest import Manifest
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.lag.datapaths import DATAPATHS
from hpn.testbed.vm.engines import has_virtual_time

CPU_COST = "CPU time: in virtual time computing takes none, elsewhere it is part of every reaction"
UNEXPLAINED = "unexplained: compare the events.jsonl of the two runs"
_LEAST_IDLE_PCT = 10.0


@dataclass(frozen=True, slots=True)
class Side:
    """Runs of one kind, with the data needed to find causes; ``manifest`` is that of the first."""

    label: str
    manifest: Manifest
    metrics: Sequence[DrillMetrics]

    @property
    def is_virtual(self) -> bool:
        """True if its clock is virtual."""
        return has_virtual_time(self.manifest.engine)

    @property
    def doubt(self) -> str:
        """Reason why its machine may have made it slower; '' if there is none."""
        doubts = [doubt for each in self.metrics for doubt in each.inconclusive]
        idle = [each.host.idle_mean_pct for each in self.metrics if each.host is not None]
        if doubts:
            return f"CPU noise on {self.label}: {doubts[0]}"
        is_busy = idle and min(idle) < _LEAST_IDLE_PCT and not self.is_virtual
        return f"CPU noise: a host of {self.label} was {min(idle):.0f} % idle" if is_busy else ""


def causes(slower: Side, faster: Side, figure: str, *, at_repair: bool) -> Iterator[str]:
    """Yield the reasons why ``slower`` may take more ms than ``faster``, one line each; nothing if none is known."""
    mine, theirs = slower.manifest.datapath, faster.manifest.datapath
    if mine != theirs and figure != "detect":
        yield from _datapaths(mine, theirs, at_repair)
    if faster.is_virtual and not slower.is_virtual:
        yield CPU_COST
    if slower.doubt:
        yield slower.doubt


def _datapaths(mine: str, theirs: str, at_repair: bool) -> Iterator[str]:
    unknown = sorted({mine, theirs} - DATAPATHS.keys())
    if unknown:
        yield from (f"nothing is known here of the {name} datapath (a plug-in?)" for name in unknown)
        return
    slower, faster = DATAPATHS[mine], DATAPATHS[theirs]
    if _pace(slower, at_repair) > _pace(faster, at_repair):
        yield slower.at_repair if at_repair else slower.at_failure


def _pace(kind: LagKind, at_repair: bool) -> float:
    return kind.repair_within_ms if at_repair else kind.failure_within_ms
