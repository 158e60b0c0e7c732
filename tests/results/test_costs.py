"""The cost of several runs: the first run's may be the least of all, so the range over all stands beside it."""

from __future__ import annotations

from dataclasses import replace

from hpn.failover.analysis.model import DrillMetrics
from hpn.results.text.costs import GroupCost, over_runs, without_fault
from hpn.results.text.harm import harm
from tests.results.measured import job
from tests.results.sample import metrics
from tests.results.test_stream_figures import of_goodput


def of_lost(lost: float) -> DrillMetrics:
    made = replace(job(), deaths=())
    first, *later = (replace(edge, lost=0.0, unfinished=False) for edge in made.edges)
    edges = (replace(first, lost=lost), *later)
    return replace(metrics(), job=replace(made, edges=edges))


def test_the_iterations_lost_are_told_of_all_runs() -> None:
    """'less than 0.1 iterations' was the first of ten runs; others lost up to 6.0."""
    lost = (0.02, 0.3, 0.5, 6.0)
    assert over_runs([*map(of_lost, lost)]) == "In 4 runs: < 0.1 to 6.0 iterations lost, median 0.4."
    assert over_runs([of_lost(0.0), of_lost(-0.3)]) == "In all 2 runs: < 0.1 iterations lost."
    assert over_runs([of_lost(1.0)]) == ""


def stands(run: DrillMetrics) -> DrillMetrics:
    assert run.job is not None
    *edges, last = run.job.edges
    return replace(run, job=replace(run.job, edges=(*edges, replace(last, unfinished=True))))


def test_a_loss_that_goes_on_is_a_lower_bound_in_the_range_too() -> None:
    """Each run said 'at least', and their range did not."""
    ended, going_on = of_lost(2.0), stands(of_lost(6.0))
    assert over_runs([ended, going_on]) == "In 2 runs: 2.0 to at least 6.0 iterations lost, median at least 4.0."
    assert over_runs([ended, ended, going_on]) == "In 3 runs: 2.0 to at least 6.0 iterations lost, median 2.0."
    assert over_runs([stands(ended), of_lost(6.0), of_lost(6.0)]) == (
        "In 3 runs: at least 2.0 to at least 6.0 iterations lost, median 6.0."
    )
    assert over_runs([going_on, going_on]) == "In all 2 runs: at least 6.0 iterations lost."
    assert over_runs([stands(of_lost(0.02)), ended]) == "In 2 runs: < 0.1 to 2.0 iterations lost, median 1.0."
    assert "the time of at least 6.0 iterations was lost" in harm(going_on)
    assert "the time of 2.0 iterations was lost" in harm(ended)


def test_a_job_that_stays_dead_has_no_range_of_its_loss() -> None:
    dead = replace(job(), deaths=(replace(job().deaths[-1], restarted_at_ns=None),))
    assert over_runs([of_lost(1.0), replace(metrics(), job=dead)]) == ""


def test_of_streams_the_goodput_is_told_of_all_runs() -> None:
    runs = [of_goodput(100e6, each) for each in (88.5e6, 78.1e6, 80e6)]
    assert over_runs(runs) == "In 3 runs: -21.9 % to -11.5 % of goodput in the first fault, median -20.0 %."
    assert over_runs([*runs, replace(metrics(), edges=())]) == ""


def test_the_fault_is_said_once_where_all_groups_have_it() -> None:
    one = GroupCost("d", "a", "pass", "ToR crash of x: 3 died.", "f")
    other = one._replace(group="b", cost="ToR crash of x: none died.")
    assert without_fault([one, other]) == (
        "ToR crash of x",
        [one._replace(cost="3 died."), other._replace(cost="none died.")],
    )
    elsewhere = other._replace(cost="ToR crash of y: none died.")
    assert without_fault([one, elsewhere]) == ("", [one, elsewhere])
    assert without_fault([one]) == ("", [one])
