"""A long run in a guest says how long it still takes, by its own clock, and what it took is known to the next one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from hpn.results.judge.verdict import decide, holds
from hpn.results.run.folder import RunFolder
from hpn.results.run.progress import Progress
from hpn.scenarios.run import remaining, session, wall_cost
from hpn.scenarios.run.effort import Effort, effort_of
from hpn.scenarios.run.engines import run_on, unwatched
from hpn.scenarios.run.remaining import Remaining
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.wall_cost import Expected, Stages
from hpn.testbed.errors import MachineError
from hpn.testbed.vm.engines import ENGINES, HOST, EngineSpec
from hpn.testbed.vm.guest import GuestJob, GuestResult
from tests.results.sample import MANIFEST
from tests.scenarios.measured import drill

EFFORT = Effort("streams", 4, 16, 32, 250_000, 1_000_000, 10.0)
LONG = Stages(20.0, 200.0, 10.0)
NAME = drill("worst_outage: {below: 50 ms}").name


@dataclass
class Run:
    """A run on a clock that the test moves; ``told`` is what a user sees of it."""

    stages: Stages = LONG
    at: float = 1000.0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        expected = Expected(self.stages, measured=True)
        self.remaining = Remaining("cut #2", EFFORT, expected, self.told.append, lambda: self.at)

    def after(self, seconds: float, line: str = "") -> None:
        """So much later it says this, or nothing and is only looked after."""
        for _ in range(round(seconds * 10)):
            self.at += 0.1
            self.remaining.look()
        if line:
            self.remaining.line(f"cut #2: {line}")


def test_a_long_run_tells_every_30_s_where_it_is_and_what_is_left() -> None:
    run = Run()
    run.after(2, "starting 16 nodes and 32 links")
    run.after(18, "converged")
    run.after(0, "healthy")
    run.after(35, "  2.0 of 10.0 s  goodput plane 0 1 Mbit/s")
    run.after(40, "  4.0 of 10.0 s  goodput plane 0 1 Mbit/s")
    assert run.told == [
        "cut #2: at 0.0 of 10.0 s, about 3 min left",
        "cut #2: at 2.0 of 10.0 s, about 2 min left",
        "cut #2: at 2.0 of 10.0 s, about 2 min left",
    ]
    run.after(110, " 10.0 of 10.0 s  analysing")
    assert len(run.told) == 6


def test_the_pace_that_is_seen_outweighs_what_was_expected_as_it_goes_on() -> None:
    run = Run()
    run.after(0, "healthy")
    run.after(500, "  5.0 of 10.0 s  goodput plane 0 1 Mbit/s")
    run.told.clear()
    run.after(30)
    assert run.told == ["cut #2: at 5.0 of 10.0 s, about 8 min left"], "500 s less the 30 that are gone, and 10"


def test_a_stage_that_takes_longer_than_expected_says_at_least() -> None:
    run = Run()
    run.after(30)
    assert run.told == ["cut #2: lab comes up, at least 4 min left"]


def test_judging_is_told_of_too() -> None:
    run = Run(Stages(20.0, 200.0, 100.0))
    run.after(0, "healthy")
    run.after(0, " 10.0 of 10.0 s  analysing")
    run.after(30)
    assert run.told == ["cut #2: analysing, about 70 s left"]


def test_a_run_that_is_over_within_a_minute_tells_nothing() -> None:
    run = Run(Stages(5.0, 30.0, 5.0))
    run.after(5, "healthy")
    run.after(28, "  9.0 of 10.0 s  goodput plane 0 1 Mbit/s")
    run.after(5, " 10.0 of 10.0 s  analysing")
    assert run.told == []


def test_a_run_that_was_to_be_short_and_is_not_tells_it() -> None:
    run = Run(Stages(5.0, 10.0, 5.0))
    run.after(5, "healthy")
    run.after(40, "  2.0 of 10.0 s  goodput plane 0 1 Mbit/s")
    run.after(30)
    assert run.told[-1].startswith("cut #2: at 2.0 of 10.0 s, about 2")


@pytest.mark.parametrize(
    "line", ["analysing", "", "99999999999.9 of 1.0 s  x", "-1.0 of 3.0 s  x", "nan of 1.0 s  x", "healthy", "starting"]
)
def test_lines_of_others_and_out_of_order_change_nothing(line: str) -> None:
    run = Run()
    run.remaining.line(f"other: {line}")
    run.remaining.line(line)
    if line != "healthy":
        run.remaining.line(f"cut #2: {line}")
    run.after(0, "  7.0 of 10.0 s  before traffic")
    run.after(30)
    assert run.told == ["cut #2: lab comes up, at least 4 min left"]


def test_only_a_run_that_went_through_all_stages_says_what_they_took() -> None:
    run = Run()
    assert run.remaining.took is None
    run.after(7, "healthy")
    assert run.remaining.took is None
    run.after(11, " 10.0 of 10.0 s  analysing")
    run.after(3)
    took = run.remaining.took
    assert took is not None
    assert (took.up_s, took.traffic_s, took.judge_s) == pytest.approx((7.0, 11.0, 3.0))


@dataclass(frozen=True)
class Guest:
    """Boots nothing: prints what a drill prints in there, on a clock of the test, and is looked after meanwhile."""

    clock: list[float]
    code: int = 0
    slowness: int = 1

    def check(self) -> None:
        """It can."""

    def describe(self) -> str:
        """Nothing that is asked for."""
        return ""

    def run(self, job: GuestJob, on_line: Callable[[str], None]) -> GuestResult:
        """The run folder is the folder that the command is called in."""
        told = (
            ("healthy", 20.0),
            ("  1.0 of 2.0 s  goodput plane 0 1 Mbit/s", 70.0),
            ("  2.0 of 2.0 s  analysing", 60.0),
        )
        for text, after_s in told:
            for _ in range(round(after_s)):
                self.clock[0] += 1.0
                job.look()
            on_line(f"{NAME}: {text}")
        self.clock[0] += 5.0
        made = RunFolder(job.cwd)
        made.write_manifest(replace(MANIFEST, engine="uml-virtual-time"))
        made.write_verdict(decide([holds("it holds", None)]))
        return GuestResult(self.code, (), 1.0, 2.0, "6.12")


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What ``Remaining`` takes for the time; nothing was measured yet."""
    now = [0.0]
    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(remaining, "Remaining", partial(Remaining, clock=lambda: now[0]))
    return now


def order(out: Path) -> Order:
    return Order(drill("worst_outage: {below: 50 ms}"), out / "run", ())


def virtual(guest: Guest) -> EngineSpec:
    return replace(ENGINES["uml-virtual-time"], start=lambda: guest, maps_pages=False)


def test_a_run_in_a_guest_tells_what_is_left_and_teaches_the_next_estimate(tmp_path: Path, clock: list[float]) -> None:
    lines: list[str] = []
    spec, wanted = virtual(Guest(clock)), order(tmp_path)
    run_on(spec, wanted, unwatched, lines.append)
    left = [line for line in lines if line.endswith(" left")]
    assert left
    assert all(line.startswith(f"{NAME}: at ") for line in left)
    expected = wall_cost.expected(effort_of(wanted.drill), spec, wall_cost.load())
    assert expected.measured
    stages = expected.stages
    assert (stages.up_s, stages.traffic_s, stages.judge_s) == pytest.approx((20.0, 130.0, 5.0))


def test_the_timeline_of_a_later_phase_is_longer(tmp_path: Path, clock: list[float]) -> None:
    """Of 10.6 s 'at 8.3 of 8.5 s' was said."""
    lines: list[str] = []
    wanted = replace(order(tmp_path), repeat=2, phase=2)
    end_s = wanted.phased.timeline.end_ns / 1e9
    assert end_s > wanted.drill.timeline.end_ns / 1e9 + 0.2
    with remaining.following(wanted, virtual(Guest(clock)), lines.append) as followed:
        followed.line(f"{wanted.title}: healthy")
        clock[0] += 100.0
        followed.line(f"{wanted.title}:   1.0 of {end_s:.1f} s  goodput plane 0 1 Mbit/s")
    assert f"{wanted.title}: at 1.0 of {end_s:.1f} s, " in lines[-1]


def test_a_run_that_failed_teaches_nothing(tmp_path: Path, clock: list[float]) -> None:
    with suppress(MachineError):
        run_on(virtual(Guest(clock, code=3)), order(tmp_path), unwatched, lambda _line: None)
    assert wall_cost.load() == ()


def test_a_run_on_this_kernel_teaches_what_its_stages_took(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(made: Order, on_progress: Callable[[Progress], None]) -> RunFolder:
        for text, after_s in (("starting", 1.0), ("healthy", 3.0), ("analysing", 10.0)):
            clock[0] += after_s
            on_progress(Progress("phase", text))
        clock[0] += 2.0
        return RunFolder(made.out)

    monkeypatch.setattr(session, "run", run)
    heard: list[Progress] = []
    run_on(HOST, order(tmp_path), lambda _title: nullcontext(heard.append), lambda _line: None)
    stages = wall_cost.expected(effort_of(order(tmp_path).drill), HOST, wall_cost.load()).stages
    assert (stages.up_s, stages.traffic_s, stages.judge_s) == pytest.approx((4.0, 10.0, 2.0))
    assert [news.text for news in heard] == ["starting", "healthy", "analysing"]
