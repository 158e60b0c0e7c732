"""Whether groups differ is answered by tests where runs have them, and what the tables show is never denied."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.commands.compare import compare_
from hpn.failover.analysis.job import Death
from hpn.failover.analysis.model import Relation
from hpn.results.comparison.differences import differences
from hpn.results.comparison.drills import Comparison
from hpn.results.comparison.edge_figures import figures_of
from hpn.results.comparison.figures import Key, Summary
from hpn.results.comparison.groups import Across, Compared, asked_otherwise, grouped, why_not
from hpn.results.comparison.intervals import Span, is_degenerate
from hpn.results.comparison.science import science
from hpn.results.tables.edges import FIGURES
from hpn.results.tables.table import RunFacts
from hpn.results.text.answer import ONE_RUN, answer, answers, survival
from hpn.results.text.comparison import figure_of, groups_sheet, value_of
from hpn.testbed.errors import InputError
from tests.results.comparing import drill_view
from tests.results.measured import job as a_job
from tests.results.sample import MANIFEST, metrics, other_run, verdict
from tests.results.test_science import FIRST, OTHER, exactly, runs
from tests.results.whole import whole_run
from tests.scenarios.measured import FAILURE, at_edge, flow
from tests.scenarios.measured import metrics as measured_metrics

NAME = "link failure 0: worst outage"
EVERY = range(1, 7)


def said(one: list[Compared], other: list[Compared]) -> str:
    groups = grouped([*one, *other], list(Across))
    found = differences(groups)
    evidence = () if why_not(groups) else science(groups)
    view = drill_view(groups, found, evidence)
    assert view.answer == answer(groups, found, evidence)
    return view.answer


def test_a_figure_that_its_test_tells_is_named_where_ranges_overlap() -> None:
    told = said(runs("1", FIRST, EVERY), runs("2", OTHER, EVERY))
    chance = r"The difference is beyond chance \(Holm\) in 1 of 1 tested figure"
    assert re.match(rf"{chance}: 2 is worse than 1 in {NAME}\.", told)
    assert f": 2 is better than 1 in {NAME}." in said(runs("1", OTHER, EVERY), runs("2", FIRST, EVERY))


def test_a_test_that_the_interval_does_not_confirm_is_told_as_such() -> None:
    groups = grouped([*runs("1", FIRST, EVERY), *runs("2", OTHER, EVERY)], ())
    found = [replace(each, median_interval=Span(0.0, 4.0)) if each.significant else each for each in science(groups)]
    told = answer(groups, differences(groups), found)
    assert f"By test alone (p (Holm) below 0.05), while the 95 % interval has 0 in it: {NAME}." in told
    assert "beyond chance" not in told


def test_a_job_that_stays_dead_is_the_first_thing_told() -> None:
    """Its network's routes may have come back sooner, which is no gain."""
    lives, dies = runs("1", FIRST, EVERY), runs("2", OTHER, EVERY)
    job = a_job()
    dead = replace(job, deaths=(Death(1, "a>b#0", 0, None, 0),))
    both = [
        *(replace(run, metrics=replace(run.metrics, job=job)) for run in lives),
        *(replace(run, metrics=replace(run.metrics, job=dead)) for run in dies),
    ]
    groups = grouped(both, list(Across))
    one, other = (group.label for group in groups)
    assert survival(groups) == f"The job dies for good, {one}: in 0 of 6 runs; {other}: in 6 of 6 runs."
    assert drill_view(groups, differences(groups), ()).answer.startswith("The job dies for good, ")
    assert survival(groups[:1]) == ""


def test_of_single_runs_ranges_decide_and_overlapping_ones_decide_nothing() -> None:
    assert said(runs("1", [20.0]), runs("2", [21.0])).startswith("Not determined: the ranges of all ")
    apart = said(runs("1", [20.0]), runs("2", [549.0]))
    assert apart.startswith(f"2 is worse than 1 in {NAME}.")


def test_of_several_drills_what_holds_for_single_runs_is_said_once_and_no_name_is_cut() -> None:
    groups = grouped([*runs("1", [20.0]), *runs("2", [549.0])], list(Across))
    named = (groups[0], replace(groups[1], label=f"2 {ONE_RUN}"))
    one, other = (Comparison(drill, named, differences(named)) for drill in ("link-down", "tor-crash"))
    apart = f"2 {ONE_RUN} is worse than 1 in {NAME}."
    assert answers([one]) == ([f"{apart} {ONE_RUN}"], "")
    assert answers([one, other]) == ([apart, apart], ONE_RUN)


def test_figures_that_a_test_tells_apart_are_among_those_that_differ_on_the_page() -> None:
    groups = grouped([*runs("1", FIRST, EVERY), *runs("2", OTHER, EVERY)], ())
    view = drill_view(groups, differences(groups), science(groups))
    assert [strip.name for chart in view.apart for strip in chart.strips] == [NAME]


def test_a_bound_that_knows_nothing_is_at_least_zero() -> None:
    """It read 'never'."""
    deaths = Key("", "queue pair deaths", "")
    assert value_of(Summary(2, 0.0, 0.0, math.inf, True), deaths) == ">= 0"


def test_tables_and_comparison_have_one_lower_bound_and_the_median_has_its_own() -> None:
    """Its packets stop when a queue pair dies, so losses say less than the time to the window's end."""
    dead = [flow(name, at_edge(name, Relation.RECEIVER, 400, died=True), dst="n") for name in ("a", "b", "c")]
    measured = measured_metrics((FAILURE,), tuple(dead))
    told = {figure: (ms, interval.low, interval.high, never) for _, figure, ms, interval, never in figures_of(measured)}
    assert told["worst outage"][:2] == told["median outage"][:2] == (1500.0, 1500.0)
    assert told["worst outage"][2:] == told["median outage"][2:] == (math.inf, True)
    facts = RunFacts("runs/one", MANIFEST, {}, None, measured, None)
    rows = {row["figure"]: (row["measured_ms"], row["low_ms"], row["high_ms"]) for row in FIGURES.rows(facts)}
    assert rows["worst outage"] == rows["median outage of flows with loss"] == (1500.0, 1500.0, None)


def test_a_run_without_streams_has_no_outage() -> None:
    """It was 0 ms, of which any difference would have been seen."""
    assert {"worst outage", "median outage"}.isdisjoint(each[1] for each in figures_of(replace(metrics(), flows=())))


def test_two_medians_of_a_table_have_two_names() -> None:
    edge, asked = Key("cut failure 0", "median outage", "ms"), Key("", "median outage at failure", "ms")
    assert figure_of(edge) == "median outage of flows with loss"
    assert figure_of(asked) == "median outage of all flows chosen at failure"


def test_what_a_job_was_run_with_is_a_cause() -> None:
    """A policy that has no key of its own was 'unexplained'."""
    asked = replace(MANIFEST, job={"queue_pairs": 1, "rehash_rounds": 12})
    one = Compared("a", replace(MANIFEST, job={"queue_pairs": 1}), metrics(), verdict(metrics()))
    other = Compared("b", asked, other_run(metrics(), 549.0), verdict(metrics()))
    groups = grouped([one, other], [Across.SETTINGS])
    assert asked_otherwise(*groups) == "job.rehash_rounds: none | 12"
    assert {each.why for each in differences(groups) if each.why} == {"job.rehash_rounds: none | 12"}


def test_runs_of_other_drills_or_fabrics_are_no_pairs() -> None:
    one, other = runs("1", FIRST, EVERY), runs("1", OTHER, EVERY)
    for changed in (replace(MANIFEST, drill="tor-crash"), replace(MANIFEST, fabric="pod")):
        moved = [replace(each, manifest=replace(changed, phase=each.manifest.phase)) for each in other]
        groups = grouped([*one, *moved], list(Across))
        assert {each.pairs for each in science(groups)} == {0}
    assert max(each.pairs for each in science(grouped([*one, *runs("2", OTHER, EVERY)], ()))) == 6


def test_a_median_that_no_draw_moves_has_no_interval() -> None:
    assert is_degenerate([exactly([0.0] * 7 + [-1.0] * 3)])
    assert not is_degenerate([exactly(FIRST)])
    assert not is_degenerate([[Span(-math.inf, math.inf)] * 5]), "bounds are not determined rather"
    found = science(grouped([*runs("1", [20.0] * 6, EVERY), *runs("2", [30.0] * 6, EVERY)], ()))
    worst = next(each for each in found if each.key.name == "worst outage" and "failure" in each.key.where)
    assert (worst.median_interval, worst.degenerate, worst.differs) == (None, True, True)


def test_groups_have_the_names_that_the_command_line_gives(tmp_path: Path) -> None:
    for name, job in (("a", {"queue_pairs": 1, "x": 1}), ("b", {"queue_pairs": 8, "x": 1})):
        made = whole_run(tmp_path / name)
        made.write_manifest(replace(made.manifest(), job=job))
        made.write_drill(replace(made.drill(), job={}))
    words = [f"before={tmp_path / 'a'}", f"after={tmp_path / 'b'}"]
    shown = CliRunner().invoke(compare_, [*words, "--across", "settings"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.exception
    assert re.search(r"^before \| after$", shown.output, re.MULTILINE), "whose each setting is"
    assert shown.output.count("queue_pairs 8") == 1
    assert " x 1" not in shown.output


def test_groups_that_would_share_a_name_are_numbered() -> None:
    one, other = runs("1", [20.0])[0], runs("2", [21.0])[0]
    labels = [group.label for group in grouped([replace(one, name="2"), other], ())]
    assert len({*labels}) == 2, labels


def test_a_table_of_groups_has_only_settings_that_differ() -> None:
    made = [runs("1", [20.0])[0], runs("1", [21.0])[0]]
    jobs: list[dict[str, str | int | float | bool]] = [{"a": 1, "b": 1, "c": 1, "d": 1, "e": 2}, {"e": 2}]
    each = [replace(run, manifest=replace(run.manifest, job=job)) for run, job in zip(made, jobs, strict=True)]
    groups = grouped(each, [Across.SETTINGS])
    assert [group.label for group in groups] == ["a 1, b 1, c 1, and 1 more", "group 2"]
    assert [row[-1] for row in groups_sheet(groups).rows] == ["a 1, b 1, c 1, d 1", "-"]


def test_a_damaged_run_is_named_and_left_out(tmp_path: Path) -> None:
    """It stopped the comparison of all others."""
    good, bad = whole_run(tmp_path / "good"), whole_run(tmp_path / "bad")
    (bad.path / "manifest.json").write_text("{")
    done = CliRunner().invoke(compare_, [str(good.path), str(bad.path)], standalone_mode=False)
    assert done.return_value == 2
    assert f"hpn: left out: {bad.path / 'manifest.json'}" in done.stderr
    assert "link-down" in done.stdout
    kept = tmp_path / "b.json"
    saved = CliRunner().invoke(compare_, [str(good.path), str(bad.path), "--save", str(kept)], standalone_mode=False)
    assert (saved.return_value, kept.exists()) == (2, True)
    assert "hpn: left out: " in saved.stderr
    good.write_metrics(other_run(metrics(), 9e5))
    worse = CliRunner().invoke(
        compare_, [str(good.path), str(bad.path), "--baseline", str(kept)], standalone_mode=False
    )
    assert worse.return_value == 1
    assert "hpn: left out: " in worse.stderr
    alone = CliRunner().invoke(compare_, [str(bad.path)])
    assert isinstance(alone.exception, InputError)


@pytest.mark.parametrize("word", ["../x=y", "=runs", "a" * 50 + "=runs"])
def test_a_word_with_another_sign_is_a_path(word: str) -> None:
    refused = CliRunner().invoke(compare_, [word])
    assert isinstance(refused.exception, InputError)
    assert "=" in str(refused.exception)
