"""A queue pair that path control found no source port for is told wherever a run is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hpn.results.export.junit import judged, junit_xml
from hpn.results.judge.verdict import Outcome
from hpn.results.page.page import page
from hpn.results.run.reading import read
from hpn.results.text.terminal import summary
from hpn.scenarios.campaign import invariants
from hpn.scenarios.campaign.result import Invariant
from hpn.scenarios.run.judgement import judge_measured, moved_wrongly
from hpn.scenarios.run.measurement import Measurement
from hpn.testbed.events import Event, EventKind
from hpn.testbed.routing.pathcontrol.actions import STUCK
from tests.failover.synthetic import MS
from tests.results.sample import MANIFEST
from tests.results.shown import as_text
from tests.scenarios.run_folders import judged_run
from tests.scenarios.test_analyse import AT, measured_streams

TOLD = "stays on r0p0, where its destination is lost: no source port of 128 leads to a port that works"


def stuck() -> Measurement:
    """A link dies, and the first queue pair's acknowledgements find no other port."""
    found = measured_streams()
    detail: dict[str, str | int | float] = {"dst": "10.0.0.2", "sport": 0xC000, "port": "r0p0", "tries": 128}
    event = Event(AT + MS, EventKind.PATH, "p0.s1.h0", "1", STUCK, detail)
    return replace(found, events=tuple(sorted((*found.events, event), key=lambda each: each.at_ns)))


def test_terminal_page_and_junit_of_a_run_say_that_a_queue_pair_was_stuck(tmp_path: Path) -> None:
    run = judged_run(tmp_path / "run", stuck())
    metrics, verdict = judge_measured(stuck())
    assert verdict.outcome is Outcome.FAIL
    assert TOLD in " ".join(as_text(summary(MANIFEST, metrics, verdict), 400).split())
    shown = page(read(run.path))
    assert TOLD in shown
    assert "queue pairs stuck" in shown, "a step of the chain of events after the edge"
    assert TOLD in junit_xml([judged(run)])


def test_a_stuck_queue_pair_violates_an_invariant_of_campaigns() -> None:
    metrics, _verdict = judge_measured(stuck())
    (violation,) = invariants.moves(moved_wrongly(stuck(), metrics))
    assert violation.invariant is Invariant.MOVES
    assert TOLD in violation.text
