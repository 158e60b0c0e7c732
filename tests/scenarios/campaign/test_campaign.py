"""The loop around the labs, with a pool that only pretends: what is run, what again, what is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from hpn.scenarios.campaign import report
from hpn.scenarios.campaign.campaign import carry_out, plan_for
from hpn.scenarios.campaign.drillfile import is_valid
from hpn.scenarios.campaign.journal import Shrunk, load, opened
from hpn.scenarios.campaign.plan import FaultSequence, choices, draw
from hpn.scenarios.campaign.result import Invariant, Outcome, Report, Result, SequenceJob, Violation
from hpn.scenarios.drill.load import load_drill
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from tests.scenarios.campaign.samples import PLAN, TINY, result

Breaks = Callable[[FaultSequence], bool]


@dataclass
class Pretended:
    """Labs that break an invariant when told so; as real ones they stop at the first violation."""

    breaks: Breaks = lambda _sequence: False
    width: int = 2
    jobs: list[SequenceJob] = field(default_factory=list)
    spoil: Callable[[SequenceJob, list[Result]], Report | None] = lambda _job, _results: None

    def run(self, jobs: Iterable[SequenceJob]) -> Iterator[tuple[SequenceJob, Report]]:
        for job in jobs:
            self.jobs.append(job)
            results: list[Result] = []
            for sequence in job.sequences:
                broken = self.breaks(sequence)
                violations = (Violation(Invariant.QUEUE_PAIR, "died: a"),) if broken else ()
                results.append(Result(sequence, violations, started_at=1.0, ended_at=2.0))
                if broken:
                    break
            yield job, self.spoil(job, results) or Report(tuple(results), stood=True)


def kinds(sequence: FaultSequence) -> set[str]:
    return {step.kind for step in sequence.steps}


def _drawn(index: int) -> FaultSequence:
    among = choices(build(TINY), PLAN.kinds)
    return draw(PLAN, among, index, partial(is_valid, PLAN))


def crashes(sequence: FaultSequence) -> bool:
    return "tor-crash" in kinds(sequence)


def test_every_sequence_is_run_once_and_none_again(tmp_path: Path) -> None:
    pool = Pretended()
    first = list(carry_out(tmp_path, PLAN, 30, pool))
    assert len(first) == 30
    assert max(len(job.sequences) for job in pool.jobs) <= 10
    more = list(carry_out(tmp_path, PLAN, 50, pool))
    assert load(tmp_path)[1].indexes == set(range(50))
    assert len(more) == 20
    assert list(carry_out(tmp_path, PLAN, 50, pool)) == []
    assert report.exit_code(load(tmp_path)[1]) == 0


def test_interrupted_anywhere_it_goes_on_and_ends_with_the_same_sequences(tmp_path: Path) -> None:
    for index, _entry in enumerate(carry_out(tmp_path / "cut", PLAN, 12, Pretended(crashes))):
        if index == 4:
            break  # closes the generator, as Ctrl-C does
    list(carry_out(tmp_path / "cut", PLAN, 12, Pretended(crashes)))
    list(carry_out(tmp_path / "whole", PLAN, 12, Pretended(crashes)))
    cut, whole = (load(tmp_path / name)[1] for name in ("cut", "whole"))
    assert {r.sequence for r in cut.results} == {r.sequence for r in whole.results}
    assert cut.waiting == whole.waiting == ()


def test_a_violation_is_shrunk_and_written_as_a_drill(tmp_path: Path) -> None:
    entries = list(carry_out(tmp_path, PLAN, 80, Pretended(crashes)))  # a new kind of fault changes what is drawn
    told = [entry for entry in entries if isinstance(entry, Shrunk)]
    done = load(tmp_path)[1]
    assert len(told) == done.count(Outcome.VIOLATION) > 1
    small = told[0]
    assert (small.failed, small.runs, kinds(small.smallest), len(small.smallest.steps)) == (2, 2, {"tor-crash"}, 1)
    assert [found.like for found in told[1:]] == [small.index] * (len(told) - 1)
    drill = load_drill(tmp_path / small.file)
    assert [planned.fault.KIND for planned in drill.timeline.faults] == ["tor-crash"]
    assert "queue pairs live: died: a" in drill.description
    assert report.exit_code(done) == 1


def test_what_cannot_be_shown_again_is_no_fail_and_no_pass(tmp_path: Path) -> None:
    pool = Pretended(lambda sequence: sequence.index == 2 and len(pool.jobs) < 3)
    list(carry_out(tmp_path, PLAN, 6, pool))
    done = load(tmp_path)[1]
    assert [(found.index, found.failed, found.file) for found in done.unconfirmed] == [(2, 0, "")]
    assert report.exit_code(done) == 4
    assert not (tmp_path / "violations").exists()


def test_what_only_breaks_after_what_came_before_is_shown_with_it(tmp_path: Path) -> None:
    """The violation needs the crash of sequence 0 as well, which the same lab had seen."""
    first, second = (_drawn(index) for index in (0, 1))

    def breaks(sequence: FaultSequence) -> bool:
        in_one_lab = pool.jobs[-1].sequences[: 2 if sequence.index == 1 else 0]
        told = [step.kind for one in in_one_lab for step in one.steps]
        return all(step.kind in told for step in first.steps + second.steps)

    def note(_job: SequenceJob, results: list[Result]) -> Report:
        at = [r.sequence.index for r in results]
        return Report(tuple(replace(r, before=tuple(at[:n])) for n, r in enumerate(results)), stood=True)

    pool = Pretended(breaks, width=1, spoil=note)
    list(carry_out(tmp_path, PLAN, 2, pool))
    (small,) = load(tmp_path)[1].shrunk
    assert small.file
    assert kinds(small.smallest) == kinds(first) | kinds(second)
    load_drill(tmp_path / small.file)


def test_what_a_broken_lab_left_undone_goes_to_a_new_one(tmp_path: Path) -> None:
    pool = Pretended(lambda sequence: sequence.index == 1, width=1)
    list(carry_out(tmp_path, PLAN, 5, pool))
    assert [[s.index for s in job.sequences] for job in pool.jobs[:2]] == [[0, 1, 2, 3, 4], [2, 3, 4]]


def test_a_process_that_dies_is_a_violation_of_the_sequence_it_ran(tmp_path: Path) -> None:
    def die(job: SequenceJob, results: list[Result]) -> Report | None:
        at = [result.sequence.index for result in results]
        return Report(tuple(results[: at.index(3)]), crash="code 1: KeyError: 'x'") if 3 in at else None

    list(carry_out(tmp_path, PLAN, 5, Pretended(spoil=die, width=1)))
    done = load(tmp_path)[1]
    (found,) = [r for r in done.results if r.violations]
    assert (found.sequence.index, [violation.invariant for violation in found.violations]) == (3, [Invariant.CRASH])
    assert "KeyError" in report.line(found)


def test_an_error_within_a_sequence_is_inconclusive_one_before_any_ends_the_campaign(tmp_path: Path) -> None:
    def overloaded(job: SequenceJob, results: list[Result]) -> Report | None:
        lost = [r for r in results if r.sequence.index != 1]
        return Report(tuple(lost[:1]), "too slow", 3, stood=True) if len(lost) < len(results) else None

    list(carry_out(tmp_path / "a", PLAN, 3, Pretended(spoil=overloaded, width=1)))
    done = load(tmp_path / "a")[1]
    assert [r.sequence.index for r in done.results if r.outcome is Outcome.INCONCLUSIVE] == [1]
    assert report.exit_code(done) == 4
    refused = Pretended(spoil=lambda _job, _results: Report(error="no bird here", exit_code=3))
    with pytest.raises(MachineError, match="no bird here"):
        list(carry_out(tmp_path / "b", PLAN, 3, refused))


def test_what_is_inconclusive_is_run_once_more_on_a_lab_of_its_own(tmp_path: Path) -> None:
    def doubt(job: SequenceJob, results: list[Result]) -> Report | None:
        unsure = (0, 1) if len(job.sequences) > 1 else (1,)
        doubted = [replace(r, doubts=("busy",)) if r.sequence.index in unsure else r for r in results]
        return Report(tuple(doubted), stood=True)

    pool = Pretended(spoil=doubt, width=1)
    list(carry_out(tmp_path, PLAN, 4, pool))
    assert [[s.index for s in job.sequences] for job in pool.jobs] == [[0, 1, 2, 3], [0], [1]]
    done = load(tmp_path)[1]
    assert sorted((r.sequence.index, r.tries, r.outcome) for r in done.results if r.tries > 1) == [
        (0, 2, Outcome.CLEAN),
        (1, 2, Outcome.INCONCLUSIVE),
    ]
    assert list(carry_out(tmp_path, PLAN, 4, pool)) == []


def test_what_is_left_behind_after_a_lab_is_a_violation(tmp_path: Path) -> None:
    left = Pretended(spoil=lambda _job, results: Report(tuple(results), leaks=("process 7 (bird)",), stood=True))
    list(carry_out(tmp_path, PLAN, 2, replace(left, width=1)))
    (found,) = [r for r in load(tmp_path)[1].results if r.violations]
    assert found.broken == {Invariant.LEAK}


def test_a_plan_fits_its_fabric_and_keeps_its_kinds(tmp_path: Path) -> None:
    alone = TINY.model_copy(update={"name": "alone", "segments": 1, "hosts": 1})
    with pytest.raises(InputError):
        plan_for(tmp_path, 1, alone, "uml")
    fewer = replace(PLAN, kinds=("link-down",))
    list(carry_out(tmp_path / "old", fewer, 1, Pretended()))
    assert plan_for(tmp_path / "old", 1, TINY).kinds == ("link-down",)
    with opened(tmp_path / "alien", replace(PLAN, kinds=("link-down", "solar-flare"))):
        pass
    with pytest.raises(InputError, match="solar-flare"):
        plan_for(tmp_path / "alien", 1, TINY)


def test_the_rate_leaves_pauses_out() -> None:
    assert report.rate_per_minute([]) == 0
    ended = [replace(result(index=n), ended_at=at) for n, at in enumerate((0.0, 2.0, 4.0, 5000.0, 5002.0))]
    assert report.rate_per_minute(ended) == pytest.approx(30)
