"""Two networks that do the same work, draw by draw: what is held against the paper's ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pytest

from hpn.failover.analysis.job import Iteration, JobMetrics, MessageTimes, SpanResult
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.port_sampling import Ports
from hpn.failover.analysis.ports import PortMetrics, PortResult
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.paper.claim import DRAWS, Claim, drill_of
from hpn.scenarios.paper.claims import CLAIMS
from hpn.scenarios.paper.gains import Faster, FasterTraining, Pair, ShorterQueues, period_ms
from hpn.scenarios.paper.interval import Band
from hpn.scenarios.paper.measures import ClaimEvidence, Finding, draw_of
from hpn.scenarios.paper.meta_claims import CLAIMS as META
from hpn.scenarios.paper.model_claims import ModelTraining, StableGain
from hpn.scenarios.paper.reproduce import FOLDER, choose, drill_file
from hpn.scenarios.paper.segments import segments, span_of
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.presets import PRESETS
from tests.scenarios.measured import metrics

DRAWN = sorted({drill_of(run)[0] for claim in CLAIMS.values() for run in claim.runs(2) if "@" in run})
COMPARES = Faster | FasterTraining | ShorterQueues | ModelTraining | StableGain


def _run(ms: float, times: int = 10, *, first_ms: float = 1500.0, compute_ms: float = 0.0) -> DrillMetrics:
    """A job whose iterations end every so many ms, after a first one that is its warm-up."""
    ends = list(accumulate([first_ms, *[ms] * times]))
    found = tuple(Iteration(at, 0, round(end * 1e6), 0) for at, end in enumerate(ends))
    span = SpanResult("forward 0", "compute", 0, 4, 9, compute_ms, compute_ms, compute_ms, 0, 0, 0)
    spans = (replace(span, label="data 0", kind="all-reduce", mean_ms=9e9), *([span] if compute_ms else []))
    times_of = MessageTimes(1, 1, 1.0, 1.0, 1.0)
    job = JobMetrics(4, 4, 1.0, found, ms, spans, times_of, (), 1, 0, (), 0, {}, wrong=0, open_ms=0.0)
    return replace(metrics((), ()), job=job)


def _found(better: Sequence[DrillMetrics], other: Sequence[DrillMetrics]) -> tuple[ClaimEvidence, Pair]:
    runs = {draw_of(drill, at): run for drill, of in (("a", better), ("b", other)) for at, run in enumerate(of, 1)}
    return ClaimEvidence(runs, {}, {}, inventory(load_fabric("tiny")), draws=len(better)), Pair("a", "b")


def _faster(better: Sequence[float], other: Sequence[float], paper: float = 0.5, band: Band | None = None) -> Finding:
    evidence, pair = _found([_run(ms) for ms in better], [_run(ms) for ms in other])
    return Faster(pair, paper, band=band)(evidence)


def test_the_first_second_of_a_job_is_its_warm_up() -> None:
    slow_at_first = _run(200.0, 6, first_ms=900.0).job
    assert slow_at_first is not None
    assert period_ms(slow_at_first) == pytest.approx(200.0)
    early = Iteration(0, 0, 10**8, 0)
    assert period_ms(replace(slow_at_first, iterations=(early, *slow_at_first.iterations))) == pytest.approx(200.0)
    few = _run(300.0, 1).job
    assert few is not None
    assert period_ms(few) is None


def test_compute_warms_nothing_up() -> None:
    """Congestion control finds its rates while sums are sent: a second of them, whatever is computed in between."""
    job = _run(4200.0, compute_ms=3900.0).job
    assert job is not None
    ends = list(accumulate([4600.0, 4500.0, 4200.0, 4200.0, 4200.0]))  # sums of 0.7, 0.6 and 0.3 s
    job = replace(job, iterations=tuple(Iteration(at, 0, round(end * 1e6), 0) for at, end in enumerate(ends)))
    assert period_ms(job) == pytest.approx(4200.0)


def test_a_gain_is_taken_draw_by_draw_and_told_with_its_interval() -> None:
    found = _faster([200.0, 100.0, 100.0], [240.0, 200.0, 160.0])
    assert found.agrees is None, "three draws so far apart hold the paper's figure, and no gain as well"
    assert found.ours == "+60.0% (95 %: -39.4 to +159.4%)"
    assert found.details == "an iteration takes 133 ms, else 200 ms"


@pytest.mark.parametrize(
    ("other", "agrees"),
    [
        ((148.0, 149.0, 152.0), True),  # +46.1 to +53.2 %
        ((160.0, 161.0, 162.0), False),  # +58.5 to +63.5 %
        ((100.0, 101.0, 99.0), False),
        ((136.0, 180.0, 142.0), None),  # -6.6 to +112 %
        ((90.0, 160.0, 110.0), None),
    ],
)
def test_a_gain_agrees_if_its_interval_holds_the_papers_and_not_none(
    other: tuple[float, ...], agrees: bool | None
) -> None:
    assert _faster([100.0] * 3, other).agrees is agrees


def test_a_gain_agrees_in_a_band_that_holds_its_whole_interval() -> None:
    other = (160.0, 161.0, 162.0)
    assert _faster([100.0] * 3, other, band=Band(0.5, 0.7, "a reason")).agrees
    assert _faster([100.0] * 3, other, band=Band(0.6, 0.7, "a reason")).agrees is False, "its low end lies outside"


def test_a_network_that_no_hash_decides_is_held_against_every_draw_of_the_other() -> None:
    evidence, pair = _found([_run(100.0)] * 3, [_run(ms) for ms in (140.0, 150.0, 160.0)])
    once = replace(evidence, drills={"a": _run(100.0), **{k: v for k, v in evidence.drills.items() if k[0] == "b"}})
    assert Faster(pair, 0.5)(once).ours == Faster(pair, 0.5)(evidence).ours == "+50.0% (95 %: +25.2 to +74.8%)"


def test_two_networks_that_no_hash_decides_have_no_interval() -> None:
    """The same run for every draw is one run: twelve times its figure would pretend to an interval of nothing."""
    evidence, pair = _found([_run(100.0)] * 3, [_run(103.0)] * 3)
    once = replace(evidence, drills={"a": _run(100.0), "b": _run(103.0)})
    assert Faster(pair, 0.5)(once).ours == "+3.0% (one run each)"
    assert Faster(pair, 0.5)(once).agrees is False
    queued = replace(evidence, drills={"a": _queued(1.0), "b": _queued(1.0)})
    assert ShorterQueues(pair, -0.918)(queued).ours == "+0.0% (one run each)"


def test_a_single_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="1 draws have no interval; it takes 2"):
        _faster([100.0], [150.0])


def test_too_few_iterations_tell_nothing() -> None:
    evidence, pair = _found([_run(100.0)] * 2, [_run(150.0), _run(150.0, 1)])
    assert Faster(pair, 0.5)(evidence).agrees is None
    with pytest.raises(MachineError, match="the drill ran none"):
        Faster(pair, 0.5)(replace(evidence, drills=dict.fromkeys(evidence.drills, metrics((), ()))))


def test_the_share_of_sums_that_the_papers_gain_takes_is_computed() -> None:
    """80 ms of compute and 20 or 40 ms of sums: 20 %; for half as much again compute would be 20 ms."""
    evidence, pair = _found([_run(100.0, compute_ms=80.0)] * 2, [_run(120.0, compute_ms=80.0)] * 2)
    found = FasterTraining(pair, 0.5)(evidence)
    assert found.agrees is False
    assert found.ours.endswith("; sums are 20.0% of an iteration, for +50.0% they would be 50.0%")
    assert "they would be" not in FasterTraining(pair, 2.0)(evidence).ours, "sums twice as slow cannot make it"


def _queued(ms: float) -> DrillMetrics:
    port = PortResult("t:p", "l", "tor down", "n", 10**8, 100, 0.5, 1, 1, 0, 1.0, 1, 1, ms, 19.0, 20.0, 0.1)
    above = replace(port, tier="tor up", nic=None, queue_mean_ms=1000.0)
    return replace(metrics((), ()), ports=PortMetrics(2.0, Ports.TOR_DOWN, 3.0, 0.0, (port, above), ()))


@pytest.mark.parametrize(
    ("better", "agrees"),
    [((0.08, 0.09, 0.07), True), ((0.01, 0.02, 0.01), True), ((0.3, 0.31, 0.29), False), ((1.0, 1.01, 1.0), False)],
)
def test_queues_agree_with_the_papers_share_or_within_the_band(better: tuple[float, ...], agrees: bool) -> None:
    evidence, pair = _found([_queued(ms) for ms in better], [_queued(1.0)] * 3)
    band = Band(-math.inf, -0.85, "a reason")
    assert ShorterQueues(pair, -0.918, band)(evidence).agrees is agrees


def test_queues_that_nobody_has_are_not_shorter() -> None:
    evidence, pair = _found([_queued(0.0)] * 2, [_queued(0.0)] * 2)
    assert ShorterQueues(pair, -0.918)(evidence).agrees is False


@pytest.mark.parametrize(
    ("preset", "hosts", "fewest"),
    [("pod", 128, 1), ("pod", 129, 2), ("pod", 288, 3), ("dcn-plus-pod", 288, 18), ("dcn-plus-pod", 289, 19)],
)
def test_a_job_spans_as_few_segments_as_hold_it(preset: str, hosts: int, fewest: int) -> None:
    span = span_of(PRESETS[preset].spec, hosts)
    assert span.segments == fewest
    assert span.in_order == pytest.approx(fewest / hosts if fewest > 1 else 0.0)
    assert span.by_lot == pytest.approx((1 - 1 / fewest) * hosts / (hosts - 1), abs=0.03)


def test_nineteen_segments_of_dcn_plus_are_three_of_hpn() -> None:
    evidence = ClaimEvidence({}, {}, {}, inventory(load_fabric("tiny")))
    found = segments(evidence)
    assert found.agrees
    assert found.ours.startswith("18-19 to 3 for 288 to 299 hosts of 8")
    assert segments(replace(evidence, preset="dcn-plus-pod")).agrees is False


def test_draws_of_a_drill_are_its_topologys_seeds() -> None:
    assert draw_of("x", 5) == "x@5"
    assert [drill_of(run) for run in ("x", "x@5")] == [("x", None), ("x", 5)]
    (claim,) = choose(["cross-segment"])
    assert len(claim.own_runs(DRAWS)) == len(set(claim.own_runs(DRAWS))) == 24
    assert len(claim.runs(DRAWS)) == 25, "in one segment no hash decides, so that one run is all of them"


def test_a_network_held_against_itself_is_held_against_another_draw() -> None:
    (claim,) = choose(["cross-segment"])
    instead = claim.instead(claim.without[0], 3)
    assert instead == {f"job-cross-segment-hpn@{one}": f"job-cross-segment-clos@{other}" for one, other in
                       ((1, 2), (2, 3), (3, 1))}  # fmt: skip


def test_every_comparison_of_jobs_is_drawn() -> None:
    compared = [each for each in CLAIMS.values() if isinstance(each.judge, COMPARES)]
    assert len(compared) == 13
    assert all(claim.drawn and set(claim.drawn) <= {drill_of(run)[0] for run in claim.runs(2)} for claim in compared)
    assert DRAWS >= 12


@pytest.mark.parametrize("name", DRAWN)
def test_another_seed_changes_hashes_and_drawn_orders_and_nothing_else(name: str) -> None:
    drill = load_drill(drill_file(name))
    other = drill.seeded(7)
    assert other.topology.seed == 7
    assert replace(other, topology=drill.topology) == drill
    assert drill.job is not None
    assert drill.job.seed is None, "a draw would not reach the order of hosts"


@pytest.mark.parametrize(
    "claim", [claim for claim in CLAIMS.values() if isinstance(claim.judge, Faster | FasterTraining | ModelTraining)]
)
def test_networks_that_are_compared_do_the_same_work(claim: Claim) -> None:
    """All but what the comparison is about: the network, where hosts stand, how paths and queue pairs are chosen.

    Meta's are about the number of queue pairs too.
    """
    drills = [load_drill(drill_file(name)) for name in {drill_of(run)[0] for run in claim.runs(2)}]
    works = {(d.job.work, d.job.congestion, d.job.stretch, d.tick_ns) for d in drills if d.job}
    assert len(works) == 1
    assert len({d.job.queue_pairs for d in drills if d.job}) == (2 if claim in META else 1)
    marks = {(d.topology.scale, d.topology.ecn, d.topology.queue_ms, d.topology.nic_port_rate) for d in drills}
    assert len(marks) == 1


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("job-*.yaml")))
def test_no_baseline_is_oversubscribed(name: str) -> None:
    """DCN+ has full bisection (HPN paper, section 9): a core that is too thin would be taken for its hashes."""
    fabric = load_drill(drill_file(name)).topology
    thin = [each.role for each in inventory(build(fabric)).budgets if (each.oversubscription or 0) > 1]
    assert not thin or fabric.pods * fabric.segments == 1, "in one segment nothing goes up"
