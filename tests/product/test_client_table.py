"""``make client-table``: its drills are what they are to be, runs are made once, and a table says what runs say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hpn.failover.analysis.edge import Edge, EdgeKind
from hpn.failover.analysis.job import Death, Iteration, JobMetrics, MessageTimes
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.manifest import Manifest
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.traffic.client.clients.torch import Torch
from hpn.traffic.client.clients.verbs import Verbs
from hpn.traffic.job.collective import CollectiveWork
from tests.product.client_cells import ASKED, JOBS, Course, Network, courses
from tests.product.client_loss import Loss, losses_of
from tests.product.client_page import Made, page
from tests.product.client_table import TABLE
from tests.product.lossless_cells import FIFO, INCAST, PFC, trials
from tests.product.lossless_page import Cost, Tried
from tests.product.table_runs import DRILL, kept, written

S = 10**9


def test_all_jobs_of_a_network_meet_the_same_with_the_same_message_timer_and_retries(tmp_path: Path) -> None:
    drills: dict[Network, list[Drill]] = {}
    for course in courses():
        drills.setdefault(course.network, []).append(load_drill(written(course, tmp_path)))
    for network, (own, gloo, rxe) in drills.items():
        assert [planned.id for planned in own.timeline.faults] == [fault.key for fault in ASKED[network]]
        assert own.timeline == gloo.timeline == rxe.timeline
        assert own.topology == gloo.topology == rxe.topology.model_copy(update={"soft_roce": False})
        assert own.job is not None
        assert isinstance(gloo.client, Torch)
        assert isinstance(rxe.client, Verbs)
        collective = own.job.work
        assert isinstance(collective, CollectiveWork)
        assert collective.size_bytes == gloo.client.size == rxe.client.size
        assert collective.pause_ns == gloo.client.pause == rxe.client.pause
        assert rxe.client.work == gloo.client.work == "all-reduce"
        assert (own.job.ib_timeout, own.job.retry_count) == (rxe.client.ib_timeout, rxe.client.retry_count)


def job(*ends_ms: int, died_ms: int | None = None) -> JobMetrics:
    """Of which an iteration ended at each of these times."""
    iterations = tuple(Iteration(n, end * 10**6 - S // 20, end * 10**6, 0) for n, end in enumerate(ends_ms))
    deaths = () if died_ms is None else (Death(died_ms * 10**6, "qp 7", 0, None, 0),)
    none = MessageTimes(0, 0, 0.0, 0.0, 0.0)
    return JobMetrics(4, 4, 0.5, iterations, 50.0, (), none, (), 0, 0, deaths, 0, {}, 0, 0.0)


def edge(fault: str, kind: EdgeKind, begin_s: int, end_s: int) -> Edge:
    return Edge(fault, kind, 0, begin_s * S, begin_s * S, end_s * S)


CUT = (edge("cut", EdgeKind.FAILURE, 2, 3), edge("cut", EdgeKind.REPAIR, 3, 6))
GONE = edge("gone", EdgeKind.FAILURE, 6, 9)


def test_a_stall_is_the_longest_time_between_ends_from_its_fault_on_less_the_usual() -> None:
    ends = (1600, 1700, 1800, 1900, 3000, *range(3100, 6001, 100), 7900, *range(8000, 9000, 100))
    found = losses_of(job(*ends), [*CUT, GONE])
    assert found == {"cut": Loss(100.0, 1000.0, 10.0), "gone": Loss(100.0, 1800.0, 18.0)}
    assert losses_of(job(*range(100, 9000, 100)), [*CUT, GONE])["cut"] == Loss(100.0, 0.0, 0.0)


def test_a_job_that_does_nothing_any_more_is_unfinished_and_one_that_died_says_when() -> None:
    still = losses_of(job(*range(100, 2001, 100)), CUT)
    assert still == {"cut": Loss(100.0, 3900.0, 40.0, unfinished=True)}
    dead = losses_of(job(*range(100, 2001, 100), died_ms=2470), [*CUT, GONE])
    assert {fault: (loss.died_s, loss.why) for fault, loss in dead.items()} == {"cut": (0.47, "qp 7")}
    assert list(losses_of(job(*range(100, 2001, 100)), [*CUT, GONE])) == ["cut"]
    assert losses_of(job(1900), CUT) == {}


def made(course: Course, phase: int, losses: Mapping[str, Loss], verdict: Verdict) -> Made:
    manifest = Manifest(course.name, "tiny", "hpn", (), "uml", "kernel", "6.12.1", "", 0, phase=phase, phase_ms=700.4)
    return Made(course, manifest, verdict, losses)


def test_a_cell_has_what_all_its_phases_say_and_a_run_without_an_answer_is_named() -> None:
    course = list(courses())[1]
    fine = Verdict(Outcome.PASS, (), ())
    doubted = Verdict(Outcome.INCONCLUSIVE, (), ("the machine was starved",))
    cut, flap, crash, nic = (fault.key for fault in course.faults[:4])
    first = {cut: Loss(122.0, 12.2, 0.04), flap: Loss(122.0, 9000.0, 55.0), crash: Loss(122.0, 9.0, 0.1, True)}
    second = {cut: Loss(122.0, 4012.0, 24.6), flap: Loss(122.0, 9000.0, 55.0, True, 7.516, "qp")}
    told = page([made(course, 1, first, fine), made(course, 2, second, doubted)]).splitlines()
    (own, gloo) = next((one, two) for one, two in pairwise(told) if one.startswith(f"| {course.network.title} |"))
    assert own.endswith(" | own model | not run | not run | not run | not run |  | not run |")
    cells = [cell.strip() for cell in gloo.strip("|").split("|")]
    assert cells[:4] == ["", "gloo", "0-25/0.0-4.0", "55/9.0 or **died 7.52**"]
    assert cells[4:6] == ["0/>0.0 or dead", "none or dead"]
    assert nic not in first
    assert told[-1] == f"{course.name}, phase 2: inconclusive, the machine was starved"


def test_nothing_is_one_figure_on_either_side_of_it() -> None:
    course = list(courses())[1]
    fine, cut = Verdict(Outcome.PASS, (), ()), course.faults[0].key
    runs = [made(course, phase, {cut: Loss(122.0, lost, lost)}, fine) for phase, lost in ((1, -0.2), (2, 0.2))]
    assert "|  | gloo | 0 | " in page(runs)
    assert "| gloo | nothing measured |" in page([made(course, 1, {}, fine)])


def test_a_trial_differs_from_its_neighbours_in_the_network_the_job_or_the_fault_alone(tmp_path: Path) -> None:
    drills = {trial: load_drill(written(trial, tmp_path)) for trial in trials()}
    assert len({trial.name for trial in drills}) == len(drills) == 4 * (3 + 3 + 1 + 1 + 1)
    for trial, drill in drills.items():
        others = [each for other, each in drills.items() if other.trouble == trial.trouble]
        assert all(each.timeline == drill.timeline for each in others)
        same = drills[replace(trial, network=FIFO)]
        assert (drill.client, drill.job and drill.job.work) == (same.client, same.job and same.job.work)
        plain = {"switch": None, "queue_ms": 1.0}
        assert drill.topology.model_copy(update=plain) == same.topology.model_copy(update=plain)


def test_a_cell_of_a_trial_has_its_five_figures_and_a_table_without_runs_stays() -> None:
    cell = next(trial for trial in trials() if (trial.network, trial.job, trial.trouble) == (PFC, "own", INCAST))
    manifest = Manifest(
        cell.name, "tiny", "hpn", (), "uml", "kernel", "6.12.1", "", 0, commit="abc", machine={"cpus": 2}
    )
    cost = Cost(289.4, 0.06, 0, 7, 0, 4.14)
    whole = page((), [Tried(cell, manifest, Verdict(Outcome.PASS, (), ()), cost)], "before\n")
    assert whole.startswith("before\n\n## Lossy and lossless networks\n")
    (row,) = (line for line in whole.splitlines() if "289/" in line and line.startswith("|"))
    assert row == "| PFC | own model | not run | not run | not run | 289/0.1/0/7/0 | 4.1 s |"
    assert page((), (), whole) == whole


def test_a_run_is_kept_while_its_drill_is_the_same(tmp_path: Path) -> None:
    runs = [(course, run) for course, run in TABLE.runs(tmp_path, only=["hpn-*"]) if isinstance(course, Course)]
    assert [(course.job, run.repeat) for course, run in runs] == [(job, phase) for phase in (1, 2) for job in JOBS]
    course, run = runs[0]
    folder = tmp_path / run.folder / course.name
    folder.mkdir(parents=True)
    (folder / "verdict.json").touch()
    assert kept(tmp_path, course, run) is None
    (tmp_path / run.folder / DRILL).write_text(course.drill)
    assert kept(tmp_path, course, run) is not None
    (tmp_path / run.folder / DRILL).write_text(course.drill.replace("18", "14"))
    assert kept(tmp_path, course, run) is None
