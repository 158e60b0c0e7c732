"""What a run is judged by: its metrics, and what the runner knows besides. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.waits import NO_WAITS, Waits
from hpn.scenarios.expect.asked import Asked
from hpn.scenarios.expect.figure import Figure


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the runner knows of a run besides its metrics."""

    host_reasons: tuple[str, ...] = ()  # why the machine was too busy (failover.analysis.hostload), one line each
    machine_drops: int = 0  # packets the machine itself dropped: full socket buffers, full backlogs
    state_differences: tuple[str, ...] | None = None
    """The lab after the faults against before, and against what the fabric decides; None: not compared."""
    deviations: tuple[str, ...] = ()  # of the lab before any fault from what the fabric decides
    waits: Waits = NO_WAITS  # of the lab's own processes for a CPU, which may have made a failover longer
    strays: tuple[str, ...] = ()  # moves of queue pairs without a reason, and those that did not return


class Evidence(NamedTuple):
    """All that a metric may read."""

    metrics: DrillMetrics
    facts: RunFacts


def from_metrics(
    measure: Callable[[Asked, DrillMetrics], Figure],
) -> Callable[[Asked, Evidence], Figure]:
    """Measure by a function that reads the metrics alone."""
    return lambda expectation, evidence: measure(expectation, evidence.metrics)
