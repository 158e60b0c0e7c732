"""A drill by the model: what it says, what it leaves out, what it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hpn.commands.model import model_
from hpn.results.judge.verdict import Outcome
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.expect.metric import MODELLED
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.model import answer as answering
from hpn.scenarios.model import jobs, rates
from hpn.scenarios.model.answer import ModelAnswer, modelled
from hpn.scenarios.model.failover_times import FailoverTimes, shipped
from hpn.scenarios.model.page import document
from hpn.scenarios.model.paths_over_time import Piece
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.lag.host_nft import NFT
from hpn.traffic.fluid.links import Links
from hpn.traffic.fluid.solve import padded

DRILL = """\
drill: cut
summary: a drill for the model
topology: {{preset: {preset}, {topology}}}
workload: {{pattern: permutation, queue_pairs: 4, load: {load}{workload}}}
timeline:
  healthy: 1 s
  faults:
    - {{id: cut, fault: {fault}, target: {target}, at: 1 s, for: 2 s{more}}}
  settle: 5 s
expect:
  - goodput_during: {{at_least: 95 %, of: before, edge: failure}}
"""


def drill(
    tmp_path: Path,
    fault: str = "link-down",
    target: str = "p0.s0.h0.r0.0",
    *,
    topology: str = "hosts: 2",
    load: str = "40 %",
    workload: str = "",
    preset: str = "tiny",
    more: str = "",
) -> Drill:
    text = DRILL.format(
        topology=topology, load=load, workload=workload, fault=fault, target=target, more=more, preset=preset
    )
    (tmp_path / "cut.yaml").write_text(text)
    return catalogue.load(str(tmp_path / "cut.yaml"))


def model(of: Drill, measured: FailoverTimes, seed: int = 1, available_bytes: float = float("inf")) -> ModelAnswer:
    return answering.model(PlannedRun(of), measured, seed, available_bytes)


def load_of(answer: ModelAnswer, link: str) -> tuple[float, ...]:
    return next(each.load for each in answer.loads if each.link == link)


def test_a_cut_costs_nothing_that_fits_one_port_and_doubles_the_other_s_load(tmp_path: Path) -> None:
    answer = model(drill(tmp_path), shipped())
    before, during, after = load_of(answer, "p0.s0.h0.r0.1 up")
    assert 0.4 < before < 0.403, "data, and acknowledgements of what comes"
    assert 0.8 < during < 0.803
    assert 0.4 < after < 0.8, "LACP gives the port back some seconds after the repair"
    assert load_of(answer, "p0.s0.h0.r0.0 up")[1] == pytest.approx(0, abs=1e-3)
    heard = load_of(answer, "p0.s0.h0.r0.0 down")
    assert heard[0] > 0.4
    assert heard[1] == pytest.approx(0, abs=1e-3)
    assert heard[2] > 0.1, "path control takes those that send to the port home"
    assert answer.verdict.outcome is Outcome.PASS


def test_what_does_not_fit_is_lost_in_proportion(tmp_path: Path) -> None:
    """70 % of two ports on one: 60 % of that do not fit; the NIC's goodput is 1 / 1.4 of before."""
    answer = model(drill(tmp_path, load="70 %"), shipped())
    assert load_of(answer, "p0.s0.h0.r0.1 up")[1] == pytest.approx(1.0, rel=2e-3)
    assert answer.verdict.checks[0].measured == pytest.approx(100 / 1.4, rel=2e-3)
    assert answer.verdict.outcome is Outcome.FAIL


def test_without_path_control_receivers_stand_still_until_the_port_is_back(tmp_path: Path) -> None:
    still = model(drill(tmp_path, topology="path_control: {enabled: false}"), shipped())
    moved = model(drill(tmp_path), shipped())
    assert moved.metrics.edges[0].worst_outage_plbm_ms < 10
    assert 4_000 < still.metrics.edges[0].worst_outage_plbm_ms < 5_000
    assert {each.used.conditions.path_control for each in still.basis} == {"move-source-ports"}
    assert not any(each.used.same for each in still.basis), "and says that it drew from runs that are not like it"


@pytest.mark.parametrize(("timeout", "dead"), [(14, 8), (20, 0)])
def test_queue_pairs_of_a_single_tor_die_when_their_retries_end_before_the_repair(
    tmp_path: Path, timeout: int, dead: int
) -> None:
    answer = model(drill(tmp_path, topology="architecture: single-tor", workload=f", ib_timeout: {timeout}"), shipped())
    assert sum(flow.stopped_at_ns is not None for flow in answer.metrics.flows) == dead
    assert answer.metrics.edges[0].flows_hit == 8
    assert (answer.metrics.edges[1].goodput.after_bps < answer.metrics.edges[0].goodput.before_bps) == (dead > 0)


def test_a_nic_with_one_port_sends_sooner_than_lacp_agrees_and_stops_once_more(tmp_path: Path) -> None:
    """In the lab a bond whose only port is back sends at once, and for 110 ms not when LACP joins the port to it."""
    answer = model(drill(tmp_path, topology="architecture: single-tor", load="10 %"), shipped())
    sent = [flow for flow in answer.metrics.flows if flow.src_nic == "p0.s0.h0.r0"]
    heard = [flow for flow in answer.metrics.flows if flow.dst_nic == "p0.s0.h0.r0"]
    assert all(flow.edges[1].outage_plbm_ms == pytest.approx(110, abs=3) for flow in sent)
    assert all(flow.edges[1].outages == 0 for flow in heard)
    assert max(flow.edges[0].outage_plbm_ms for flow in sent) < min(flow.edges[0].outage_plbm_ms for flow in heard)


def test_a_slower_link_passes_its_share(tmp_path: Path) -> None:
    answer = model(drill(tmp_path, "rate-drop", load="80 %", more=", rate: 25 %"), shipped())
    assert load_of(answer, "p0.s0.h0.r0.0 up")[1] == pytest.approx(0.25, rel=2e-3)
    assert load_of(answer, "p0.s0.h0.r0.1 up")[1] == pytest.approx(0.8, rel=2e-3)


def test_a_flap_that_is_shorter_than_lacp_keeps_flows_away_from_the_port(tmp_path: Path) -> None:
    flap = DRILL.replace("for: 2 s", "period: 500 ms, duty: 50 %, count: 4")
    words = {
        "topology": "hosts: 2",
        "load": "40 %",
        "workload": "",
        "target": "p0.s0.h0.r0.0",
        "more": "",
        "preset": "tiny",
    }
    (tmp_path / "flap.yaml").write_text(flap.format(fault="link-flap", **words))
    answer = model(catalogue.load(str(tmp_path / "flap.yaml")), shipped())
    assert len(answer.metrics.edges) == 8
    assert all(share == pytest.approx(0, abs=5e-3) for share in load_of(answer, "p0.s0.h0.r0.0 up")[2:8])


def test_the_seed_decides_alone(tmp_path: Path) -> None:
    one = drill(tmp_path, "tor-crash", "p0.s0.t0.0")
    assert document(model(one, shipped(), 5)) == document(model(one, shipped(), 5))


def test_every_figure_of_the_document_says_that_it_is_modelled(tmp_path: Path) -> None:
    found = document(model(drill(tmp_path), shipped()))
    assert found["how"] == "modelled"
    for part in ("expectations", "edges", "links"):
        rows = found[part]
        assert isinstance(rows, list)
        assert rows
        assert {row["how"] for row in rows} == {"modelled"}


def test_what_it_cannot_be_held_against_is_listed_with_the_reason() -> None:
    chosen = catalogue.load("link-down")
    answer = model(chosen, shipped())
    judged, left_out = {each.text for each in answer.verdict.checks}, {each.text for each in answer.left_out}
    assert judged | left_out == {each.text for each in chosen.expectations}
    assert not judged & left_out
    assert "state restored" in left_out
    assert all(each.metric.unmodelled == MODELLED for each in chosen.expectations if each.text in judged)
    assert all(each.why for each in answer.left_out)


JOB = DRILL.replace("workload: {{pattern: permutation, queue_pairs: 4, load: {load}{workload}}}", "{job}").replace(
    "goodput_during: {{at_least: 95 %, of: before, edge: failure}}", "job_survives: yes"
)


def job_drill(tmp_path: Path, job: str, topology: str) -> Drill:
    words = {"fault": "link-down", "target": "p0.s0.h0.r0.0", "more": "", "topology": topology, "preset": "tiny"}
    (tmp_path / "job.yaml").write_text(JOB.format(job=f"job: {{{job}}}", **words))
    return catalogue.load(str(tmp_path / "job.yaml"))


def test_a_job_takes_the_ring_s_bound_and_twice_that_on_one_port(tmp_path: Path) -> None:
    """Four ranks, 2 MB, both ports at 100 Mbit/s: 1.5 x 2 MB at 200 Mbit/s is 120 ms, and headers are 1.5 %."""
    collective = "collective: {kind: all-reduce, algorithm: ring, size: 2 MB, slices: 4}"
    more = "gpus: 1, order: interleaved, queue_pairs: 2, ib_timeout: 16, queue_pair_choice: in-turn"
    answer = model(job_drill(tmp_path, f"{collective}, {more}", "scale: 2000"), shipped())
    found = answer.metrics.job
    assert found is not None
    assert 121 < found.mean_ms < 125
    assert 242 < max(each.ms for each in found.iterations) < 280
    assert found.wrong == 0, "the ranks' own sums are right"
    (ring,) = found.spans
    assert ring.busbw_bps == pytest.approx(1.5 * 2e6 * 8 / (ring.mean_ms / 1e3))
    assert answer.verdict.outcome is Outcome.PASS
    assert document(answer)["job"]


def test_a_long_job_says_on_standard_error_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpn.commands.waiting._EVERY_S", 0.0)
    collective = "collective: {kind: all-reduce, algorithm: ring, size: 20 MB, slices: 1}"
    job_drill(tmp_path, f"{collective}, gpus: 1", "scale: 2000")
    found = CliRunner().invoke(model_, [str(tmp_path / "job.yaml"), "--json"], standalone_mode=False)
    lines = found.stderr.splitlines()
    assert all(re.fullmatch(r"still running: model of cut \(\d+ % done\)", line) for line in lines), lines[:3]
    shares = [int(line.split("(")[1].split()[0]) for line in lines]
    assert shares == sorted(shares)
    assert shares[0] < 10
    assert shares[-1] == 100
    assert json.loads(found.stdout)["job"]


def test_whole_messages_count_as_outstanding_and_keep_queue_pairs_from_even_turns(tmp_path: Path) -> None:
    """The lab needs 130.6 to 135.0 ms in six runs: of two queue pairs with a message each the first is chosen again."""
    collective = "collective: {kind: all-reduce, algorithm: ring, size: 2 MB, slices: 4}"
    more = "gpus: 1, order: interleaved, queue_pairs: 2, ib_timeout: 16"
    found = model(job_drill(tmp_path, f"{collective}, {more}", "scale: 2000"), shipped()).metrics.job
    assert found is not None
    assert 128 < found.mean_ms < 137


def test_a_job_that_computes_most_of_the_time_is_counted_with_its_computing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sending alone would allow thousands of iterations in these eight seconds; computing allows sixteen."""
    monkeypatch.setattr(jobs, "MOST_MESSAGES", 10_000)
    job = "training: {compute: 500 ms, data: 4, data_size: 1 MB}, gpus: 1"
    found = model(job_drill(tmp_path, job, "hosts: 2, scale: 100"), shipped()).metrics.job
    assert found is not None
    assert 500 < found.mean_ms < 600


def test_a_job_s_queue_pairs_die_on_a_single_tor(tmp_path: Path) -> None:
    """8 tries of 268 ms are over long before the link is back."""
    job = "collective: {kind: all-reduce, size: 1 MB}, gpus: 1, ib_timeout: 16"
    answer = model(job_drill(tmp_path, job, "architecture: single-tor"), shipped())
    assert answer.metrics.job is not None
    assert answer.metrics.job.deaths[0].at_ns == pytest.approx(1e9 + 8 * 4096 * 2**16, rel=1e-6)
    assert answer.verdict.outcome is Outcome.FAIL


def test_a_job_that_overloads_links_without_congestion_control_is_not_trusted() -> None:
    answer = model(catalogue.load("incast-no-control"), shipped())
    assert answer.verdict.outcome is Outcome.INCONCLUSIVE
    assert "without congestion control" in answer.verdict.reasons[0]
    assert not model(catalogue.load("incast-dcqcn"), shipped()).verdict.reasons


def test_a_drill_without_faults_is_answered() -> None:
    answer = model(catalogue.load("healthy-baseline"), shipped())
    assert answer.metrics.edges == ()
    assert {len(each.load) for each in answer.loads} == {1}


def test_what_does_not_fit_into_memory_is_refused_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"needs 0\.\d+ GB and 0\.1 GB are free"):
        model(drill(tmp_path, preset="segment", topology="segments: 2"), shipped(), available_bytes=1e8)


FAULTS = ("lacp-loss", "arp-loss", "silent-drop", "bgp-reset", "tor-drain", "host-replaced", "stacked-upgrade")
TRAFFIC = ("link-down-bursts", "job-restarts", "paths-spraying", "incast-receiver-driven", "client-iperf3-link-down")
BUFFERS = ("incast-pfc", "pause-storm-watchdog")


@pytest.mark.parametrize("name", [*FAULTS, *TRAFFIC, *BUFFERS])
def test_a_drill_that_only_a_lab_can_answer_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InputError) as error:
        model(catalogue.load(name), shipped())
    assert "\n" not in str(error.value)
    assert f"hpn drill run {name}" in str(error.value)


def test_a_lag_or_daemon_that_does_not_state_its_choice_of_paths_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="the BGP daemon frr does not state the order of its next hops"):
        model(drill(tmp_path, topology="bgp: {daemon: frr}"), shipped())
    sticky = replace(NFT, name="sticky", port_of=None)  # as a plug-in's that says nothing of it
    monkeypatch.setattr("hpn.scenarios.model.router.candidates", lambda _word: [sticky])
    with pytest.raises(InputError, match="the LAG datapath sticky does not state its hash"):
        model(drill(tmp_path), shipped())


def test_every_metric_that_is_not_modelled_says_why_and_every_fault_keeps_a_share_of_its_links_or_none() -> None:
    assert {metric.key for metric in METRICS.values() if metric.unmodelled == MODELLED} == {
        *("worst_outage", "median_outage", "outage_p95", "packets_lost", "flows_with_loss", "flows_unrecovered"),
        *("queue_pair_deaths", "goodput_during", "goodput_after"),
        *("iteration_time", "iterations_during", "iterations_after", "lost_iterations", "lost_samples", "busbw"),
        "job_survives",
    }
    refused = {name for name in catalogue.names() if any(left is None for left in _rates_left(name))}
    assert {"lacp-loss", "host-replaced", "stacked-upgrade"} <= refused
    assert not refused & {"link-down", "tor-crash", "link-flap", "rate-drop"}


def _rates_left(name: str) -> list[float | None]:
    return [planned.fault.rate_left() for planned in catalogue.load(name).timeline.faults]


def test_what_no_run_has_shown_is_refused_with_the_way_to_measure_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no run in the lab has shown .*link-down failure, outage.*--calibrate"):
        model(drill(tmp_path), FailoverTimes())


@pytest.mark.parametrize("preset", ["tiny-torus", "tiny-ub-mesh", "tiny-dragonfly", "tiny-slim-fly"])
def test_a_way_around_a_cut_link_of_a_direct_network_may_be_longer(tmp_path: Path, preset: str) -> None:
    fabric = build(PRESETS[preset].spec)
    mesh = [at for at, link in enumerate(fabric.links) if link.kind is LinkKind.MESH]

    def during(at: int) -> tuple[Piece, Piece]:
        """The paths before a link is cut, and just before it is back."""
        cut = drill(tmp_path, target=fabric.links[at].name, topology="scale: 1000", preset=preset, load="10 %")
        answer = modelled(PlannedRun(cut), shipped(), 1)
        assert answer.streams is not None
        before_ns = answer.edges[1].inject_before_ns
        pieces = answer.streams.ways.pieces
        return pieces[0], [piece for piece in pieces if piece.begin_ns < before_ns][-1]

    whole, _ = during(mesh[0])
    at = next(each for each in mesh if (whole.links // 2 == each).any())
    whole, around = during(at)
    crossed = (whole.links // 2 == at).any(axis=1)
    hops = [(piece.links >= 0).sum(axis=1) for piece in (whole, around)]
    assert around.arrives.all()
    assert not (around.links // 2 == at).any()
    assert (hops[1] >= hops[0])[crossed].all()
    assert (hops[1] == hops[0])[~crossed].all()


def test_paths_with_room_are_not_copied() -> None:
    """The model asks for each flow that moves, of up to a million."""
    paths = np.zeros((4, 6), np.int32)
    assert padded(paths, 5) is padded(paths, 6) is paths
    assert padded(paths, 7)[:, 6].tolist() == [-1] * 4


def test_answers_may_take_longer_ways_than_data() -> None:
    """A link carries a flow at its full rate, and answers: both lose."""
    links = Links.of(build(PRESETS["tiny-torus"].spec))
    paths = (np.array([row], np.int32) for row in ((0, 2), (0, 4, 6)))
    piece = Piece(0, next(paths), np.array([True]), next(paths), {})
    bits = 8.0 * 4096
    offered = np.array([links.capacity[0] / bits])
    received, load = rates._solved(links, piece, offered, np.array([bits]), float(offered[0]))
    assert 0.9 * offered[0] < received[0] < offered[0]
    assert load[0] == links.capacity[0]
    assert load[6] > 0
