"""A campaign that is killed or interrupted leaves no lab behind, and the same command goes on with it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.product.hpn import DEADLINE_S, Hpn, processes_of, skip_without_sandbox, until

RUN = ("campaign", "run", "tiny", "--sequences", "3", "--jobs", "1", "--out", "out")


def a_lab_stands(state: Path) -> bool:
    return any(b'"stood"' in path.read_bytes() for path in state.glob("out/.hpn-pool-*/*/made/report.jsonl"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_an_interrupted_campaign_leaves_no_lab_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    skip_without_sandbox()
    hpn = Hpn(tmp_path)
    campaign = hpn.start(*RUN)
    until(lambda: a_lab_stands(tmp_path), "a lab stands")
    campaign.send_signal(number)
    out, err = campaign.communicate(timeout=DEADLINE_S)
    assert "Traceback" not in out + err
    until(lambda: processes_of(tmp_path) == [], "every process of the campaign is gone")
    hpn.run(*RUN, code=None)
    assert "sequences" in hpn.run("campaign", "show", "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "journal.jsonl").read_text().splitlines()]
    assert {line["result"]["sequence"]["index"] for line in lines if "result" in line} == {0, 1, 2}
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.name != "violations") == [
        "campaign.json",
        "journal.jsonl",
        "report.html",
    ]


def test_another_seed_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "note.txt").write_text("mine")
    said = Hpn(tmp_path).run(*RUN, code=2)
    assert said.count("\n") == 1
    assert "not empty" in said
