"""A campaign's page: what broke, shrunk to its steps; nothing of a journal becomes markup or a path outside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from hpn.commands.report import report
from hpn.scenarios.campaign.journal import Entry, Shrunk, opened
from hpn.scenarios.campaign.page import campaign_view
from hpn.scenarios.campaign.result import Invariant, Violation
from tests.results.hostile import NASTY
from tests.results.test_page import seen
from tests.scenarios.campaign.samples import CRASH, CUT, FLAP, PLAN, result, sequence

CLEAN = result(FLAP)
BROKEN = result(CUT, CRASH, index=1, broken=(Invariant.QUEUE_PAIR,))
FILE = "violations/campaign-1-1.yaml"
SHRUNK = Shrunk(1, (Invariant.QUEUE_PAIR,), sequence(CRASH, index=1), 2, 2, FILE)


def campaign(folder: Path, *entries: Entry) -> Path:
    with opened(folder, PLAN) as journal:
        for each in entries:
            journal.add(each)
    return folder


def test_a_violation_is_told_first_and_its_shrunk_sequence_is_drawn(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "out", CLEAN, BROKEN, SHRUNK)
    (folder / "violations").mkdir()
    (folder / FILE).write_text("")
    view = campaign_view(folder, folder / "report.html")
    assert view.head.answer == "No: 1 of 2 sequences broke an invariant. Shown again and shrunk: 1."
    assert view.head.broken[0].startswith(
        "Sequence 1: queue pairs live: shown again in 2 of 2 runs: tor-crash of p0.s1"
    )
    (section,) = view.sections
    assert section.steps is not None
    assert [(bar.name, bar.text) for bar in section.steps.bars] == [("tor-crash of p0.s1.t0.1", "at 800 ms for 900 ms")]
    done = CliRunner().invoke(report, [str(folder)])
    assert (done.exit_code, done.output) == (0, f"{folder / 'report.html'}\n")
    text = (folder / "report.html").read_text()
    links = {of["href"] for tag, of in seen(text).tags if tag == "a"}
    assert links == {"#s1", f"./{FILE}"}
    assert 'id="s1"' in text
    assert "at 700 ms, period 200 ms, duty 50 %, count 3" in text


def test_a_campaign_in_which_nothing_broke_passes(tmp_path: Path) -> None:
    view = campaign_view(campaign(tmp_path, CLEAN), tmp_path / "report.html")
    assert (view.head.outcome, view.sections) == ("pass", [])
    assert view.head.answer == "Yes: no invariant was broken in 1 sequence of faults."


def test_what_nobody_looked_into_or_could_show_again_says_nothing(tmp_path: Path) -> None:
    again = replace(SHRUNK, failed=0, file="")
    waiting = result(CUT, index=2, broken=(Invariant.LOOP,))
    view = campaign_view(campaign(tmp_path, CLEAN, BROKEN, again, waiting), tmp_path / "report.html")
    assert view.head.outcome == "inconclusive"
    assert view.head.answer == "Nothing can be said: 1 not shown again, 1 not looked into yet, of 3 sequences."


def test_a_journal_s_texts_are_text_and_its_files_lie_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("")
    target = replace(CUT, target=NASTY)
    bad = replace(BROKEN, sequence=sequence(target, index=1), violations=(Violation(Invariant.LOOP, NASTY),))
    bad = replace(bad, started_at=1e300, ended_at=-1e300)
    found = Shrunk(1, (Invariant.LOOP,), sequence(target, index=1), 2, 2, "../secret.yaml")
    folder = campaign(tmp_path / "out", bad, found)
    assert CliRunner().invoke(report, [str(folder)]).exit_code == 0
    text = (folder / "report.html").read_text()
    assert not {"script", "img"} & {tag for tag, _ in seen(text).tags}
    assert {of["href"] for tag, of in seen(text).tags if tag == "a"} == {"#s1"}
