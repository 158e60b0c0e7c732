"""Repeats: median, p95, maximum, and whether they agree within the noise."""

from __future__ import annotations

import math
from dataclasses import replace

from hpn.results.judge.repeats.spread import compare, nearest_rank, spread_table
from hpn.results.text.values import milliseconds, rounded_up
from tests.results.sample import metrics, other_run
from tests.results.shown import as_text


def test_runs_that_differ_by_less_than_the_noise_agree() -> None:
    base = metrics()
    noise_ms = base.noise.noise_floor_ms
    runs = [other_run(base, 20 + step * noise_ms / 10) for step in range(10)]
    found = next(one for one in compare(runs) if one.figure == "worst outage")
    assert found.edge == "link failure 0"
    assert found.agree
    assert found.median_ms == 20 + 4.5 * noise_ms / 10
    assert found.p95_ms == found.max_ms == 20 + 9 * noise_ms / 10


def test_one_stray_run_disagrees() -> None:
    base = metrics()
    runs = [other_run(base, ms) for ms in (20.0, 20.1, 31.0)]
    found = next(one for one in compare(runs) if one.figure == "worst outage")
    assert not found.agree
    assert (found.median_ms, found.max_ms) == (20.1, 31.0)
    assert "no: the runs differ by more than their intervals" in as_text(spread_table([found]))


def test_a_figure_that_some_runs_lack_is_counted_as_missing() -> None:
    lossy, lossless = metrics(20), metrics(0)
    by_figure = {(one.edge, one.figure): one for one in compare([lossy, lossless])}
    found = by_figure["link failure 0", "full convergence"]
    assert (len(found.values_ms), found.missing) == (1, 1)
    assert ("link repair 0", "switch") not in by_figure  # no run has it
    assert compare([]) == ()


def test_a_lab_that_was_not_quiet_before_the_next_edge_has_no_time_of_convergence() -> None:
    calm = metrics()
    first = calm.edges[0]
    late = replace(first.marks[0], last_ns=first.edge.window_end_ns - 1)
    restless = replace(calm, edges=(replace(first, marks=(late,)), *calm.edges[1:]))
    by_figure = {(one.edge, one.figure): one for one in compare([calm, restless])}
    found = by_figure[first.edge.label, "converged"]
    assert (found.values_ms, found.missing) == ((5.0,), 1)


def test_p95_is_a_value_that_occurred() -> None:
    assert nearest_rank([3.0, 1.0, 2.0], 95) == 3.0
    assert nearest_rank([float(n) for n in range(1, 101)], 95) == 95.0
    assert nearest_rank([7.0], 0) == 7.0


def test_a_figure_without_end_from_a_damaged_file_is_missing() -> None:
    base = metrics()
    first, *rest = base.edges
    endless = replace(first, phases=replace(first.phases, detect=replace(first.phases.detect, ms=float("inf"))))
    by_figure = {(one.edge, one.figure): one for one in compare([base, replace(base, edges=(endless, *rest))])}
    assert by_figure["link failure 0", "detect"].missing == 1


def test_an_outage_that_was_not_seen_is_below_its_bound() -> None:
    """It was 0.00, while the expectation below said '< 1.41 ms'."""
    runs = [metrics(0), metrics(0), metrics(0)]
    found = next(one for one in compare(runs) if one.figure == "worst outage" and not one.max_ms)
    high_ms = runs[0].edges[[each.edge.label for each in runs[0].edges].index(found.edge)].worst_outage_interval_ms.high
    assert high_ms > 0
    shown = as_text(spread_table([found]), 200)
    assert shown.count(f"< {milliseconds(rounded_up(high_ms))} ") == 3
    assert " 0.00 " not in shown.replace("0.00 to", "")


def test_one_outage_that_was_seen_leaves_the_median_a_bound() -> None:
    found = next(one for one in compare([metrics(0), metrics(0), metrics(20)]) if one.figure == "worst outage")
    shown = as_text(spread_table([found]), 200)
    assert (found.median_ms, found.max_ms) == (0, 20)
    assert shown.count("< ") == 1
    assert "20.0" in shown


def test_a_run_that_never_came_back_leaves_bounds_over_the_runs() -> None:
    """They were numbers, with an upper end."""
    ended, slow = metrics(), other_run(metrics(), 500.0)
    never = replace(slow, edges=(replace(slow.edges[0], flows_unrecovered=1), *slow.edges[1:]))
    found = next(one for one in compare([ended, never]) if one.figure == "worst outage")
    assert (found.open_from_ms, found.high_ms, found.rsd_pct) == (500.0, math.inf, None)
    shown = as_text(spread_table([found]), 200)
    assert ">= 500" in shown
    assert f">= {milliseconds(found.median_ms)} " in shown, "the middle of a figure and a bound is a bound"
    assert "inf" not in shown
