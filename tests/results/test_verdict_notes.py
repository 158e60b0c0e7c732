"""What a reader must know to compare a run stands in the terminal, on the page and in Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
