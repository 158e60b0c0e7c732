"""Summaries for job pages: what a reader needs of drills that are no pass, and nothing that a drill says is markup."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hpn.results.export.ci import ci_summary
from hpn.results.export.ci_runs import CiRun, grouped
from hpn.results.export.junit import Judged, Unmade
from hpn.results.export.markdown import cell, code, drills_summary
from hpn.results.judge.repeats.judging import judge_repeats
from hpn.results.judge.verdict import at_most, decide, holds
from tests.results.sample import MANIFEST


def run(number: int, worst_ms: float, *reasons: str) -> Judged:
    checks = [holds("state restored", True), at_most("worst outage below 50 ms", worst_ms, 50, unit="ms")]
    return Judged(replace(MANIFEST, repeat=number), decide(checks, reasons), (f"out/link-down.{number}/verdict.json",))


def test_a_run_that_is_no_pass_is_explained() -> None:
    said = drills_summary([run(1, 20), run(2, 80), run(3, 20, "starved of CPU")])
    assert said.startswith("# hpn drill run: fail, 3 runs\n")
    assert "| link-down on tiny #1 | pass |  |\n" in said
    assert "## link-down on tiny #1" not in said
    assert "## link-down on tiny #2: fail\n" in said
    assert (
        "| fail | worst outage below 50 ms | measured 80.0 ms, limit 50.0 ms, margin -30.0 ms |\n| pass | state" in said
    )
    assert "Made by `hpn drill run link-down` with the host engine.\nFiles: `out/link-down.2/verdict.json`." in said
    assert "## link-down on tiny #3: inconclusive\n\n* cannot be trusted: starved of CPU\n" in said


def test_repeats_are_judged_together_in_the_headline() -> None:
    runs = [run(number, 20) for number in range(1, 11)]
    said = drills_summary(runs, [judge_repeats("link-down", [each.verdict for each in runs])])
    assert said.startswith("# hpn drill run: pass, 10 runs\n")
    assert "| link-down over 10 repeats | pass | 10 of 10 trusted runs pass: failure rate below 26 %" in said


def test_a_run_that_could_not_be_made_is_in_the_summary_and_in_the_headline() -> None:
    dead = Unmade("tor-crash", 2, "no namespaces here", noisy=False)
    assert drills_summary([run(0, 20)], (), [dead]).startswith("# hpn drill run: could not run everything, 2 runs\n")
    assert drills_summary([run(0, 80)], (), [dead]).startswith("# hpn drill run: fail, 2 runs\n")
    said = drills_summary([], (), [replace(dead, noisy=True)])
    assert said.startswith("# hpn drill run: inconclusive, 1 run\n")
    assert "| tor-crash #2 | inconclusive | no namespaces here |\n" in said


def test_a_suite_explains_its_runs_as_well() -> None:
    made = [CiRun("link-down", "host", n, 2, f"link-down.host.{n}", 1.0, run(0, 80), exit_code=1) for n in (1, 2)]
    said = ci_summary("nightly", grouped(made))
    assert "| link-down | host | fail | 2 fail |  | 2.0 | worst outage below 50 ms: " in said
    assert "## link-down on host #2: fail\n" in said


NASTY = ["a|b", "a\n\n# b", "<script>alert(1)</script>", "![x](http://y)", "`a` | ``b``", "\x1b[31m\ud800", "x" * 10**6]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nothing_that_a_drill_says_is_markup(text: str) -> None:
    manifest = replace(MANIFEST, drill=text, fabric=text, command=(text,), engine=text)
    check = replace(at_most(text, 80, 50), evidence=text)
    said = drills_summary([Judged(manifest, decide([check], [text]), (text,))])
    said.encode()
    assert re.search("[<>]", re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", said)) is None, "outside of code nothing is raw"
    assert len(said) < 10_000
    for line in said.splitlines():
        if line.startswith("|") and "---" not in line:
            assert len([n for n, c in enumerate(line) if c == "|" and line[n - 1] != "\\"]) == 4


def test_cells_and_code_show_what_was_said() -> None:
    assert (
        cell("p0.s0.h0.r0>p0.s1.h0.r0#0 < 0.84 ms | x_y\nz") == r"p0.s0.h0.r0&gt;p0.s1.h0.r0#0 &lt; 0.84 ms \| x\_y z"
    )
    assert (code("plain"), code("a``b")) == ("`plain`", "``` a``b ```")
