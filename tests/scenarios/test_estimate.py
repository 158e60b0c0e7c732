"""How long a run takes is told before it begins: by counts of what it has to do and what such runs took here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.commands import drill as commands
from hpn.commands.waiting import waiting
from hpn.scenarios.batch.suite import schedule
from hpn.scenarios.batch.suite.suite import suite_from
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run import engines, estimate, wall_cost
from hpn.scenarios.run.effort import CLIENT, Effort, effort_of
from hpn.scenarios.run.estimate import EstimateRequest
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.wall_cost import Cost, Stages
from hpn.testbed.files.document import parse
from hpn.testbed.vm.engines import ENGINES, HOST

VIRTUAL = ENGINES["uml-virtual-time"]
STREAMS = "workload: {{pattern: permutation, queue_pairs: 2, load: {load} %}}"
RING = "job: {{collective: {{kind: all-reduce, algorithm: ring, size: {size} KB}}}}"
SMALL = Effort("streams", 4, 16, 32, 250_000, 1_000_000, 6.5)
LARGE = Effort("job", 40, 80, 160, 5_000_000, 20_000_000, 10.0)


def drill(runs: str, *, hosts: int = 2, rails: int = 1, segments: int = 2, healthy_ms: int = 2000) -> Drill:
    text = (
        f"drill: mine\nsummary: nothing breaks\n"
        f"topology: {{segments: {segments}, hosts: {hosts}, rails: {rails}, aggs: 2}}\n"
        f"{runs}\ntimeline: {{healthy: {healthy_ms} ms, settle: 1 s}}\nexpect: [state_restored: yes]\n"
    )
    return drill_from(parse(text, "mine.yaml"), Path())


shapes = st.fixed_dictionaries(
    {"hosts": st.integers(1, 6), "rails": st.integers(1, 3), "segments": st.integers(2, 3)},
)


@settings(max_examples=25, deadline=None)
@given(shapes, st.integers(1, 40))
def test_streams_send_their_rate_over_the_links_between_segments(shape: dict[str, int], load: int) -> None:
    effort = effort_of(drill(STREAMS.format(load=load), **shape))
    nics = shape["hosts"] * shape["rails"] * shape["segments"]
    assert effort.hosts == shape["hosts"] * shape["segments"]
    assert effort.packets == pytest.approx(nics * 12_036 * load / 100 * 3, rel=0.01), "400 Mbit/s are 12,036 a second"
    assert effort.hops == pytest.approx(4 * effort.packets, rel=1e-3)


@settings(max_examples=15, deadline=None)
@given(shapes, st.integers(1, 20))
def test_more_hosts_more_rate_and_more_time_are_more_effort(shape: dict[str, int], load: int) -> None:
    small = effort_of(drill(STREAMS.format(load=load), **shape))
    for larger in (
        drill(STREAMS.format(load=load), **{**shape, "hosts": shape["hosts"] + 1}),
        drill(STREAMS.format(load=2 * load), **shape),
        drill(STREAMS.format(load=load), **shape, healthy_ms=4000),
    ):
        large = effort_of(larger)
        assert large.packets > small.packets
        assert wall_cost.first_guess(large, VIRTUAL).total_s > wall_cost.first_guess(small, VIRTUAL).total_s


@settings(max_examples=15, deadline=None)
@given(shapes)
def test_a_job_keeps_its_links_busy_whatever_its_size(shape: dict[str, int]) -> None:
    """Of each NIC at most what its ports carry; a ring leaves little of one port unused."""
    effort = effort_of(drill(RING.format(size=4000), **shape))
    nics = shape["hosts"] * shape["rails"] * shape["segments"]
    assert 0 < effort.packets <= nics * 12_036 * 3
    wider = effort_of(drill(RING.format(size=4000), **{**shape, "hosts": shape["hosts"] + 1}))
    assert wider.packets > effort.packets


def test_iterations_are_as_long_as_they_were_measured() -> None:
    """By its bytes 4 MB in a ring of four at 200 Mbit/s take 243.8 ms; a rank sends 6 quarters of it."""
    effort = effort_of(catalogue.load("link-down-allreduce"))
    assert effort.packets == pytest.approx(effort.drill_s / 0.2438 * 4 * 6 / 4 * 4e6 / 4096, rel=0.01)


def test_a_client_counts_as_one_and_what_it_sends_is_unknown() -> None:
    effort = effort_of(catalogue.load("client-iperf3-link-down"))
    assert (effort.traffic, effort.packets) == (CLIENT, 0)


@pytest.mark.parametrize(
    ("name", "cpu_s"),
    [
        ("link-down", 24.5),
        ("healthy-baseline", 17.8),
        ("link-down-allreduce", 17.9),
        ("link-down-fat-tree", 23.6),
        ("paths-hash", 13.0),
    ],
)
def test_the_first_guess_is_near_the_measured_cpu_time(name: str, cpu_s: float) -> None:
    """User and system time of all processes of ``hpn drill run NAME --engine uml-virtual-time``, by GNU time."""
    guess = wall_cost.first_guess(effort_of(catalogue.load(name)), VIRTUAL)
    assert guess.total_s == pytest.approx(cpu_s, rel=0.25)


@pytest.mark.parametrize("name", ["link-down", "link-down-allreduce"])
def test_a_later_phase_is_more_effort(name: str) -> None:
    """It shifts the faults, so the healthy phase is longer."""
    one = catalogue.load(name)
    runs = {str(phase): (Order(one, Path(), (), phase, phase=phase), VIRTUAL) for phase in (1, 2, 5)}
    for phase, asked in estimate.asked_of(runs).items():
        own = effort_of(runs[phase][0].phased)
        assert asked.effort.drill_s == pytest.approx(own.drill_s)
        assert asked.effort.packets == pytest.approx(own.packets, rel=1e-3)
        assert asked.effort.hops == pytest.approx(own.hops, rel=1e-3)


def test_nothing_is_told_of_what_is_over_within_a_minute() -> None:
    assert estimate.told([EstimateRequest(SMALL, VIRTUAL)], ()) == ""
    assert estimate.told([EstimateRequest(SMALL, HOST)], ()) == ""
    assert estimate.told([], ()) == ""


def test_the_line_says_time_counts_and_where_the_figure_is_from() -> None:
    guess = estimate.told([EstimateRequest(LARGE, VIRTUAL)], ())
    assert guess == "takes about 10 min (5,000,000 packets, 80 nodes; first guess, not measured here yet)"
    measured = estimate.told([EstimateRequest(LARGE, VIRTUAL)], [Cost(VIRTUAL.name, "job", 1.0, 2.0, 1.0)])
    assert measured == "takes about 20 min (5,000,000 packets, 80 nodes; measured on this machine)"


def test_many_short_runs_take_long_and_side_by_side_less() -> None:
    asked = [EstimateRequest(SMALL, VIRTUAL)] * 60
    assert estimate.told(asked, (), 1, 2).startswith("60 runs take about 22 min (15,000,000 packets, 16 nodes;")
    assert estimate.told(asked, (), 2, 2).startswith("60 runs take about 11 min ")


def test_a_suite_has_runs_of_several_engines() -> None:
    asked = (
        [EstimateRequest(SMALL, VIRTUAL)] * 4
        + [EstimateRequest(SMALL, ENGINES["uml"])] * 4
        + [EstimateRequest(SMALL, HOST)] * 2
    )
    assert estimate.told(asked, (), 1, 2).startswith("10 runs take about 3 min (16 nodes; ")


@pytest.mark.parametrize(("jobs", "cores", "found"), [(1, 8, 1), (4, 8, 4), (16, 8, 8)])
def test_runs_side_by_side_are_as_many_as_cores_allow(jobs: int, cores: int, found: int) -> None:
    assert estimate.at_once(VIRTUAL, jobs, cores) == found
    assert estimate.at_once(HOST, jobs, cores) == 1, "a run on the host has all of them"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (8.4, "8 s"), (72.0, "70 s"), (480.0, "8 min"), (9000.0, "2.5 h")]
)
def test_times_are_told_roughly(seconds: float, words: str) -> None:
    assert estimate.in_words(seconds) == words


def test_what_runs_took_here_is_kept_and_the_median_of_the_newest_counts(tmp_path: Path) -> None:
    guess = wall_cost.first_guess(LARGE, VIRTUAL)
    for times in (50.0, 3.0, 2.0, 3.0):
        took = Stages(guess.up_s, guess.traffic_s * times, guess.judge_s)
        wall_cost.learn(wall_cost.cost_of(LARGE, VIRTUAL, took), lambda: tmp_path / "new")
    costs = wall_cost.load(lambda: tmp_path / "new")
    found = wall_cost.expected(LARGE, VIRTUAL, costs)
    assert found.measured
    assert found.stages.traffic_s == pytest.approx(3 * guess.traffic_s)
    assert wall_cost.expected(LARGE, ENGINES["uml"], costs).measured is False, "another engine's clock is another"
    other = wall_cost.expected(replace(LARGE, traffic="streams"), VIRTUAL, costs)
    assert other.measured, "without runs of that traffic, those with other traffic are nearer than the guess"


def test_the_newest_runs_are_kept_and_no_more(tmp_path: Path) -> None:
    for number in range(wall_cost.MOST_RUNS + 5):
        wall_cost.learn(Cost("host", "job", 1.0, 1.0, 1.0 + number), lambda: tmp_path)
    kept = wall_cost.load(lambda: tmp_path)
    assert len(kept) == wall_cost.MOST_RUNS
    assert kept[-1].judge == 5.0 + wall_cost.MOST_RUNS
    assert wall_cost.expected(LARGE, HOST, kept).stages.judge_s > 90 * wall_cost.first_guess(LARGE, HOST).judge_s


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1, 2]",
        b'{"runs": []}',
        b"[" * 10_000,
        b"[" + b" " * (1 << 17) + b"]",
        b'[{"engine": "uml-virtual-time", "traffic": "job", "up": NaN, "run": 1, "judge": 1}]',
        b'[{"engine": "uml-virtual-time", "traffic": "job", "up": 1, "run": 1e300, "judge": 1}]',
        b'[{"engine": "uml-virtual-time", "traffic": "job", "up": 1, "run": -5, "judge": 1}]',
    ],
)
def test_a_damaged_file_counts_as_empty_and_is_written_anew(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / wall_cost.FILE).write_bytes(damaged)
    assert wall_cost.load(lambda: tmp_path) == ()
    cost = Cost(VIRTUAL.name, "job", 1.0, 2.0, 1.0)
    wall_cost.learn(cost, lambda: tmp_path)
    assert wall_cost.load(lambda: tmp_path) == (cost,)


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / wall_cost.FILE)
    assert wall_cost.load(lambda: tmp_path) == ()


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    wall_cost.learn(Cost("host", "job", 1.0, 1.0, 1.0), lambda: tmp_path / "file" / "below")
    assert wall_cost.load(lambda: tmp_path / "file" / "below") == ()


@pytest.fixture
def said_nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is made, and none was on this machine."""

    def none(*_: object) -> Iterator[None]:
        yield from ()

    monkeypatch.setenv("HPN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(engines, "run_batch", none)


@pytest.mark.usefixtures("said_nothing_yet")
def test_the_command_tells_a_long_run_on_stderr_and_says_nothing_of_a_short_one(tmp_path: Path) -> None:
    asked = ["run", "--engine", "uml", "--virtual-time", "--json", "--out", str(tmp_path / "out")]
    long, short = (CliRunner().invoke(commands.drill, [*asked, name]) for name in ("segment-tor-crash", "link-down"))
    assert long.stderr == "takes about 4 min (209,533 packets, 272 nodes; first guess, not measured here yet)\n"
    assert (short.stderr, "takes" in long.stdout) == ("", False)


@pytest.mark.usefixtures("said_nothing_yet")
def test_a_suite_is_told_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    text = "suite: mine\nsummary: two\nruns:\n- {drills: [segment-tor-crash, link-down], engines: [uml-virtual-time]}\n"
    suite = suite_from(parse(text, "suite.yaml"), Path(), tuple(ENGINES))
    waiting(schedule.wanted_of(suite, Path("out")), 1)
    line = capsys.readouterr().err
    assert line.startswith("2 runs take about 4 min (459,894 packets, up to 272 nodes; first guess")
    waiting(schedule.wanted_of(suite, Path("out")), 1, elsewhere=True)
    assert capsys.readouterr().err == "", "how fast other machines are is not known here"


def test_a_drill_that_runs_many_times_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def count(each: Drill) -> Effort:
        counted.append(each.name)
        return SMALL

    monkeypatch.setattr(estimate, "effort_of", count)
    one, other = catalogue.load("link-down"), catalogue.load("tor-crash")
    runs = {str(at): (Order(one if at % 2 else other, Path(), ()), VIRTUAL) for at in range(20)}
    assert estimate.asked_of(runs) == dict.fromkeys(runs, EstimateRequest(SMALL, VIRTUAL))
    assert sorted(counted) == ["link-down", "tor-crash"]


@pytest.mark.usefixtures("said_nothing_yet")
def test_a_check_of_a_drill_file_says_what_it_costs_in_virtual_time() -> None:
    said = CliRunner().invoke(commands.drill, ["validate", "segment-tor-crash", "link-down"]).output
    assert "segment-tor-crash: note: in virtual time it takes about 4 min (209,533 packets" in said
    assert "link-down: note" not in said
