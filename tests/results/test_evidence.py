"""What hpn compare says of a difference of groups of runs: terminal, JSON and page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.commands.compare import compare_
from hpn.results.comparison.figures import Key
from hpn.results.comparison.intervals import Span
from hpn.results.comparison.science import DifferenceEvidence
from hpn.results.text.evidence import evidence_sheet
from tests.results.sample import metrics, other_run
from tests.results.whole import whole_run

FIRST, OTHER = (20.0, 24.0, 22.0, 28.0, 26.0, 30.0), (23.0, 27.5, 24.5, 31.0, 28.5, 33.5)


def _made(out: Path, version: str, worst_ms: Sequence[float]) -> str:
    for number, ms in enumerate(worst_ms, start=1):
        run = whole_run(out / f"link-down-{number}")
        run.write_drill(replace(run.drill(), job={}))
        found = replace(run.manifest(), job={}, client={}, phase=number, repeat=number, versions={"hpn": version})
        run.write_manifest(found)
        run.write_metrics(other_run(metrics(), ms))
    return str(out)


def _said(*arguments: str) -> str:
    done = CliRunner().invoke(compare_, arguments, env={"COLUMNS": "300"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def test_groups_are_told_with_interval_effect_test_and_what_would_tell(tmp_path: Path) -> None:
    one, other = _made(tmp_path / "A", "1", FIRST), _made(tmp_path / "B", "2", OTHER)
    found = json.loads(_said(one, other, "--json"))
    worst = next(e for e in found if e["key"]["name"] == "worst outage" and "failure" in e["key"]["where"])
    told = worst["evidence"]
    assert (told["pairs"], told["test"], told["p"], told["exact"]) == (6, "Wilcoxon signed-rank", 2 / 64, True)
    assert told["median"] == {"low": 3.0, "high": 3.0}
    assert told["median_interval"]["low"] <= 3.0 <= told["median_interval"]["high"]
    assert told["holm"] == told["p"], "no other figure varies"
    assert worst["no_evidence"] == ""
    shown = _said(one, other)
    row = next(line for line in shown.splitlines() if line.startswith("link failure 0: worst outage"))
    assert row.endswith("+3.00 ms worse; 95 %: +2.50 to +3.50; delta +0.444, p 0.031"), "the statistics stand beside it"
    assert "6 pairs" not in shown
    assert "6 pairs" in _said(one, other, "--all-figures")
    page = tmp_path / "page.html"
    _said(one, other, "--html", str(page))
    assert "Cliff&#39;s delta" in page.read_text()


def test_of_a_single_run_it_says_why_nothing_is_told(tmp_path: Path) -> None:
    one, other = _made(tmp_path / "A", "1", FIRST[:1]), _made(tmp_path / "B", "2", OTHER[:2])
    why = "it takes 2 trusted runs of each group (--repeat), and 1 has 1"
    assert f"no interval, effect size or test of a difference: {why}" in _said(one, other)
    assert {each["no_evidence"] for each in json.loads(_said(one, other, "--json"))} == {why}
    assert "no interval" not in _said(one)


def test_how_many_runs_tell_a_difference_can_be_asked(tmp_path: Path) -> None:
    one, other = _made(tmp_path / "A", "1", FIRST), _made(tmp_path / "B", "2", OTHER)
    assert "for 0.20 ms" in _said(one, other, "--tell", "0.2")
    assert "more than 1,000" in _said(one, other, "--tell", "0.00001")
    for wrong in ("0", "-1", "nan", "soon"):
        assert CliRunner().invoke(compare_, [one, other, "--tell", wrong]).exit_code != 0


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        (Span(3.0, 3.0), "+3.00 ms"),
        (Span(-3.0, -3.0), "-3.00 ms"),
        (Span(0.0, 0.0), "0.00 ms"),
        (Span(378.0, math.inf), ">= +378 ms"),
        (Span(-math.inf, -378.0), "<= -378 ms"),
        (Span(-math.inf, math.inf), "not determined"),
        (Span(-1.0, 2.0), "-1.00 to +2.00 ms"),
    ],
)
def test_a_bound_is_shown_as_one(span: Span, shown: str) -> None:
    key = Key("cut failure 0", "worst outage", "ms")
    found = DifferenceEvidence(key, "2", (6, 6), 0, span, span, span, span, Span(-1.0, 1.0), "Mann-Whitney", True, None)
    (row,) = evidence_sheet([found]).rows
    assert row == ("cut failure 0: worst outage", "6, 6", shown, shown, "-1 to +1", *["not determined"] * 2,
                   "Mann-Whitney", "")  # fmt: skip
