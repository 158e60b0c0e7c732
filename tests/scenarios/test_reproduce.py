"""The claims of the paper: each names runs that exist, and is answered from evidence alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from hpn.failover.analysis.job import Death, Iteration, JobEdge, JobMetrics, MessageTimes
from hpn.failover.analysis.model import DrillMetrics, Goodput, NicGoodput, Phase, Phases, Relation
from hpn.failover.analysis.port_sampling import Ports
from hpn.failover.analysis.ports import NicBalance, PortMetrics, PortResult
from hpn.results.judge.verdict import Check, Outcome, Verdict
from hpn.results.run.folder import RunFolder, create
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.paper.answers import BEGIN, END, ClaimRow, claims_table, exit_code, markdown, within
from hpn.scenarios.paper.claim import DRAWS, Claim, ClaimAnswer, Without, drill_of, lacks
from hpn.scenarios.paper.claims import CLAIMS
from hpn.scenarios.paper.judging import Ran, judge
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.path_figures import QUEUE_PAIRS, SPEC, PathFigures, figures
from hpn.scenarios.paper.reproduce import FOLDER, choose, drill_file, reproduce, wanted_of
from hpn.scenarios.paper.variants import Variant
from hpn.scenarios.run.calibrate import packets_per_s
from hpn.scenarios.run.run_order import Order
from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError, NoisyError
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.inventory import Inventory, inventory
from hpn.testbed.fabric.load import load_fabric
from tests.results.sample import MANIFEST, class_use
from tests.results.shown import as_text
from tests.scenarios.measured import FAILURE, NO_PHASE, REPAIR, at_edge, flow, link_down, metrics, stalled
from tests.scenarios.pool.pretended import Pretended, here

VARIANTS = {variant.name: variant for claim in CLAIMS.values() for variant in claim.variants}
DRILLS = sorted({drill_of(name)[0] for claim in CLAIMS.values() for name in claim.runs(DRAWS)} - set(VARIANTS))
PATHS = (
    PathFigures("hpn", 16, (1.0, 1.0), 1.6, 1.2, 1.0),
    PathFigures("dual-tor-clos", 16, (1.0, 3.0), 1.6, 1.6, 1.0),
)
SHUT_DOWN = Event(0, EventKind.DAEMON, "p0.s0.t0.1", "stack", "shut-down")


@pytest.mark.parametrize("name", DRILLS)
def test_the_drill_of_a_claim_is_there(name: str) -> None:
    assert load_drill(drill_file(name)).name == name


def test_every_drill_of_the_folder_speaks_to_a_claim() -> None:
    made_of = {variant.drill for variant in VARIANTS.values()}
    assert {path.stem for path in FOLDER.glob("*.yaml")} <= {*DRILLS, *made_of}


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_variant_is_its_drill_with_the_values_it_names(name: str, tmp_path: Path) -> None:
    file = tmp_path / "variant.yaml"
    file.write_text(VARIANTS[name].text(drill_file(VARIANTS[name].drill).read_text()))
    found, original = load_drill(file), load_drill(drill_file(VARIANTS[name].drill))
    assert found.name == name
    assert found.topology == original.topology
    assert (found.job, found.timeline) != (original.job, original.timeline)


def test_a_variant_of_a_key_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="tramining"):
        Variant("x", "job-flap-hpn", {"job.tramining.compute": "1 ms"}).text("{drill: y, job: {training: {}}}")


_CLAIM = Claim("k", "it is so", "6 %", "a reason", ("a",), lambda _found: Finding("7 %", True), without=())


@pytest.mark.parametrize(
    ("claim", "lack"),
    [
        (replace(_CLAIM, why="", without=(Without("it", pod="pod"),)), "why"),
        (_CLAIM, "networks without its feature"),
        (replace(_CLAIM, drills=(), without=(Without("it", pod="pod"),)), "drills, or what it is computed by"),
        (replace(_CLAIM, without=(Without("it"),)), "runs, or else a pod or a judge, without it"),
        (replace(_CLAIM, without=(Without("it", {"b": "c"}),)), "other drills in place of its own without it"),
        (replace(_CLAIM, without=(Without("it", {"a": "a"}),)), "other drills in place of its own without it"),
        (replace(_CLAIM, drawn=("b",), without=(Without("it", {"a": "b"}),)), "one run in place of one without it"),
    ],
)
def test_a_claim_that_does_not_say_all_that_it_must_is_an_error_at_import(claim: Claim, lack: str) -> None:
    with pytest.raises(TypeError, match=f"claim 'k' does not say its {lack}"):
        Registry("claim", lambda each: each.key, (claim,), lacks, of=Claim)


def test_claims_are_chosen_by_key() -> None:
    assert [claim.key for claim in choose(["pod-size"])] == ["pod-size"]
    assert choose([]) == tuple(CLAIMS.values())
    with pytest.raises(InputError, match="no claim 'pod-sise'; did you mean pod-size"):
        choose(["pod-sise"])


def reproduced(key: str, out: Path) -> tuple[ClaimRow, ...]:
    claims = choose([key])
    return reproduce(claims, wanted_of(claims, "host", out, ()), "host", out, lambda _line: None, Pretended(here))


def _rows(keys: Sequence[str], ran: dict[str, Ran]) -> list[ClaimRow]:
    return [judge(claim, ran, {}) for claim in choose(keys)]


def _answer(key: str, **drills: DrillMetrics) -> bool | None:
    """Whether a claim holds for these drills, None: not told; '_' in a name stands for '-', nobody shuts down."""
    found = {name.replace("_", "-"): each for name, each in drills.items()}
    return _finding(key, found, {})


def _finding(key: str, drills: dict[str, DrillMetrics], events: dict[str, list[Event]]) -> bool | None:
    return _found(key, drills, events).agrees


def _found(
    key: str,
    drills: dict[str, DrillMetrics],
    events: dict[str, list[Event]] | None = None,
    paths: Sequence[PathFigures] = (),
) -> Finding:
    (claim,) = choose([key])
    assert claim.judge is not None
    by_name = {each.architecture: each for each in paths}
    return claim.judge(ClaimEvidence(drills, events or {}, by_name, _pod()))


@cache
def _pod() -> Inventory:
    return inventory(load_fabric("pod"))


@pytest.mark.parametrize(
    ("after_bps", "queue", "agrees"), [(0.0, 1, True), (1.0, 1, False), (0.0, 0, False), (1.0, 0, False)]
)
def test_a_deadlock_is_a_ring_that_waits_and_flows_that_stand(after_bps: float, queue: int, agrees: bool) -> None:
    stands = [at_edge("a", Relation.SENDER, goodput=Goodput(100.0, 0.0, after_bps)) for _ in (FAILURE, REPAIR)]
    ring = tuple(
        class_use(f"{a}:{b}", is_switch=True, paused=True, pausing=True, queue_bytes=queue, link=link)
        for a, b, link in (("t", "u", "t-u"), ("u", "t", "t-u"))
    )
    run = replace(metrics((FAILURE, REPAIR), (flow("a", *stands),)), buffers=ring)
    assert _answer("bounce-deadlock", deadlock_bounce=run) is agrees
    assert _answer("bounce-deadlock", deadlock_bounce=replace(run, buffers=None)) is None


def test_what_could_not_run_is_not_answered() -> None:
    ran = {name: Ran(None, "no kernel") for name in ("link-down-single-tor", "link-down")}
    (row,) = _rows(["single-tor-link-down"], ran)
    assert (row.answer, row.ours) == (ClaimAnswer.NOT_RUN, "link-down-single-tor: no kernel")
    ran["link-down-single-tor"] = Ran(RunFolder(Path("nowhere")), "inconclusive: busy")
    (row,) = _rows(["single-tor-link-down"], ran)
    assert row.answer is ClaimAnswer.NOT_RUN


def _kept(folder: Path, **drills: DrillMetrics) -> dict[str, Ran]:
    """Runs that passed with these metrics; '_' in a name stands for '-'."""
    found: dict[str, Ran] = {}
    for key, each in drills.items():
        name = key.replace("_", "-")
        run = create(folder / name)
        run.write_metrics(each)
        run.write_events([])
        found[name] = Ran(run)
    return found


def _flaps(folder: Path, without_path_control: DrillMetrics) -> dict[str, Ran]:
    """The runs of dual-tor-flap: HPN and the Clos lose 40 ms."""
    halted = stalled(died=False)
    return _kept(
        folder,
        link_flap=link_down(),
        link_flap_clos=link_down(),
        link_flap_no_path_control=without_path_control,
        link_flap_lag_stays=halted,
        link_flap_single_tor=halted,
    )


def test_a_claim_that_differs_in_every_network_without_its_feature_is_shown(tmp_path: Path) -> None:
    (row,) = _rows(["dual-tor-flap"], _flaps(tmp_path, stalled(died=False)))
    assert row.answer is ClaimAnswer.AGREES
    assert [(each.what, each.answer) for each in row.without] == [
        ("path control", ClaimAnswer.DIFFERS),
        ("a LAG that leaves a dead port", ClaimAnswer.DIFFERS),
        ("a second ToR", ClaimAnswer.DIFFERS),
    ]
    assert row.without[0].ours.startswith("longest outage 2000.0 ms (HPN), 40.0 ms (Clos)")
    assert exit_code([row]) == 0
    assert "path control: differs; a LAG that leaves a dead port: differs" in markdown([row], "host")


def test_what_is_true_by_construction_is_counted_and_does_not_agree(tmp_path: Path) -> None:
    clos, hpn = _ports(4.0), _ports(0.4)
    (row,) = _rows(["tor-queue"], _kept(tmp_path, port_load_clos=clos, port_load_hpn=hpn))
    assert row.answer is ClaimAnswer.COUNTED
    assert row.why.startswith("without congestion control a queue is full")
    assert exit_code([row]) == 0
    (row,) = _rows(["tor-queue"], _kept(tmp_path / "none", port_load_clos=clos, port_load_hpn=_ports(3.0)))
    assert row.answer is ClaimAnswer.DIFFERS, "a count may still come out otherwise"


def test_a_claim_that_holds_without_its_feature_too_is_not_shown(tmp_path: Path) -> None:
    (row,) = _rows(["dual-tor-flap"], _flaps(tmp_path, link_down()))
    assert (row.answer, row.without[0].answer) == (ClaimAnswer.NOT_SHOWN, ClaimAnswer.AGREES)
    assert exit_code([row]) == 1


@pytest.mark.parametrize("name", ["link-flap", "link-flap-lag-stays"])
def test_a_drill_that_fails_its_own_expectations_is_no_evidence(tmp_path: Path, name: str) -> None:
    ran = _flaps(tmp_path, stalled(died=False))
    ran[name] = Ran(ran[name].run, "failed: state restored", failed=True)
    (row,) = _rows(["dual-tor-flap"], ran)
    assert row.answer is ClaimAnswer.NO_EVIDENCE
    assert f"{name}: failed: state restored" in (row.ours, *(each.ours for each in row.without))
    assert exit_code([row]) == 1


def test_a_network_without_the_feature_that_could_not_run_leaves_the_claim_open(tmp_path: Path) -> None:
    ran = _flaps(tmp_path, stalled(died=False)) | {"link-flap-lag-stays": Ran(None, "no nftables")}
    (row,) = _rows(["dual-tor-flap"], ran)
    assert row.answer is ClaimAnswer.NOT_RUN
    assert exit_code([row]) == 4


def test_the_verdict_of_a_drill_decides_whether_it_is_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(order: Order, _tell: object) -> RunFolder:
        folder = create(order.out)
        folder.write_manifest(replace(MANIFEST, host_profile="lab"))
        folder.write_metrics(link_down())
        folder.write_events([])
        folder.write_verdict(Verdict(Outcome.FAIL, (Check("state restored", Outcome.FAIL, None, 0),)))
        return folder

    monkeypatch.setattr("hpn.scenarios.run.session.run", run)
    (row,) = reproduced("single-tor-link-down", tmp_path)
    assert (row.answer, row.ours) == (ClaimAnswer.NO_EVIDENCE, "link-down-single-tor: failed: state restored")
    (claim,) = json.loads((tmp_path / "reproduction.json").read_text())["claims"]
    assert (claim["answer"], claim["by"]) == ("no evidence", "link-down-single-tor on lab hosts")


def test_a_page_gets_the_claims_between_its_marks_and_keeps_the_rest() -> None:
    rows = [_answered("one", ClaimAnswer.AGREES), _answered("two", ClaimAnswer.DIFFERS)]
    page = within(f"before\n{BEGIN}old\n{END}after\n", rows, "today.")
    assert page.startswith(f"before\n{BEGIN}today.\n\n2 claims: 1 agrees, 1 differs.\n\n| claim |")
    assert "| `two` | " in page
    assert "old" not in page
    assert page.endswith(f"|\n{END}after\n")
    assert within(page, rows, "today.") == page
    with pytest.raises(InputError, match="no place for the claims; write the lines <!-- hpn reproduce: begin -->"):
        within("no mark", rows, "")


def _answered(key: str, answer: ClaimAnswer) -> ClaimRow:
    return ClaimRow(key, "it is so", "6 %", "7 %", answer, "a drill", "")


def test_draws_and_variants_of_a_drill_are_counted_not_listed() -> None:
    lost = {name: Ran(None, "no kernel") for key in ("cross-segment", "dual-tor-link-down-job")
            for name in CLAIMS[key].runs(DRAWS)}  # fmt: skip
    drawn, varied = _rows(["cross-segment", "dual-tor-link-down-job"], lost)
    assert drawn.by == "job-cross-segment-hpn (12 draws), job-cross-segment-clos (12 draws)"
    assert drawn.without[1].by == "job-cross-segment-local"
    assert varied.by == "job-link-down-full-load (6 variants)"
    assert varied.without[0].by == "job-link-down-full-load-single-tor"


def test_what_nothing_speaks_to_says_so() -> None:
    (row,) = _rows(["failure-rates"], {})
    assert (row.answer, row.by, row.ours) == (ClaimAnswer.NOT_REPRODUCED, "nothing yet", "-")


def test_the_pod_is_counted() -> None:
    rows = _rows(["pod-size", "tor-oversubscription"], {})
    assert [row.ours for row in rows] == [
        "15,360 GPUs, 240 ToRs, 120 Aggs, 30,720 + 14,400 links",
        "ToR 1.067:1",
    ]
    assert {row.answer for row in rows} == {ClaimAnswer.COMPUTED}
    found = [(without.by, without.ours, without.answer) for row in rows for without in row.without]
    assert found == [
        ("hpn plan dcn-plus-pod", "512 GPUs, 8 ToRs, 8 Aggs, 1,024 + 512 links", ClaimAnswer.DIFFERS),
        ("hpn plan dcn-plus-pod", "ToR 1.000:1", ClaimAnswer.DIFFERS),
    ]


def _ports(queue_ms: float, *balance: tuple[float, float]) -> DrillMetrics:
    """Two ports towards NICs with that mean queue, and what the ports of each NIC carry."""
    port = PortResult("t:p", "l", "tor down", "n", 10**8, 100, 0.5, 1, 1, 0, 1.0, 1, 1, queue_ms, 19.0, 20.0, 0.1)
    uplink = replace(port, tier="tor up", nic=None, queue_mean_ms=1000.0)
    nics = tuple(NicBalance(f"n{at}", bps, (100, 100)) for at, bps in enumerate(balance))
    found = PortMetrics(2.0, Ports.SWITCHES, 3.0, 0.0, (port, port, uplink), nics)
    return replace(metrics((), ()), ports=found)


def test_ports_differ_in_a_clos_and_not_with_two_planes() -> None:
    skewed, even = _ports(4.0, (50.0, 20.0), (40.0, 40.0)), _ports(0.02, (40.0, 39.9))
    drills = {"port-load-clos": skewed, "port-load-hpn": even}
    found = _found("port-imbalance", drills, paths=PATHS)
    assert found.agrees
    assert found.ours.startswith("Clos: up to 2.5x, median 1.8x; dual plane: 1.00x (1 NICs)")
    assert found.details == "computed from paths: 3.0x and 1.0x"
    assert _found("port-imbalance", drills).details == ""
    assert not _finding("port-imbalance", {"port-load-clos": even, "port-load-hpn": even}, {})
    assert not _finding("port-imbalance", {"port-load-clos": skewed, "port-load-hpn": skewed}, {})


def test_queues_are_those_of_the_ports_towards_nics() -> None:
    drills = {"port-load-clos": _ports(4.0), "port-load-hpn": _ports(0.4)}
    found = _found("tor-queue", drills)
    assert found.agrees
    assert found.ours == "-90.0%: 4.00 ms with Clos, 0.4000 ms with two planes"
    assert found.details.startswith("mean of 2 ports")
    assert not _finding("tor-queue", {"port-load-clos": _ports(4.0), "port-load-hpn": _ports(3.0)}, {})
    assert not _finding("tor-queue", {"port-load-clos": _ports(0.0), "port-load-hpn": _ports(0.0)}, {})


def _paths(*lost: int) -> DrillMetrics:
    """Two flows of each NIC, the first of which loses so many of 4,000 packets."""
    flows = [replace(flow(f"{nic}#{k}", src=f"n{nic}"), received=4000 - (0 if k else n), lost=n)
             for nic, n in enumerate(lost) for k in range(2)]  # fmt: skip
    return metrics((), flows)


def test_the_slowest_nic_sets_the_pace() -> None:
    drills = {"path-choice-hash": _paths(0, 4000), "path-choice-in-turn": _paths(0, 800)}
    found = _found("path-selection", {**drills, "path-choice-disjoint": _paths(0, 0)}, paths=PATHS)
    assert found.agrees
    assert found.ours.startswith("+11.1% against ports in turn (+100.0% against hashes)")
    assert "100% through by choice, 90% in turn, 50% by hash (the slowest queue pair by hash 0%)" in found.details
    assert "160% by hash, 120% in turn, 100% by choice" in found.details
    assert not _found("path-selection", {**drills, "path-choice-disjoint": _paths(0, 4000)}).agrees
    in_turn = drills["path-choice-in-turn"]
    assert not _found("path-selection", {**drills, "path-choice-disjoint": in_turn}).agrees, "twice a hash's is no gain"


def _agg_ports(*loads: float) -> DrillMetrics:
    """Ports from Aggs to ToRs that carry these shares of their rate."""
    port = PortResult("a:p", "l", "agg down", None, 10**8, 100, 0.5, 1, 1, 9, 1.0, 1, 1, 0.1, 19.0, 20.0, 0.1)
    ports = (*(replace(port, load=load) for load in loads), replace(port, tier="tor down", load=0.0))
    return replace(metrics((), ()), ports=PortMetrics(2.0, Ports.SWITCHES, 3.0, 0.0, ports, ()))


def test_one_seed_everywhere_leaves_ports_of_a_clos_idle() -> None:
    idle, even = _agg_ports(0.0, 1.0, 0.001, 1.0), _agg_ports(0.5, 0.4, 0.5, 0.6)
    found = _found("polarisation", {"one-seed-clos": idle, "one-seed-hpn": even})
    assert found.agrees
    assert found.ours.startswith(
        "Agg ports towards ToRs that carry nothing: Clos 2 of 4, the others drop 36 packets; two"
    )
    assert not _found("polarisation", {"one-seed-clos": idle, "one-seed-hpn": idle}).agrees
    assert not _found("polarisation", {"one-seed-clos": even, "one-seed-hpn": even}).agrees


@pytest.mark.parametrize("name", [name for name in DRILLS if name.startswith(("port-load", "path-choice"))])
def test_drills_of_port_claims_sample_every_switch(name: str) -> None:
    drill = load_drill(drill_file(name))
    assert drill.sample is not None
    assert drill.sample.ports is Ports.SWITCHES
    assert packets_per_s(drill) < 50_000


def test_a_minute_is_judged_by_nccls_own_timers_and_the_factor_is_called_fitted() -> None:
    lives, dies = stalled(died=False), stalled(died=True)
    drills = {"outage-30s": lives, "outage-60s": dies, "outage-60s-patient": lives}
    found = _found("single-tor-1-min", drills)
    assert not found.agrees, "what lives with a fitted factor only does not agree"
    assert found.ours == "1 queue pairs dead (0 when repaired in 30 s; fitted: 0 if adapters wait twice as long)"
    assert _found("single-tor-1-min", drills | {"outage-60s": lives}).agrees
    assert _answer("single-tor-2-min", outage_120s=dies, outage_120s_patient=lives)
    assert not _answer("single-tor-2-min", outage_120s=lives, outage_120s_patient=dies)


def _job(*iterations_ms: float, died: bool = False, after: float = 2.0) -> DrillMetrics:
    """A job of iterations one after the other, the first of them before any fault."""
    ends = list(accumulate(iterations_ms))
    iterations = [
        Iteration(at, round((end - ms) * 1e6), round(end * 1e6), 0)
        for at, (ms, end) in enumerate(zip(iterations_ms, ends, strict=True))
    ]
    death = (Death(10**9, "a>b#0", 0, None, 0),) if died else ()
    edges = (JobEdge(2.0, after, after, max(iterations_ms), False, 0.0),)
    times = MessageTimes(1, 1, 1.0, 1.0, 1.0)
    job = JobMetrics(
        2, 2, 1.0, tuple(iterations), iterations_ms[0], (), times, edges, 10, 0, death, 0, {}, wrong=0, open_ms=0.0
    )
    return replace(metrics((), ()), job=job)


def test_a_minute_of_a_job_is_judged_by_what_becomes_of_the_job() -> None:
    lives, dies, stands = _job(400, 30_500, 400), _job(400, died=True, after=0), _job(400, after=0)
    found = _found("single-tor-1-min-job", {"job-outage-60s": dies, "job-outage-25s": lives})
    assert found.agrees is False
    assert found.ours == "dead; repaired after 25 s: goes on, its longest iteration 30.5 s"
    assert _answer("single-tor-1-min-job", job_outage_60s=lives, job_outage_25s=lives)
    assert not _answer("single-tor-1-min-job", job_outage_60s=stands, job_outage_25s=lives)
    assert _answer("single-tor-2-min-job", job_outage_120s=dies)
    assert not _answer("single-tor-2-min-job", job_outage_120s=lives)


def _halted(lost_ms: int) -> DrillMetrics:
    return link_down(receiver=lost_ms)


def test_a_halt_is_nine_seconds_and_negligible_a_tenth_of_one() -> None:
    assert not _answer("single-tor-flap", link_flap_single_tor=_halted(4600))
    assert _answer("single-tor-flap", link_flap_single_tor=_halted(9100))
    assert _answer("dual-tor-flap", link_flap=_halted(90), link_flap_clos=_halted(0))
    assert not _answer("dual-tor-flap", link_flap=_halted(0), link_flap_clos=_halted(400)), "a quarter of a halt is not"
    assert not _answer("dual-tor-flap", link_flap=_halted(400), link_flap_clos=_halted(0))


def test_a_figure_whose_interval_has_the_limit_within_tells_nothing(tmp_path: Path) -> None:
    assert _answer("dual-tor-flap", link_flap=_halted(99), link_flap_clos=_halted(0)) is None, "98 to 101 ms"
    assert _answer("dual-tor-flap", link_flap=_halted(99), link_flap_clos=_halted(400)) is False, "one differs surely"
    assert _answer("single-tor-flap", link_flap_single_tor=_halted(8990)) is None, "8989 to 9170 ms by time stamps"
    early, late = _back(Phase(5000.5)), _back(Phase(4900.0))
    assert _answer("dual-tor-repair", link_down=link_down(), link_down_full_load=early) is None, "a packet's period"
    assert _answer("dual-tor-repair", link_down=link_down(), link_down_full_load=late) is True
    (row,) = _rows(["dual-tor-flap"], _flaps(tmp_path, _halted(99)))
    assert (row.answer, row.without[0].answer) == (ClaimAnswer.NOT_TOLD, ClaimAnswer.NOT_TOLD)
    assert exit_code([row]) == 4


def test_an_outage_of_queue_pairs_that_had_all_died_before_has_no_figure() -> None:
    found = stalled(died=True)
    gone = tuple(replace(f, edges=(f.edges[0], replace(f.edges[1], sent=0))) for f in found.flows)
    drills = {"link-down": replace(found, flows=gone), "link-down-full-load": _back(Phase(100.0))}
    told = _found("dual-tor-repair", drills)
    assert told.ours.startswith("longest outage at the repair untold (all 1 queue pairs had died before), 0 of 1")
    assert told.agrees is False


def _back(recover: Phase) -> DrillMetrics:
    return metrics(
        (FAILURE, REPAIR), link_down().flows, Phases(NO_PHASE, NO_PHASE, NO_PHASE, NO_PHASE, NO_PHASE, recover)
    )


def test_back_at_once_asks_for_every_flow_and_for_the_port() -> None:
    soon, late = _back(Phase(2500.0)), _back(Phase(5100.0))
    assert _answer("dual-tor-repair", link_down=link_down(), link_down_full_load=soon)
    assert not _answer("dual-tor-repair", link_down=link_down(), link_down_full_load=late)
    assert not _answer("dual-tor-repair", link_down=link_down(), link_down_full_load=_back(NO_PHASE))
    assert not _answer("dual-tor-repair", link_down=stalled(died=True), link_down_full_load=soon)


def test_a_rack_is_gone_when_none_of_its_flows_is_left() -> None:
    assert _answer("stacked-collapse", stacked_dataplane_death=stalled(died=True), tor_dataplane_death=link_down())
    assert not _answer("stacked-collapse", stacked_dataplane_death=link_down(), tor_dataplane_death=link_down())


def test_an_upgrade_takes_a_stacked_tor_down_and_no_other() -> None:
    drills = {name: link_down() for name in ("stacked-upgrade", "stacked-upgrade-hpn")}
    assert _finding("stacked-upgrade", drills, {"stacked-upgrade": [SHUT_DOWN], "stacked-upgrade-hpn": []})
    assert not _finding("stacked-upgrade", drills, {"stacked-upgrade": [], "stacked-upgrade-hpn": []})


@pytest.mark.parametrize(("after_bps", "holds"), [(50.0, True), (100.0, False), (0.0, False)])
def test_dual_tor_loses_a_sixteenth_or_so(after_bps: float, holds: bool) -> None:
    nics = [
        NicGoodput(f"p0.s0.h0.r{rail}", "up", Goodput(100.0, 0.0, 100.0 if rail else after_bps)) for rail in range(8)
    ]
    nics.append(NicGoodput("p0.s1.h0.r0", "down", Goodput(100.0, 0.0, 0.0)))  # another host
    found = link_down()
    failure = replace(found.edges[0], nics=tuple(nics))
    full = replace(found, edges=(failure, *found.edges[1:]))
    assert _answer("dual-tor-link-down", link_down_full_load=full, link_down=link_down()) is holds
    assert not _answer("dual-tor-link-down", link_down_full_load=full, link_down=stalled(died=False))


class _Skewed:
    """A fabric in which every path ends on port 0 of the receiver, or on the port it began with."""

    def __init__(self, *, planes: bool) -> None:
        self._planes = planes

    def ports(self, nic: str) -> int:
        return 2

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        return sport % 2

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        last = sport % 2 if self._planes else 0
        return f"{src_nic}.{sport % 2}", f"up{sport % 4}", f"down{sport % 4}", f"{dst_nic}.{last}"

    def rate_bps(self, link: str) -> int:
        return 200_000_000 if link.startswith("p0") else 1_600_000_000


def test_path_figures_tell_a_second_hash_from_none() -> None:
    fabric = build(SPEC)
    even, skewed = (figures(fabric, _Skewed(planes=planes)) for planes in (True, False))
    assert set(even.ratios) == {1.0}
    assert set(skewed.ratios) == {float(QUEUE_PAIRS)}
    assert skewed.turns_worst > 1.5 * even.turns_worst


def test_the_tables_name_every_claim() -> None:
    rows = _rows(["pod-size", "failure-rates"], {})
    assert exit_code(rows) == 0
    assert exit_code([replace(rows[0], answer=ClaimAnswer.NOT_RUN)]) == 4
    assert exit_code([replace(rows[0], answer=ClaimAnswer.DIFFERS), *rows]) == 1
    assert exit_code([replace(rows[0], answer=ClaimAnswer.DIFFERS, known=True), *rows]) == 0
    assert "15,360 GPUs" in as_text(claims_table(rows))
    assert [line for line in markdown(rows, "host").splitlines() if line.startswith("| one pod")]


def test_a_run_too_noisy_to_say_anything_leaves_its_claim_open_and_the_others_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_order: Order, _on_progress: object) -> RunFolder:
        raise NoisyError("every queue pair died before the first fault")

    monkeypatch.setattr("hpn.scenarios.run.session.run", run)
    (row,) = reproduced("single-tor-link-down", tmp_path)
    assert row.answer is ClaimAnswer.NOT_RUN
    assert "every queue pair died" in row.ours
    assert (tmp_path / "reproduction.json").exists()
