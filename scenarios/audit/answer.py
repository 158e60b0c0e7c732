"""Answer of an audit from its run folders. Pure but for reading them.

Changes when a row takes another figure from a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hpn.failover.analysis.dark import DarkNic, dark_nics
from hpn.failover.analysis.intervals import phase_interval
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, EdgeResult, FlowEdgeResult
from hpn.failover.analysis.phases import converged
from hpn.failover.analysis.short_routes import short_route_notes
from hpn.results.audit.model import ERROR, Answer, Figure, Moment, Row
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.folder import RunFolder
from hpn.scenarios.audit.audit import Audit, left_of
from hpn.scenarios.audit.drill import PlannedFailure
from hpn.testbed.errors import HpnError, NoisyError
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.wired.configs import own_configs

_UNUSED = "no stream crossed it, so nothing is known of its failure"


def answer_of(audit: Audit, engine: str, refused: Mapping[str, HpnError]) -> Answer:
    """Return the answer so far; ``refused``: errors of runs by the name of their failure.

    InputError for a damaged run folder.
    """
    waiting = {failure.name for failure in left_of(audit)}
    tried = [failure for failure in audit.failures if failure.name not in waiting or failure.name in refused]
    return Answer(
        topology=audit.fabric.spec,
        engine=engine,
        promises=tuple(promise.text for promise in audit.promises),
        rows=tuple(_row(audit, failure, refused.get(failure.name)) for failure in tried),
        left_out=tuple((failure.key, why) for failure, why in audit.left_out),
        waiting=len(waiting - refused.keys()),
        short_routes=_short_routes(audit, [each for each in tried if each.name not in refused]),
    )


def _short_routes(audit: Audit, made: Sequence[PlannedFailure]) -> tuple[str, ...]:
    """Return what the first run knows of the healthy fabric's routes: those of all runs are the same."""
    if not made or not own_configs(audit.fabric):
        return ()
    return tuple(short_route_notes(RunFolder(audit.folder(made[0])).events()))


def _row(audit: Audit, planned: PlannedFailure, error: HpnError | None) -> Row:
    if error is not None:
        outcome = Outcome.INCONCLUSIVE.value if isinstance(error, NoisyError) else ERROR
        return _named(planned, outcome, "", (str(error),))
    run = RunFolder(audit.folder(planned))
    return _measured(audit.fabric, planned, run.metrics(), run.verdict(), os.path.relpath(run.path, audit.out))


def _named(planned: PlannedFailure, outcome: str, run: str, reasons: tuple[str, ...]) -> Row:
    failure, place = planned.failure, Path(run).as_posix() if run else ""
    return Row(failure.key, failure.kind, failure.element, failure.words, failure.targets, outcome, place, reasons)


def _measured(fabric: Fabric, planned: PlannedFailure, metrics: DrillMetrics, verdict: Verdict, run: str) -> Row:
    own = own_nics(fabric, planned)
    failure, back = _edge(metrics, EdgeKind.FAILURE), _edge(metrics, EdgeKind.REPAIR)
    crossed = None if failure is None else _crossed(failure)
    outcome, reasons = verdict.outcome.value, verdict.reasons
    if crossed == 0 and outcome == Outcome.PASS.value and _carries_data(fabric, planned):
        outcome, reasons = Outcome.INCONCLUSIVE.value, (_UNUSED,)
    told = None if failure is None else _moment(metrics, failure, own)
    return replace(
        _named(planned, outcome, run, reasons),
        checks=verdict.checks,
        failure=told,
        back=None if back is None else _moment(metrics, back, own),
        crossed=crossed,
        cut_off=() if told is None else _cut_off(fabric, told.dark),
        noise_floor_ms=metrics.noise.noise_floor_ms,
        resolution_ms=metrics.resolution_ms,
        unfit=planned.unfit,
        by_timers=any(each.made.timers_alone_notice for each in planned.failure.breakages),
    )


def own_nics(fabric: Fabric, planned: PlannedFailure) -> frozenset[str]:
    """Return the NICs of hosts that fail as a whole: that they are dark is no news."""
    nodes = [node for each in planned.failure.breakages for node in each.made.nodes_hit()]
    return frozenset(nic.name for node in nodes for nic in fabric.nics_of(node))


def _carries_data(fabric: Fabric, planned: PlannedFailure) -> bool:
    links = [link for each in planned.failure.breakages for link in each.made.links_hit(fabric)]
    return any(link.kind is not LinkKind.PEER for link in links)


def _edge(metrics: DrillMetrics, kind: EdgeKind) -> EdgeResult | None:
    return next((edge for edge in metrics.edges if edge.edge.kind is kind), None)


def _crossed(edge: EdgeResult) -> int | None:
    """Return how many flows crossed what fails as it came, by data or acknowledgements; None if not known."""
    if edge.edge.crossed is None:
        return None
    return len({*edge.edge.crossed, *(edge.edge.acks_crossed or ())})


def _moment(metrics: DrillMetrics, edge: EdgeResult, own: frozenset[str]) -> Moment:
    flows = [
        result
        for flow, result in zip(metrics.flows, metrics.flows_at(edge), strict=True)
        if not {flow.src_nic, flow.dst_nic} & own
    ]
    return Moment(
        outage=_outage(flows),
        lost=sum(flow.lost + flow.corrupted for flow in flows),
        lossy=sum(flow.lost + flow.corrupted > 0 for flow in flows),
        flows=len(flows),
        dark=dark_nics(metrics, edge, own),
        converged=_converged(metrics, edge),
    )


def _outage(flows: Iterable[FlowEdgeResult]) -> Figure:
    """Return the longest outage of a flow, with the interval of the longest."""
    found = [*flows]
    worst = max(found, key=lambda flow: (flow.outage_plbm_ms, flow.budget.high_ms), default=None)
    if worst is None:
        return Figure(0.0, 0.0, 0.0)
    is_open = worst.stopped_by_error or not worst.recovered
    return Figure(worst.outage_plbm_ms, worst.budget.low_ms, worst.budget.high_ms, is_open)


def _converged(metrics: DrillMetrics, edge: EdgeResult) -> Figure | None:
    """Return the time to the last change of any protocol's state; None when none changed."""
    phase = converged(edge, metrics.settings.validation_s)
    if phase.ms is None:
        return None
    within = phase_interval("converged", phase.ms, edge, metrics)
    return Figure(phase.ms, within.low, within.high, bool(phase.reason))


def _cut_off(fabric: Fabric, dark: Iterable[DarkNic]) -> tuple[str, ...]:
    """Return the hosts whose NICs are all cut off, and other NICs that are, in the order of the fabric."""
    gone = {each.nic for each in dark if each.cut_off}
    found: list[str] = []
    for host in fabric.hosts:
        nics = [nic.name for nic in fabric.nics_of(host.name)]
        if nics and gone.issuperset(nics):
            found.append(host.name)
        else:
            found += [nic for nic in nics if nic in gone]
    return tuple(found)
