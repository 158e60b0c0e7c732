"""A campaign's folder: what was done is never lost, never done twice, and never mixed with another campaign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.scenarios.campaign.campaign import plan_for
from hpn.scenarios.campaign.journal import JOURNAL, Shrunk, load, opened
from hpn.scenarios.campaign.result import Invariant, Outcome
from hpn.testbed.errors import InputError
from tests.scenarios.campaign.samples import CRASH, CUT, FLAP, PLAN, result, sequence


def test_what_was_added_is_read_back(tmp_path: Path) -> None:
    bad, good = result(CUT, FLAP, index=3, broken=(Invariant.STATE,)), result(index=1, doubts=("busy",))
    small = Shrunk(3, (Invariant.STATE,), sequence(CUT, index=3), 2, 3, "violations/a.yaml")
    with opened(tmp_path / "new", PLAN) as journal:
        for entry in (bad, good, small):
            journal.add(entry)
        assert journal.done().results == (bad, good)
    kept, done = load(tmp_path / "new")
    assert kept == PLAN
    assert done.shrunk == (small,)
    assert done.indexes == {1, 3}
    assert (done.count(Outcome.VIOLATION), done.count(Outcome.INCONCLUSIVE)) == (1, 1)
    assert done.waiting == ()


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_a_line_that_a_crash_cut_short_is_taken_off(tmp_path: Path, cut: int) -> None:
    with opened(tmp_path, PLAN) as journal:
        journal.add(result(index=0))
        journal.add(result(CRASH, index=1))
    whole = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(whole[:-cut])
    assert load(tmp_path)[1].indexes == {0}
    with opened(tmp_path, PLAN) as journal:
        journal.add(result(CRASH, index=1))
    assert (tmp_path / JOURNAL).read_bytes() == whole


def test_another_campaign_is_refused_with_what_differs(tmp_path: Path) -> None:
    with opened(tmp_path, PLAN):
        pass
    other = replace(PLAN, seed=2, topology=PLAN.topology.model_copy(update={"aggs": 3}))
    with pytest.raises(InputError, match="another seed and topology"), opened(tmp_path, other):
        pass


def test_one_folder_has_one_campaign_at_a_time(tmp_path: Path) -> None:
    with (
        opened(tmp_path, PLAN),
        pytest.raises(InputError, match="is running in"),
        opened(tmp_path, PLAN),
    ):
        pass


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="not empty"), opened(tmp_path, PLAN):
        pass
    with pytest.raises(InputError, match="no campaign"):
        load(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, PLAN) as journal:
        journal.add(result())
    with (tmp_path / JOURNAL).open("a") as journal_file:
        journal_file.write('{"result": {}}\n')
    with pytest.raises(InputError, match=r"journal\.jsonl:2 is damaged"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("whole", "damaged"),
    [
        ('"link-flap"', '"link-flab"'),
        ('"duty"', '"dutz"'),
        ("0.5", '"half"'),
        ("""["period", 200000000""", """["period", 1e999"""),
        ('{"result"', "[" * 9999 + '{"result"'),
    ],
)
def test_a_damaged_line_is_told_by_its_number(tmp_path: Path, whole: str, damaged: str) -> None:
    with opened(tmp_path, PLAN) as journal:
        journal.add(result(index=0))
        journal.add(result(FLAP, index=1))
    text = (tmp_path / JOURNAL).read_text()
    first, second = text.splitlines()
    assert whole in second
    (tmp_path / JOURNAL).write_text(f"{first}\n{second.replace(whole, damaged)}\n")
    with pytest.raises(InputError, match=f"{JOURNAL}:2 is damaged"):
        load(tmp_path)


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no campaign"):
        load(Path("a" * 300))
    plan = plan_for(Path("a" * 300), 1, PLAN.topology)
    with pytest.raises(InputError, match="cannot keep a campaign"), opened(Path("a" * 300), plan):
        pass
    with opened(tmp_path, PLAN):
        pass
    (tmp_path / JOURNAL).unlink()
    (tmp_path / JOURNAL).mkdir()
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load(tmp_path)
