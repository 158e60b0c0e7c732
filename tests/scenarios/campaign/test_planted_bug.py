"""A campaign on real labs: it finds a bug planted in the product, shrinks it, and its drill file shows it again.

              plane 0        plane 1
host A ---- ToR A.0 -- Agg -- ToR B.0 --x-- host B      ToR B.0 goes on announcing B after x was cut
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hpn.results.judge.verdict import Outcome
from hpn.scenarios.campaign import lab_job, report
from hpn.scenarios.campaign.campaign import carry_out
from hpn.scenarios.campaign.drillfile import is_valid
from hpn.scenarios.campaign.journal import Shrunk, load
from hpn.scenarios.campaign.labs import Answer
from hpn.scenarios.campaign.plan import choices, draw
from hpn.scenarios.campaign.result import Invariant, SequenceJob
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import session
from hpn.scenarios.run.run_order import Order
from hpn.testbed.fabric.build import build
from hpn.testbed.routing.hostroutes import HostRouteDaemon
from tests.scenarios.campaign.samples import PLAN, TINY

KINDS = ("link-down", "admin-down", "bgp-reset")


class InThisProcess:
    """One job after the other, each in a sandbox of this very process: what is patched here is patched there."""

    width = 1

    def run(self, jobs: Iterable[SequenceJob]) -> Iterator[Answer]:
        for job in jobs:
            with tempfile.TemporaryDirectory(prefix="hpn-campaign-") as made:
                code = lab_job.run(job, Path(made))
                told = lab_job.read_report(Path(made))
            yield job, replace(told, crash=f"the lab's process ended with code {code}") if code else told


def never_withdraw(patch: pytest.MonkeyPatch) -> None:
    carry_out_changes = HostRouteDaemon._apply
    patch.setattr(
        HostRouteDaemon, "_apply", lambda self, changes: carry_out_changes(self, [c for c in changes if c.install])
    )


def seed_with_a_long_cut() -> int:
    """The first seed whose first sequence is some faults, one of them a cut that outlasts a queue pair."""
    for seed in range(1000):
        plan = replace(PLAN, seed=seed, kinds=KINDS)
        found = draw(plan, choices(build(TINY), KINDS), 0, partial(is_valid, plan))
        cuts = [step for step in found.steps if step.kind == "link-down" and "-" not in step.target]
        if len(found.steps) == 2 and any((cut.for_ns or 0) > 1_000_000_000 for cut in cuts):
            return seed
    raise AssertionError("no such seed")


@pytest.mark.kernel
@pytest.mark.timeout(400)
def test_a_planted_bug_is_found_shrunk_and_shown_again(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        never_withdraw(patch)
        plan = replace(PLAN, seed=seed_with_a_long_cut(), kinds=KINDS)
        entries = list(carry_out(tmp_path / "campaign", plan, 1, InThisProcess(), tries=3))
        found = [entry for entry in entries if isinstance(entry, Shrunk)]
        told = [report.line(entry) for entry in entries]
        if not found and any("inconclusive" in line for line in told):
            pytest.skip(f"the machine is too busy for a campaign in real time: {'; '.join(told)}")
        (small,) = found
        assert small.file, report.line(small)
        assert Invariant.QUEUE_PAIR in small.invariants
        assert [step.kind for step in small.smallest.steps] in (["link-down"], ["admin-down"])
        assert report.exit_code(load(tmp_path / "campaign")[1]) == 1
        drill = load_drill(tmp_path / "campaign" / small.file)
        with_bug = session.run(Order(drill, tmp_path / "with-bug", ()), lambda _news: None).verdict()
    deaths = [check for check in with_bug.checks if check.text.startswith("queue pair deaths")]
    if [check.outcome for check in deaths] == [Outcome.PASS] and with_bug.outcome is Outcome.INCONCLUSIVE:
        pytest.skip(f"the machine is too busy for a run in real time: {'; '.join(with_bug.reasons)}")
    assert [check.outcome for check in deaths] == [Outcome.FAIL]
    assert any(_is_clean(drill, tmp_path / f"without-{number}") for number in range(3)), "starved thrice, or still red"


def _is_clean(drill: Drill, out: Path) -> bool:
    verdict = session.run(Order(drill, out, ()), lambda _news: None).verdict()
    return all(check.outcome is not Outcome.FAIL for check in verdict.checks)


@pytest.mark.kernel
def test_without_a_bug_the_same_sequence_is_clean(tmp_path: Path) -> None:
    plan = replace(PLAN, seed=seed_with_a_long_cut(), kinds=KINDS)
    (result,) = carry_out(tmp_path, plan, 1, InThisProcess())
    assert "violation" not in report.line(result)
    assert not list(tmp_path.rglob("*.bin"))
