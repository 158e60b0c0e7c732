"""Evidence for the verdict of a run: its metrics, and further facts from the runner. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hpn.failover.analysis.cpu_waits import NO_WAITS, Waits
from hpn.failover.analysis.model import DrillMetrics, Goodput
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.selection import Selection


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts that the runner has of a run besides its metrics."""

    host_reasons: tuple[str, ...] = ()  # why the machine was too busy (failover.analysis.hostload), one line each
    machine_drops: int = 0  # packets dropped by the machine itself: full socket buffers, full backlogs
    state_differences: tuple[str, ...] | None = None
    """Differences of the lab after the faults from before, and from its fabric; None: not compared."""
    deviations: tuple[str, ...] = ()  # differences of the lab from its fabric before any fault
    waits: Waits = NO_WAITS  # CPU waits of the lab's own processes, which may have prolonged a failover
    unsent: Mapping[int, tuple[Goodput, ...]] = field(default_factory=dict)
    """The most goodput that late senders cost, by flow and edge; flows without any are left out."""
    strays: tuple[str, ...] = ()  # moves of queue pairs without a reason, and missing returns


class Evidence(NamedTuple):
    """Everything that a metric may read."""

    metrics: DrillMetrics
    facts: RunFacts


def from_metrics(
    measure: Callable[[Selection, DrillMetrics], Figure],
) -> Callable[[Selection, Evidence], Figure]:
    """Return a measurement whose function reads the metrics alone."""
    return lambda expectation, evidence: measure(expectation, evidence.metrics)
