"""No metric is a pass on no evidence: each is held against runs that lack some, and says where it needs none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.results.judge.verdict import Outcome
from hpn.scenarios.expect.evidence import Evidence
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metric import Lack, Metric, Shape, Takes
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.scope import Scope
from hpn.scenarios.expect.selection import At, Bound
from hpn.scenarios.expect.verdict import judge_expectation

from .lacking import NIC, lacking

_ANY = 1e30
CASES = [(metric, what) for metric in METRICS.values() for what in Lack]


def _asked(metric: Metric) -> list[Expectation]:
    """What every figure keeps: at the edge whose window ends with the run, and of the whole run."""
    upper = Expectation(metric, Bound.AT_MOST, _ANY)
    match metric.shape:
        case Shape.YES_NO:
            return [replace(upper, bound=Bound.AT_LEAST, limit=1.0), replace(upper, bound=Bound.AT_LEAST, limit=0.0)]
        case Shape.PARTS:
            asked = replace(upper, limit=0.0, scope=Scope(nics=(NIC,)))
        case Shape.EVENTS:
            asked = replace(upper, bound=Bound.AT_LEAST, limit=-_ANY, events=(ProtocolEvent.CARRIER, ProtocolEvent.LAG))
        case Shape.LIMITS:
            asked = upper
    return [asked] if metric.takes is Takes.NOTHING else [replace(asked, edge=At.REPAIR), asked]


def _passes(metric: Metric, what: Lack) -> list[str]:
    runs = lacking(what)
    runs += [_without_edges(run) for run in runs if what in {Lack.EMPTY, Lack.IDLE} and run.metrics.job is None]
    checks = [judge_expectation(asked, run) for run in runs for asked in _asked(metric)]
    return [f"{check.text}: {check.evidence}" for check in checks if check.outcome is Outcome.PASS]


def _without_edges(run: Evidence) -> Evidence:
    flows = tuple(replace(flow, edges=()) for flow in run.metrics.flows)
    return run._replace(metrics=replace(run.metrics, flows=flows, edges=()))


@pytest.mark.parametrize(("metric", "what"), CASES, ids=[f"{m.key}-{w.name.lower()}" for m, w in CASES])
def test_a_metric_passes_on_no_evidence_only_where_it_says_why(metric: Metric, what: Lack) -> None:
    passed = _passes(metric, what)
    assert bool(passed) == (what in metric.tells), passed or "it says why it would be a figure, and is none"
