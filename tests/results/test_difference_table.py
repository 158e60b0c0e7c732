"""The table of a comparison: figures that differ, in one table of a terminal's width, and the number of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.commands.compare import compare_
from hpn.results.comparison.differences import differences
from hpn.results.comparison.groups import Across, grouped
from hpn.results.comparison.science import science
from hpn.results.text.compared import comparison_parts
from hpn.results.text.difference_table import difference_sheet, differing_sheet, not_shown, other_sheet
from hpn.results.text.evidence import span_of
from tests.results.comparing import comparison, page_of
from tests.results.sample import MANIFEST, metrics, other_run
from tests.results.shown import as_text
from tests.results.test_comparison import SINGLE, run
from tests.results.test_science import FIRST, OTHER, runs
from tests.results.whole import whole_run

WORST = "link failure 0: worst outage"
EVERY = range(1, 7)


def test_figures_that_differ_are_shown_and_the_others_are_counted() -> None:
    """Five drills took 508 lines, most of them of figures without a difference."""
    groups = grouped([run(), run(SINGLE, 549.0)], [Across.FABRIC])
    of = comparison(groups, differences(groups))
    assert [row[0] for row in differing_sheet(of).rows] == [WORST]
    others = other_sheet(of).rows
    assert WORST not in [row[0] for row in others]
    count = len({each.key for each in of.found}) - 1
    assert not_shown(of) == f"{count} more figures without a difference"
    shown, whole = (
        "".join(as_text(part, 80) for part in comparison_parts([of], all_figures=every)) for every in (False, True)
    )
    assert f"{not_shown(of)}; --all-figures shows them" in shown
    assert "goodput during" not in shown
    assert "goodput during" in whole
    assert "--all-figures" not in whole


def test_a_table_of_two_groups_fits_80_columns_whatever_it_tells() -> None:
    """It came in three parts, so that a figure, its range and its difference stood far apart."""
    groups = grouped([*runs("1", FIRST, EVERY), *runs("2", OTHER, EVERY)], ())
    of = comparison(groups, differences(groups), science(groups))
    sheet = difference_sheet(of, of.found, "all")
    assert sheet.columns == ("figure", ">1", ">2", "difference")
    (row,) = (row for row in sheet.rows if row[0] == WORST)
    assert row[1:] == ("25.0 ms\n18.1 to 31.9", "28.0 ms\n21.1 to 35.4",
                       "+3.00 ms worse\n95 %: +2.50 to +3.50\ndelta +0.444, p 0.031")  # fmt: skip
    shown = "".join(as_text(part, 80) for part in comparison_parts([of]))
    heads = [line for line in shown.splitlines() if line.startswith("figure ")]
    assert [head.split() for head in heads] == [["figure", "1", "2", "difference"]]


def test_the_interval_of_one_run_is_told_to_be_no_spread() -> None:
    """'85.75 %, 85.70 to 85.79 %' of one draw read as a confidence interval: other draws were 12 to 21 % apart."""
    one, several = (run(), run(SINGLE, 549.0)), (*runs("1", FIRST, EVERY), *runs("2", OTHER, EVERY))
    captions = [
        differing_sheet(comparison(groups, differences(groups))).caption
        for groups in (grouped(of, list(Across)) for of in (one, several, (*one, run(SINGLE, 540.0))))
    ]
    assert [each.partition("; ")[2] for each in captions] == [
        "one run each, measurement error",
        "median, range",
        "median, range (of one run its measurement error)",
    ]


def test_a_difference_of_ratios_is_no_factor() -> None:
    """'-1.75 x better' was said of 2.75 x and 1 x."""
    assert (span_of(-1.75, -1.75, "x"), span_of(-2, -1, "x")) == ("-1.75", "-2 to -1")


def test_what_expectations_limit_comes_first_and_equal_figures_of_an_edge_share_a_row() -> None:
    groups = grouped([run(), run(SINGLE, 549.0)], [Across.FABRIC])
    of = comparison(groups, differences(groups))
    names = [row[0] for row in difference_sheet(of, of.found, "all").rows]
    assert [":" in name for name in names] == sorted(":" in name for name in names)
    assert "link failure 0: converge, also converged" in names


def test_of_several_groups_each_has_a_column_with_its_difference() -> None:
    third = replace(MANIFEST, fabric="pod")
    groups = grouped([run(), run(SINGLE, 549.0), run(third, 5.0)], [Across.FABRIC])
    sheet = differing_sheet(comparison(groups, differences(groups)))
    assert sheet.columns == ("figure", ">first", ">second", ">third")
    ((_, _, second, third_cell),) = sheet.rows
    assert second.splitlines()[-1] == "+529 ms worse"
    assert third_cell.splitlines()[-1] == "-15.0 ms better"


def test_of_several_drills_answers_and_groups_stand_once_at_the_top(tmp_path: Path) -> None:
    for group, worst_ms in (("a", 20.0), ("b", 900.0)):
        for drill in ("link-down", "tor-crash"):
            made = whole_run(tmp_path / group / drill)
            made.write_metrics(other_run(metrics(), worst_ms))
            made.write_drill(replace(made.drill(), name=drill, job={}))
            job = {"x": 1 if group == "a" else 2}
            made.write_manifest(replace(made.manifest(), drill=drill, job=job, client={}))
    asked = [f"{group}={tmp_path / group}" for group in "ab"]
    shown = CliRunner().invoke(compare_, [*asked, "--across", "settings"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0, shown.exception
    first, second, third, *_ = shown.output.split("\n\n")
    assert [line.split()[0] for line in first.splitlines()[2:] if line[0] != " "] == ["link-down", "tor-crash"]
    assert first.count("b is worse than a in") == 2
    assert second.startswith("groups of 2 drills, ")
    assert third.splitlines() == ["settings that differ", "a | b", "job.x: 1 | 2"]
    assert shown.output.count("groups of ") == shown.output.count("settings that differ") == 1


@pytest.mark.parametrize("hidden", ["Run by run", "All other figures"])
def test_what_the_table_does_not_need_is_behind_a_click_and_not_printed(hidden: str) -> None:
    """35 pages came out of a printer."""
    groups = grouped([run(), run(SINGLE, 549.0)], [Across.FABRIC])
    text = page_of(groups, differences(groups))
    opened = text[: text.index(hidden)].rpartition("<details")[2]
    assert opened.startswith(' class="edge screen">')
    assert "@media print" in text
    assert "details.screen{display:none}" in text[text.index("@media print") :]
