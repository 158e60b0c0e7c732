"""The claim about retry timers: what a blink adds to an iteration, with adapters' usual timers and adaptive ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from hpn.failover.analysis.job import Iteration, JobMetrics, MessageTimes
from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.paper.measures import ClaimEvidence
from hpn.scenarios.paper.reproduce import drill_file
from hpn.scenarios.paper.timer_claims import CLAIMS, faster_recovery
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.files.document import parse
from tests.scenarios.measured import metrics

(CLAIM,) = CLAIMS


def _run(longest_ms: float) -> DrillMetrics:
    ends = list(accumulate((400.0, longest_ms, 400.0), initial=0.0))
    found = [Iteration(at, round(ends[at] * 1e6), round(ends[at + 1] * 1e6), 0) for at in range(3)]
    times = MessageTimes(1, 1, 1.0, 1.0, 1.0)
    job = JobMetrics(4, 4, 1.0, tuple(found), 400.0, (), times, (), 1, 0, (), 0, {}, wrong=0, open_ms=0.0)
    return replace(metrics((), ()), job=job)


@pytest.mark.parametrize(
    ("usual", "adaptive", "agrees"), [(4700.0, 500.0, True), (4700.0, 4699.0, False), (400.0, 400.0, False)]
)
def test_adaptive_timers_agree_if_every_blink_costs_less(usual: float, adaptive: float, agrees: bool) -> None:
    runs = {name: _run(adaptive if "adaptive" in name else usual) for name in CLAIM.own_runs(1)}
    evidence = ClaimEvidence(runs, {}, {}, inventory(load_fabric("tiny")))
    found = faster_recovery(evidence)
    assert found.agrees is agrees
    assert f"halt for {', '.join([f'{adaptive - 400:.0f}'] * 3)} ms" in found.ours
    once = {CLAIM.own_runs(1)[0]: _run(adaptive)}
    assert faster_recovery(replace(evidence, drills={**runs, **once})).agrees is False, "one blink that costs the same"


def test_variants_differ_in_the_timer_and_the_blink_alone() -> None:
    texts = {each.name: each.text(drill_file(each.drill).read_text()) for each in CLAIM.variants}
    drills = {name: drill_from(parse(text, name), Path()) for name, text in texts.items()}
    jobs = {name: drill.job for name, drill in drills.items()}
    assert {job.retry_timer for job in jobs.values() if job} == {"ib", "adaptive"}
    assert len({replace(job, retry_timer="ib") for job in jobs.values() if job}) == 1
    assert [name for name, drill in drills.items() if not drill.timeline.faults] == [
        f"job-flap-timers-{timer}-calm" for timer in ("ib", "adaptive")
    ]
