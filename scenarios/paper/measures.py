"""Evidence of the paper's claims, and the figures that are read from it. Pure.

Changes when a claim needs another figure of a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult
from hpn.failover.analysis.ports import PortMetrics, PortResult
from hpn.results.judge.verdict import Check, Outcome
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.outage import WORST_OUTAGE
from hpn.scenarios.expect.selection import At, Bound
from hpn.scenarios.expect.verdict import judge_expectation
from hpn.scenarios.paper.path_figures import PathFigures
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event
from hpn.testbed.fabric.inventory import Inventory

_BACK = 0.95

Points = tuple[Mapping[str, float], ...]
"""Figures of several runs, by name."""


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """Measured and computed evidence: runs by name, path figures by architecture, the whole pod's inventory.

    A run is a drill, or a draw of it: ``DRILL@DRAW``, as ``draw_of`` returns it.
    """

    drills: Mapping[str, DrillMetrics]
    events: Mapping[str, Sequence[Event]]  # by the same names
    paths: Mapping[str, PathFigures]
    pod: Inventory
    preset: str = "pod"  # source of ``pod``
    draws: int = 0  # of each drill that is drawn

    def run(self, drill: str, draw: int) -> DrillMetrics:
        """Return the run of a drill with this draw, or the only one."""
        return self.drills.get(draw_of(drill, draw)) or self.drills[drill]


@dataclass(frozen=True, slots=True)
class Finding:
    """Result for a claim. ``agrees`` is None if unknown: there is no figure, or its limit lies in its interval.

    ``points``: figures behind the answer, for pictures. ``details``: further words, left out where room is scarce.
    """

    ours: str
    agrees: bool | None
    points: Points = ()
    details: str = ""


def draw_of(drill: str, draw: int) -> str:
    """Return the run of a drill with this draw, from 1: a seed that sets hashes, source ports and orders of hosts."""
    return f"{drill}@{draw}"


_TOLD = {Outcome.PASS: True, Outcome.FAIL: False, Outcome.INCONCLUSIVE: None}


def edges_of(metrics: DrillMetrics, kind: EdgeKind) -> list[EdgeResult]:
    """Return the failures or the repairs of a run, in order."""
    return [result for result in metrics.edges if result.edge.kind is kind]


def worst_outage(metrics: DrillMetrics, at: At, bound: Bound, limit_ms: float) -> Check:
    """Compare the longest outage of any flow over all edges of a kind with a limit, as for a drill's expectation."""
    return judge_expectation(Expectation(WORST_OUTAGE, bound, limit_ms * 1e6, edge=at), Evidence(metrics, RunFacts()))


def every(*told: bool | Outcome | None) -> bool | None:
    """Return True if all hold, else False if one does not, else None."""
    found = [_TOLD.get(one, one) if isinstance(one, Outcome) else one for one in told]
    return False if False in found else None if None in found else True


def deaths(metrics: DrillMetrics) -> int:
    """Return the number of queue pairs that exhausted their retries."""
    return sum(result.flows_died for result in metrics.edges)


def kept(metrics: DrillMetrics, host: str) -> float:
    """Return the goodput left for a host's NICs after the first failure has settled, as a share; 1.0: all."""
    failure = edges_of(metrics, EdgeKind.FAILURE)[0]
    shares = [nic.goodput for nic in failure.nics if nic.nic.startswith(f"{host}.")]
    return sum(goodput.after_bps for goodput in shares) / sum(goodput.before_bps for goodput in shares)


def silent(metrics: DrillMetrics) -> tuple[int, int]:
    """Return how many hit flows deliver nothing after the first failure has settled, and the number of hit flows."""
    failure = edges_of(metrics, EdgeKind.FAILURE)[0]
    hit = [flow for flow in metrics.flows_at(failure) if flow.relation.is_touched]
    return sum(flow.goodput.after_bps < 0.01 * flow.goodput.before_bps for flow in hit), len(hit)


def hit_left(metrics: DrillMetrics) -> float:
    """Return the goodput left for the best hit NIC after the failure has settled, as a share."""
    failure = edges_of(metrics, EdgeKind.FAILURE)[0]
    shares = [nic.goodput for nic in failure.nics if nic.nic in failure.edge.nics and nic.goodput.before_bps > 0]
    return max(goodput.after_bps / goodput.before_bps for goodput in shares)


def still(metrics: DrillMetrics) -> tuple[int, int]:
    """Return how many hit flows have their goodput back after the last repair has settled, and how many are hit."""
    failure, repair = edges_of(metrics, EdgeKind.FAILURE)[0], edges_of(metrics, EdgeKind.REPAIR)[-1]
    pairs = zip(metrics.flows_at(failure), metrics.flows_at(repair), strict=True)
    hit = [(at, end) for at, end in pairs if at.relation.is_touched]
    return sum(end.goodput.after_bps >= _BACK * at.goodput.before_bps for at, end in hit), len(hit)


def ratios(metrics: DrillMetrics) -> list[float]:
    """Return for every receiving NIC the load of its busier port over that of the other; infinite if that one idles."""
    return [nic.ratio or float("inf") for nic in sampled(metrics).balance]


def mean_queue_ms(metrics: DrillMetrics) -> float:
    """Return the mean queue of the ports towards NICs in ms, over ports and time."""
    return fmean(port.queue_mean_ms for port in towards_nics(metrics))


def towards_nics(metrics: DrillMetrics) -> list[PortResult]:
    """Return the ports of ToRs towards NICs."""
    return [port for port in sampled(metrics).ports if port.nic is not None]


def sampled(metrics: DrillMetrics) -> PortMetrics:
    """Return the metrics of a run's ports. MachineError for a run without samples."""
    if metrics.ports is None:
        raise MachineError("a run has no samples of its ports; its drill must say what to sample")
    return metrics.ports


def pace(metrics: DrillMetrics) -> float:
    """Return the delivered share of packets for the worst NIC; 1.0: all."""
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    for flow in metrics.flows:
        sent[flow.src_nic] += flow.sent - flow.in_flight_at_end
        received[flow.src_nic] += flow.received
    return min(received[nic] / sent[nic] for nic in sent)


def worst_pair(metrics: DrillMetrics) -> float:
    """Return the delivered share of packets for the worst queue pair."""
    return min(flow.received / (flow.sent - flow.in_flight_at_end) for flow in metrics.flows)
