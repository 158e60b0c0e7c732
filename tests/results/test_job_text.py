"""What a job's run prints, where the terminal is narrow too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.job import Death, JobMetrics
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.placement import Placement, TierSpread
from hpn.results.judge.verdict import decide, holds
from hpn.results.text.job import job_parts
from hpn.results.text.terminal import summary
from tests.failover.test_job_metrics import S, every, resting, told
from tests.results.sample import MANIFEST, metrics
from tests.results.shown import as_text

TIERS = tuple(TierSpread(tier, 8, 4, 1, "p0.s0.h0.r0.0", 2.0, 0.5, None) for tier in ("host up", "tor up"))
PLACEMENTS = (Placement("start", 0, 0, (), TIERS), Placement("cut failure 0", 1, S, (), TIERS[1:]))
DEATH = Death(2 * S, "a>b#0", S, 3 * S, 1)


def job() -> JobMetrics:
    """Two edges; no iteration was under way after the first, as it had died and was started again later."""
    return replace(
        told([*every(100, 2000), *every(100, 4000, 3500)], 2500, 3000), placements=PLACEMENTS, deaths=(DEATH,)
    )


def of_job(found: JobMetrics) -> DrillMetrics:
    return replace(metrics(), job=found)


def shown(width: int) -> str:
    return "\n".join(as_text(part, width) for part in job_parts(of_job(job()), job()))


def told_of(found: JobMetrics) -> str:
    return "\n".join(as_text(part, 200) for part in job_parts(replace(of_job(found), edges=()), found))


@pytest.mark.parametrize("width", [80, 160])
def test_every_part_of_the_table_of_links_says_which_tier_a_row_is_of(width: int) -> None:
    lines = shown(width).splitlines()
    heads = [at for at, line in enumerate(lines) if line.startswith("when ")]
    assert len(heads) == {80: 2, 160: 1}[width]
    for at in heads:
        assert lines[at].split()[:2] == ["when", "tier"]
        assert [line[:22] for line in lines[at + 1 : at + 4]] == [
            "start          host up", "start          tor up ", "cut failure 0  tor up ",
        ]  # fmt: skip


def test_an_edge_in_which_no_iteration_was_under_way_has_none_that_was_longest() -> None:
    rows = [line.split() for line in shown(160).splitlines() if line.startswith("link ")]
    assert [row[-1] for row in rows] == ["-", "100"]


def test_exposed_communication_is_told_where_something_is_computed() -> None:
    found = replace(job(), exposed_ms=12.5)
    said = told_of(found)
    assert "before the first edge, 12.5 of it communication that no computing hides" in said
    assert "no computing hides" not in shown(200)


def test_a_job_says_how_often_an_iteration_ended() -> None:
    """Of 20 ms, with a pause of 40 after it."""
    assert "65 iterations, one every 60 ms before the first edge" in told_of(told(resting(3900), 2500))
    assert "39 iterations, one of 100 ms before the first edge" in told_of(told(every(100, 3900), 150))


def test_a_death_says_what_it_undid() -> None:
    assert "used its retries up; iterations undone, because the last checkpoint does not have them: 1;" in shown(200)


def test_a_job_has_no_recovery_of_streams_in_its_phases() -> None:
    """No stream was there to lose anything: the phase would be empty, and its reason wrong."""
    verdict = decide([holds("job survives", True)])
    said = as_text(summary(MANIFEST, of_job(job()), verdict), 160)
    assert "path last" in said
    assert "recover" not in said
    assert "recover" in as_text(summary(MANIFEST, metrics(), verdict), 160)
