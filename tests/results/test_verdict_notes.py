"""What a reader must know to compare a run stands in the terminal, on the page and in Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hpn.results.judge.verdict import Outcome
from hpn.results.page.page import view_of
from hpn.results.run.reading import read
from hpn.results.text.terminal import summary
from tests.results.sample import MANIFEST, metrics, verdict
from tests.results.shown import as_text
from tests.results.whole import whole_run

NOTE = "LACP kept the only port of a LAG out for up to 2.37 s"


def test_a_note_of_the_verdict_is_shown_in_the_terminal() -> None:
    found = replace(verdict(metrics()), notes=(NOTE,))
    assert f"  note: {NOTE}\n" in as_text(summary(MANIFEST, metrics(), found))


def test_a_note_of_the_verdict_is_shown_on_the_page(tmp_path: Path) -> None:
    run = read(whole_run(tmp_path / "run").path)
    assert run.verdict is not None
    assert view_of(replace(run, verdict=replace(run.verdict, notes=(NOTE,)))).lag_notes == (NOTE,)
    assert view_of(run).lag_notes == ()


COST = "Agg crash of p0.a0.0: 11 of 48 queue pairs crossed it, no outage longer than 2.03 s, none died."


def test_a_pass_with_harm_says_in_terminal_and_page_that_the_drill_expects_it(tmp_path: Path) -> None:
    """docs/results.md promised it, and a pass with 11 silent queue pairs read like one without harm."""
    run = read(whole_run(tmp_path / "run").path)
    assert run.verdict is not None
    assert run.metrics is not None
    assert run.metrics.edges[0].lost
    calm_edges = tuple(replace(edge, lost=0, flows_died=0, flows_unrecovered=0) for edge in run.metrics.edges)
    calm = replace(run.metrics, edges=calm_edges, job=None)
    expected = f"{COST} As the drill expects or allows."
    for outcome, measured, told in (
        (Outcome.PASS, run.metrics, expected),
        (Outcome.PASS, calm, COST),
        (Outcome.FAIL, run.metrics, COST),
    ):
        found = replace(run.verdict, outcome=outcome, cost=COST)
        assert view_of(replace(run, verdict=found, metrics=measured)).cost == told
        assert f"  {told}\n" in as_text(summary(MANIFEST, measured, found), 200)


def test_the_page_says_what_a_drill_shows_only_on_the_drill_s_own_fabric(tmp_path: Path) -> None:
    """A page of a single-ToR fabric had the summary of the drill, which ends with '(HPN)'."""
    run = read(whole_run(tmp_path / "run").path)
    assert run.drill is not None
    assert view_of(run).summary == run.drill.summary != ""
    elsewhere = replace(run.drill, other_fabric=("run on mine (single-tor), not on its own fabric",))
    assert view_of(replace(run, drill=elsewhere)).summary == ""
