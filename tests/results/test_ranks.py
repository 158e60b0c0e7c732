"""The timeline of a job's ranks: the iterations around the failure, with the one that was never ended."""

from __future__ import annotations

from hpn.failover.analysis.job import SpanTime
from hpn.results.page.ranks import UNFINISHED, rank_timeline

MS = 1_000_000


def test_a_job_that_stands_still_at_the_failure_is_drawn_until_it_died_with_the_failure_s_line() -> None:
    spans = [
        SpanTime(rank, at, label, label, at * 100 * MS, (at + 1) * 100 * MS, 0)
        for at in range(5)
        for rank in range(2)
        for label in ("compute", "iteration")
    ]
    found = rank_timeline(spans, 0, 510 * MS, 900 * MS)
    assert found is not None
    assert found.edge_pct is not None
    assert UNFINISHED in found.kinds
    assert [row.bars[-1].text for row in found.rows] == ["not ended, iteration 5: 400.000 ms"] * 2


def test_ranks_that_go_on_have_no_unfinished_iteration() -> None:
    spans = [SpanTime(0, at, "compute", "compute", at * 100 * MS, (at + 1) * 100 * MS, 0) for at in range(20)]
    found = rank_timeline(spans, 0, 510 * MS, 9000 * MS)
    assert found is not None
    assert found.kinds == ("compute",)
