"""What is told of a job, from records of its ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpn.failover.analysis.causes import causes
from hpn.failover.analysis.cost import cost
from hpn.failover.analysis.job import Death, DeathFact, JobEdge, JobFacts, JobMetrics, SpanFact
from hpn.failover.analysis.metrics.job import job_metrics
from hpn.failover.analysis.model import DrillMetrics, Edge, EdgeKind, Settings
from hpn.failover.analysis.placement import DataPath, Placement
from hpn.traffic.jobengine.records import MESSAGE, SPAN
from tests.results.sample import metrics

MS = 1_000_000
S = 1000 * MS
FACTS = JobFacts(
    spans={
        rank: (SpanFact("iteration", "iteration", 0, 0), SpanFact("sum", "all-reduce", 1_000_000, 2)) for rank in (0, 1)
    },
    queue_pairs=2,
    tick_ns=MS // 2,
    packets=100,
    packets_again=3,
    counters={},
)


def told(
    times_ms: list[tuple[float, float]],
    *edges_ms: float,
    end_ms: float = 4000,
    wrong: int = 0,
    facts: JobFacts = FACTS,
    without_first: int = 0,
    messages: int = 100,
) -> JobMetrics:
    """Of iterations from begin to end at rank 0, rank 1 being 1 ms later in both; the first records may be missing."""
    spans = np.zeros(4 * len(times_ms), SPAN)
    for at, (begin, end) in enumerate(times_ms):
        for rank in (0, 1):
            for span in (0, 1):
                times = (round((begin + rank) * MS), round((end + rank) * MS))
                spans[4 * at + 2 * rank + span] = (rank, at, span, wrong if rank and span else 0, *times)
    ends = [*edges_ms[1:], end_ms][: len(edges_ms)]
    edges = [
        Edge("cut", EdgeKind.FAILURE, 0, round(at * MS), round(at * MS), round(until * MS), ())
        for at, until in zip(edges_ms, ends, strict=True)
    ]
    sent = np.zeros(messages, MESSAGE)
    sent["bytes"], sent["completed_ns"] = 1000, np.arange(1, messages + 1) * MS
    return job_metrics(facts, spans[without_first:], sent, edges, (0, round(end_ms * MS)), Settings())


def every(ms: float, until_ms: float, begin_ms: float = 0) -> list[tuple[float, float]]:
    return [(float(at), at + ms) for at in np.arange(begin_ms, until_ms - ms / 2, ms)]


def test_an_iteration_is_all_ranks_and_a_collective_is_its_slowest() -> None:
    found = told(every(100, 4000))
    assert len(found.iterations) == 40
    assert found.iterations[0].ms == 100, "rank 1 began and ended it 1 ms later"
    (span,) = found.spans
    assert (span.count, span.mean_ms, span.size_bytes) == (40, 100, 1_000_000)
    assert span.algbw_bps == pytest.approx(80e6)
    assert span.busbw_bps == pytest.approx(80e6)  # 2(n-1)/n is 1 for two ranks
    assert (found.messages.count, found.messages.size_bytes, found.messages.most_ms) == (100, 100_000, 100)


def ranks(*begun_ms: list[tuple[float, float]], end_ms: float = 4000, edge_ms: float | None = None) -> JobMetrics:
    """Of ranks that each have iterations of their own times."""
    rows = [
        (rank, number, span, 0, round(begin * MS), round(end * MS))
        for rank, times in enumerate(begun_ms)
        for number, (begin, end) in enumerate(times)
        for span in (0, 1)
    ]
    at_ns, end_ns = round((edge_ms or 0) * MS), round(end_ms * MS)
    edges = [] if edge_ms is None else [Edge("cut", EdgeKind.FAILURE, 0, at_ns, at_ns, end_ns, ())]
    facts = replace(FACTS, spans=dict.fromkeys(range(len(begun_ms)), FACTS.spans[0]))
    return job_metrics(facts, np.array(rows, SPAN), np.zeros(0, MESSAGE), edges, (0, end_ns), Settings())


def test_a_rank_that_runs_ahead_makes_no_iteration_longer() -> None:
    """Rings of their own: rank 0 is 35 iterations ahead in the end, which are in none of rank 1's."""
    found = ranks(every(46, 3999), every(76, 3999), edge_ms=2000)
    assert {each.ms for each in found.iterations} == {76}
    assert found.mean_ms == found.period_ms == 76
    (cost,) = found.edges
    assert (cost.longest_ms, cost.unfinished) == (76, False)
    assert cost.rate_before == pytest.approx(cost.rate_after, rel=0.001)
    assert cost.rate_after == pytest.approx(1000 / 76, rel=0.001)


def test_the_time_in_which_a_rank_waited_for_another_is_in_one_iteration() -> None:
    """Rank 1 stands still for 200 ms in iteration 1; rank 0 began iteration 2 while it did."""
    found = ranks([(0, 100), (100, 200), (200, 500), (500, 600)], [(0, 100), (100, 400), (400, 500), (500, 600)])
    assert [each.ms for each in found.iterations] == [100, 300, 300, 100], "both ended iteration 2 at once: the longer"
    behind = ranks([(0, 100), (100, 200), (200, 499), (500, 600)], [(0, 100), (100, 400), (400, 500), (500, 600)])
    assert [each.ms for each in behind.iterations] == [100, 300, 100, 100]


def test_the_period_has_the_rest_between_two_iterations() -> None:
    found = told(resting(4000), 2050)
    assert found.mean_ms == pytest.approx(20)
    assert found.period_ms == pytest.approx(60)


def test_a_run_without_fault_says_how_often_an_iteration_ended() -> None:
    of_all = replace(metrics(), edges=(), flows=(), job=told(every(100, 3900)))
    assert cost(of_all, {}) == "No fault: 39 iterations, one every 100 ms."
    assert cost(replace(of_all, job=told(every(100, 100))), {}) == "No fault: 1 iteration."


def test_what_a_repair_cost_a_job_is_told_apart_from_its_failure() -> None:
    at_failure = JobEdge(8.0, 7.0, 8.0, 300.0, False, 2.0)
    at_repair = replace(at_failure, longest_ms=200.0, lost=1.5)
    job = replace(told([*every(100, 3900), (5800, 6100), (6100, 6250)], end_ms=10_000), open_ms=0.0)
    found = replace(metrics(), job=replace(job, edges=(at_failure, at_repair)))
    said = cost(found, {})
    assert "took 300 ms (mean before: 106 ms), the longest that began after the repair 150 ms, the job " in said
    assert said.endswith("the job lost the time of 3.5 iterations, 1.5 of them after the repair.")
    assert found.job is not None
    small = (replace(at_failure, lost=0.08), replace(at_repair, lost=0.19))
    text = cost(replace(found, job=replace(found.job, edges=small)), {})
    assert text.endswith("the time of 0.3 iterations, 0.2 of them after the repair."), "not all of them"
    dead = replace(found, job=replace(found.job, edges=(replace(at_failure, longest_ms=0.0, lost=0.01), at_repair)))
    assert ": no iteration ended before the repair, the longest that began after the repair 150 ms, " in cost(dead, {})
    assert cost(dead, {}).endswith("the time of 1.5 iterations, all of them after the repair.")
    quiet = tuple(replace(each, lost=0.01) for each in (at_failure, at_repair))
    assert cost(replace(found, job=replace(found.job, edges=quiet)), {}).endswith("lost less than 0.1 iterations.")


def test_an_iteration_that_the_repair_found_under_way_is_told_once() -> None:
    """It began in the failure and ended after the repair, or never: both windows have it as their longest."""
    stall = JobEdge(8.0, 0.1, 0.1, 2101.0, False, 9.0)
    job = replace(told([*every(100, 4000), (4000, 6100)], end_ms=10_000), edges=(stall, stall))
    ended = cost(replace(metrics(), job=replace(job, open_ms=0.0)), {})
    assert "the longest iteration took 2.10 s (mean before: 149 ms), the job lost" in ended
    again = cost(replace(metrics(), job=job), {})
    assert (
        "took 2.10 s (mean before: 149 ms), the longest that began after the repair at least 3.89 s, the job" in again
    )
    open_ = tuple(replace(stall, longest_ms=6000.0, unfinished=True) for _ in range(2))
    never = cost(replace(metrics(), job=replace(job, edges=open_, iterations=job.iterations[:-1], open_ms=6000.0)), {})
    assert "the longest iteration took at least 6.00 s (mean before: 149 ms), the job lost" in never


def test_waits_for_a_retry_timer_are_told_with_the_cost_as_they_say_why() -> None:
    found = replace(told(every(100, 3900)), edges=(JobEdge(8.0, 7.0, 8.0, 300.0, False, 2.0),) * 2)

    def said(**counters: int) -> str:
        each = {name: {"local_ack_timeout_err": count, "out_of_sequence": 9} for name, count in counters.items()}
        return cost(replace(metrics(), job=replace(found, counters=each)), {})

    assert said(a=1, b=2).endswith(" after the repair. Queue pairs waited 3 times for a retry timer.")
    assert said(a=1).endswith(" Queue pairs waited 1 time for a retry timer.")
    assert said(a=0).endswith(" after the repair.")


def test_a_death_is_told_with_its_fault_and_with_how_long_the_job_stood_still() -> None:
    """From the end of the last iteration before it; the longest iteration alone does not say what dying cost."""
    whole, job = metrics(), replace(told(every(100, 3900)), edges=(JobEdge(8.0, 7.0, 8.0, 300.0, False, 2.0),) * 2)
    failure = whole.edges[0].edge
    again = Death(
        failure.inject_before_ns + S, "a>b#0", failure.inject_before_ns - S, failure.inject_before_ns + 2 * S, 0
    )

    def said(*deaths: Death) -> str:
        return cost(replace(whole, job=replace(job, deaths=deaths)), {})

    assert "the job died once and stood still for 3.00 s, the longest iteration took" in said(again)
    twice = said(again, replace(again, since_ns=again.at_ns))
    assert "the job died 2 times and stood still for at most 3.00 s, " in twice
    dead = said(replace(again, restarted_at_ns=None))
    assert dead.endswith("the job died 1.00 s after it and was not started again."), "no figure that grows with the run"
    assert "died" not in said(replace(again, at_ns=failure.inject_before_ns - 1)), "before any fault"


PAIRS = ("a>b#0", "b>a#0", "a>c#0")


def killed(
    crossed: tuple[int, ...] | None, acks: tuple[int, ...] | None, pair: str = PAIRS[1], after_ms: int = 548
) -> DrillMetrics:
    """A run whose job of 3 queue pairs died of one of them after the failure."""
    whole, job = metrics(), replace(told(every(100, 3900)), edges=(JobEdge(8.0, 7.0, 8.0, 300.0, False, 2.0),) * 2)
    failure = whole.edges[0].edge
    death = Death(failure.inject_before_ns + after_ms * MS, pair, 0, None, 0)
    settled = Placement("healthy", 0, 0, tuple(DataPath(at, name, (), None) for at, name in enumerate(PAIRS)), ())
    first = replace(whole.edges[0], edge=replace(failure, crossed=crossed, acks_crossed=acks))
    dead = replace(job, queue_pairs=3, deaths=(death,), placements=(settled,))
    return replace(whole, edges=(first, *whole.edges[1:]), flows=(), flow_count=0, job=dead)


@pytest.mark.parametrize(
    ("crossed", "acks", "words"),
    [
        ((), (1,), "data of none of 3 queue pairs crossed it, acknowledgements of 1 did, the job died"),
        ((0,), (0, 1, 2), "data of 1 of 3 queue pairs crossed it, acknowledgements of 2 others did, the job died"),
        ((0, 1), (0,), "2 of 3 queue pairs crossed it, the job died"),
        ((), None, "none of 3 queue pairs crossed it, the job died"),
    ],
    ids=["acknowledgements", "both", "data", "not known"],
)
def test_acknowledgements_that_crossed_a_fault_of_a_job_are_told(
    crossed: tuple[int, ...], acks: tuple[int, ...] | None, words: str
) -> None:
    """The way back has a hash of its own: a job dies of it though no data crossed what failed."""
    assert f": {words}" in cost(killed(crossed, acks), {})


@pytest.mark.parametrize(
    ("crossed", "acks", "what"),
    [
        ((), (1,), "acknowledgements alone"),
        ((1,), (0,), "data"),
        ((1,), (1,), "data and acknowledgements"),
    ],
)
@pytest.mark.parametrize("after_ms", [548, 2548], ids=["before the repair", "after it"])
def test_a_job_s_death_is_explained_by_what_of_its_queue_pair_crossed_the_fault(
    crossed: tuple[int, ...], acks: tuple[int, ...], what: str, after_ms: int
) -> None:
    found = killed(crossed, acks, after_ms=after_ms)
    assert causes(found) == (f"failure of link: the job died of queue pair b>a#0, whose {what} crossed it",)


def test_a_job_s_death_by_a_queue_pair_that_nobody_saw_cross_the_fault_is_not_explained() -> None:
    assert causes(killed((0,), (2,))) == ()
    assert causes(killed(None, None)) == ()


def test_one_iteration_before_the_first_edge_has_no_period() -> None:
    assert told(every(100, 4000), 150).period_ms == 0
    assert told(every(100, 4000), 50).period_ms == 0


def test_a_job_that_goes_on_as_before_loses_no_iteration() -> None:
    (cost,) = told(every(100, 4000), 2050).edges
    assert cost.rate_before == pytest.approx(10, rel=0.01)
    assert cost.rate_after == pytest.approx(10, rel=0.01)
    assert abs(cost.lost) < 0.3
    assert cost.longest_ms == 100
    assert not cost.unfinished


def test_a_stall_is_a_long_iteration_and_what_was_not_done_meanwhile_is_lost() -> None:
    (cost,) = told([*every(100, 2000), (2000, 2700), *every(100, 4000, 2700)], 2050).edges
    assert cost.longest_ms == 700
    assert cost.lost == pytest.approx(6, abs=0.3)
    assert cost.rate_after == pytest.approx(10, rel=0.02)


def test_what_the_end_cuts_off_counts_as_one_that_waited_for_nothing() -> None:
    """Its elders' mean would have it take twice as long, for the one that stood still for 7 s."""
    whole = [*every(250, 2000), (2000, 9000), *every(250, 13_000, 9000)]
    (cost,) = told(whole, 2050, end_ms=13_225).edges
    assert cost.rate_before == pytest.approx(4, rel=0.01)
    assert cost.rate_after == pytest.approx(4, rel=0.01)


def resting(until_ms: float, begin_ms: float = 0) -> list[tuple[float, float]]:
    """Iterations of 20 ms, each 60 ms after the one before began."""
    return [(at, at + 20) for at in np.arange(begin_ms, until_ms - 20, 60).tolist()]


@pytest.mark.parametrize("end_ms", range(4000, 4060, 7))
def test_pauses_that_happen_to_lie_in_a_window_change_no_rate(end_ms: float) -> None:
    """A window of 1 s has 16 or 17 pauses of 40 ms: 4 % of it."""
    (cost,) = told(resting(end_ms), 2050, end_ms=end_ms).edges
    assert cost.rate_before == pytest.approx(1000 / 60, rel=0.002)
    assert cost.rate_after == pytest.approx(1000 / 60, rel=0.002)
    assert abs(cost.lost) < 0.1


@pytest.mark.parametrize(("end_ms", "unfinished"), [(4018, False), (4070, True)])
def test_a_pause_at_the_end_is_no_iteration_that_has_not_ended(end_ms: float, unfinished: bool) -> None:
    """The last step ended at 3981 and the next begins at 4020: at 4018 nothing is under way, at 4070 it is late."""
    found = told(resting(4000), 2050, end_ms=end_ms)
    assert [edge.unfinished for edge in found.edges] == [unfinished]
    assert (found.open_ms > 0) == unfinished


def test_an_outage_between_two_steps_is_no_pause_of_theirs() -> None:
    stalled, later = told([*resting(2000), *resting(4000, 2700)], 2050, 2650).edges
    assert stalled.rate_during == 0
    assert later.rate_after == pytest.approx(1000 / 60, rel=0.01)


def test_a_job_that_never_goes_on_has_an_iteration_without_end() -> None:
    (cost,) = told(every(100, 2000), 2050).edges
    assert cost.unfinished
    assert cost.longest_ms == pytest.approx(1999, abs=2)
    assert cost.lost == pytest.approx(19, abs=1)
    assert cost.rate_after < 1


def died(at_ms: float, again_ms: float | None = None, iteration: int = 0, every: int = 8) -> JobFacts:
    """Of a job that died, and began again if it did."""
    again_ns = None if again_ms is None else round(again_ms * MS)
    return replace(FACTS, deaths=(DeathFact(round(at_ms * MS), "a>b#0", again_ns, iteration),), checkpoint_every=every)


def test_a_job_that_is_started_again_loses_the_time_and_what_its_checkpoint_does_not_have() -> None:
    """21 iterations of 100 ms, of which the checkpoint has 16; 1900 ms without one of 19."""
    found = told([*every(100, 2100), *every(100, 6000, 4000)], 2050, end_ms=6000, facts=died(2500, 4000, 21))
    (death,) = found.deaths
    assert (death.undone, death.since_ns, death.restarted_at_ns) == (5, 2101 * MS, 4000 * MS)
    (cost,) = found.edges
    assert cost.lost == pytest.approx(19 + 5, abs=0.5)
    assert cost.rate_after == pytest.approx(10, rel=0.02)
    assert not cost.unfinished


def test_a_second_death_counts_from_the_checkpoint_that_the_first_one_left() -> None:
    """16 of 21 are kept; 16 + 5 more at the second death, of which it keeps 16 again."""
    first, second = died(2500, 4000, 21).deaths[0], DeathFact(4700 * MS, "a>b#0")
    facts = replace(died(0), deaths=(first, second))
    found = told([*every(100, 2100), *every(100, 4500, 4000)], 2050, end_ms=12_000, facts=facts)
    assert [death.undone for death in found.deaths] == [5, 5]
    assert found.deaths[1].restarted_at_ns is None
    (cost,) = found.edges
    assert cost.rate_after == 0, "a dead job has no iteration under way"


def test_a_job_without_checkpoints_stays_dead_and_undoes_nothing() -> None:
    found = told(every(100, 2100), 2050, facts=died(2500, every=0))
    assert [death.undone for death in found.deaths] == [0]


def test_what_two_edges_cost_is_counted_once() -> None:
    """One iteration stalls from before the first edge until after the second."""
    one, other = told([*every(100, 2000), (2000, 3100), *every(100, 4000, 3100)], 2050, 2550).edges
    assert one.lost + other.lost == pytest.approx(10, abs=0.5)


def test_wrong_blocks_of_all_ranks_are_counted() -> None:
    assert told(every(100, 1000), wrong=2).wrong == 20


def test_wrong_blocks_count_although_their_iteration_did_not_end() -> None:
    """Rank 0 has not ended the first, in which rank 1 found wrong blocks."""
    found = told([(0, 100), (100, 200)], wrong=3, without_first=1)
    assert len(found.iterations) == 1
    assert found.wrong == 6


def test_a_job_that_stands_from_the_failure_to_beyond_the_repair_stands_at_both() -> None:
    failure, repair = told(every(100, 2000), 2050, 3000).edges
    assert failure.unfinished
    assert failure.longest_ms == pytest.approx(1999, abs=2)
    assert repair.unfinished


def test_what_a_run_cuts_off_is_not_the_earlier_edge_s() -> None:
    failure, _ = told(every(100, 4000), 2050, 3000).edges
    assert (failure.longest_ms, failure.unfinished) == (100, False)


def test_a_dead_job_does_nothing_more() -> None:
    found = told(every(100, 2000), 1950, facts=died(2500, every=0))
    (cost,) = found.edges
    assert cost.rate_after == 0
    assert [death.queue_pair for death in found.deaths] == ["a>b#0"]
    assert found.open_ms == pytest.approx(1999, abs=2)


def test_what_dies_while_the_run_is_drained_did_not_die_in_it() -> None:
    found = told(every(100, 4000), 2050, facts=died(4001, every=0))
    assert found.deaths == ()


def test_a_job_of_which_no_message_arrived_says_nothing() -> None:
    assert told([]).doubts == ()
    assert told([], messages=0).doubts == ("no message of the job was completed: nothing was measured",)


def test_a_job_that_the_machine_held_up_says_nothing() -> None:
    assert replace(told(every(100, 1000)), late_pct=2.1).doubts == (
        "a worker of the job stood still for 2.1 % of the time, more than 2 %: the machine held the job up",
    )
    assert replace(told(every(100, 1000)), late_pct=1.9).doubts == ()


def test_a_job_that_acts_on_marks_which_no_queue_made_says_nothing() -> None:
    (doubt,) = told(every(100, 1000), facts=replace(FACTS, phantom_marks=True)).doubts
    assert doubt.startswith("the job acts on marks, and without RED in this kernel a phantom queue made them")
    assert told(every(100, 1000)).doubts == ()


def test_a_message_takes_as_long_as_its_sender_has_it_whatever_its_receiver_waited() -> None:
    whole = SpanFact("iteration", "iteration", 0, 0)
    ends = {0: SpanFact("1 to 0", "arrival", 64, 2), 1: SpanFact("1 to 0", "message", 1_000_000, 2)}
    spans = np.zeros(4, SPAN)
    spans[0], spans[1] = (0, 0, 0, 0, 0, 50 * MS), (0, 0, 1, 3, 0, 40 * MS)
    spans[2], spans[3] = (1, 0, 0, 0, 0, 50 * MS), (1, 0, 1, 0, 30 * MS, 42 * MS)
    facts = replace(FACTS, spans={rank: (whole, fact) for rank, fact in ends.items()})
    sent = np.ones(1, MESSAGE)
    (span,) = job_metrics(facts, spans, sent, [], (0, 4 * S), Settings()).spans
    assert (span.kind, span.size_bytes, span.count, span.mean_ms, span.wrong) == ("message", 1_000_000, 1, 12, 3)


def test_exposed_communication_is_what_no_computing_covers() -> None:
    """Rank 0 computes for 10 ms and sums from 5 to 20 ms; rank 1 computes on until 18; the next iteration hides all."""
    spans = (SpanFact("iteration", "iteration", 0, 0), SpanFact("c", "compute", 0, 0), FACTS.spans[0][1])
    rows = [
        *((0, 0, 0, 0, 20), (0, 0, 1, 0, 10), (0, 0, 2, 5, 20), (1, 0, 0, 0, 20), (1, 0, 1, 0, 18), (1, 0, 2, 5, 20)),
        *((0, 1, 0, 20, 40), (0, 1, 1, 20, 40), (0, 1, 2, 25, 38), (1, 1, 0, 20, 40), (1, 1, 1, 20, 40)),
    ]
    records = np.array([(rank, at, span, 0, a * MS, b * MS) for rank, at, span, a, b in rows], SPAN)
    facts = replace(FACTS, spans={0: spans, 1: spans})
    found = job_metrics(facts, records, np.zeros(0, MESSAGE), (), (0, 100 * MS), Settings())
    assert found.exposed_ms == pytest.approx(5)
    assert told(every(100, 4000)).exposed_ms == 0, "nothing is computed: all of it is communication"


def test_of_an_iteration_that_the_end_cut_off_late_the_probable_share_counts() -> None:
    """It was counted whole, so that a run which ended within a slow one looked faster than one which ended after it."""
    (cost,) = told(every(100, 3000), 2050, end_ms=4050).edges
    assert cost.rate_during * 2.05 == pytest.approx((cost.during.low + cost.during.high) / 2, abs=0.1), "nothing known"
    slower = [*every(100, 2000), *every(290, 4900, 2000)]
    for end_ms in (4951, 5101, 5189):
        (cost,) = told(slower, 2050, end_ms=end_ms).edges
        assert cost.rate_after == pytest.approx(1000 / 290, rel=0.01), "one every 290 ms, also of the last"


def test_a_loss_that_goes_on_at_the_end_of_the_run_is_a_lower_bound() -> None:
    """'lost the time of 51.6 iterations' grew with the run."""
    stall = JobEdge(8.0, 0.1, 0.1, 6000.0, True, 9.0)
    job = replace(told(every(100, 4000), end_ms=10_000), edges=(replace(stall, unfinished=False, lost=1.0), stall))
    said = cost(replace(metrics(), job=job), {})
    assert said.endswith(
        "the job lost the time of at least 10.0 iterations, 9.0 of them after the repair,"
        " the job stood still at the end of the run."
    )
