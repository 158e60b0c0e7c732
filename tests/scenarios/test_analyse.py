"""``hpn analyse``: a run folder with its records gives the same bytes again, and says when it holds others."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.model import QUICK, EdgeKind
from hpn.failover.analysis.port_sampling import Sampled, Sampling, Series, Watched
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.run.folder import RunFolder, load
from hpn.scenarios.run.analyse import analyse
from hpn.scenarios.run.judgement import judge_measured
from hpn.scenarios.run.measurement import Facts, Measurement
from hpn.scenarios.run.stored_records import FOLDER, keep, kept
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.traffic.streams.columns import InMemory, whole
from hpn.traffic.streams.records import RECEIVED
from tests.failover.synthetic import MS, NO_PACKETS, Dead, S, edge, flow, record
from tests.product.hpn import Hpn
from tests.results.sample import EVENTS, LOAD
from tests.scenarios.measured import drill
from tests.scenarios.run_folders import judged_run

AT = 4 * S


def measured_streams(ports: Sampled | None = None) -> Measurement:
    """Two flows; the network of one is dead for 20 ms, and the limit is 50 ms."""
    flows = (flow(0), flow(1, src="p0.s0.h1.r0", dst="p0.s1.h1.r0"))
    records = record(flows[0], 9 * S, [Dead(AT, AT + 20 * MS)], jitter_ns=2 * MS) + record(flows[1], 9 * S)
    facts = Facts(
        expectations=drill("worst_outage: {below: 50 ms, edge: failure, flows: hit}").expectations,
        settings=QUICK,
        flows=flows,
        edges=(edge(AT, 6 * S), edge(6 * S, 10 * S, EdgeKind.REPAIR)),
        start_ns=S,
        healthy_end_ns=3 * S,
        end_ns=10 * S,
        host=LOAD,
        machine_drops=0,
        differences=(),
    )
    return Measurement(facts, tuple(sorted(EVENTS, key=lambda event: event.at_ns)), *records.tables, ports)


def _sampled() -> Sampled:
    busy, idle = (Series(Watched("p0.s0.t0.0", n, f"t:{n}", f"link{n}", "tor down", "p0.s1.h0.r0")) for n in (1, 2))
    for at in range(100):
        busy.append(BucketReading(S + at * 50 * MS, 1, at * 100, 0, at, 1000 * at, at, 8_000_000))
    return Sampled(Sampling(50 * MS), (busy, idle), 10**6)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return judged_run(tmp_path / "run", measured_streams())


@pytest.mark.parametrize("ports", [None, _sampled()], ids=["without ports", "with ports"])
def test_metrics_and_verdict_come_again_byte_for_byte(tmp_path: Path, ports: Sampled | None) -> None:
    found = analyse(judged_run(tmp_path / "run", measured_streams(ports)))
    assert found.differences == ()
    assert ("ports.json" in found.files) == (ports is not None)
    assert found.verdict.outcome is Outcome.PASS
    assert found.metrics.edges[0].worst_outage_plbm_ms == pytest.approx(20, abs=2)


def test_what_the_run_saw_beside_its_packets_is_judged() -> None:
    """A machine that stood still, packets that it dropped itself, a lab that is not as it was."""
    measured = measured_streams()
    facts = replace(measured.facts, expectations=drill("state_restored: yes").expectations)

    def judged(facts: Facts) -> Verdict:
        return judge_measured(replace(measured, facts=facts))[1]

    assert judged(facts).outcome is Outcome.PASS
    stood_still = judged(replace(facts, host=replace(LOAD, loop_lag_max_ms=900.0)))
    assert stood_still.reasons == ("the event loop stood still for 900 ms (limit 500 ms)",)
    assert "the machine itself dropped 7 packets" in judged(replace(facts, machine_drops=7)).reasons[0]
    assert judged(replace(facts, differences=("route x: was y, now absent",))).outcome is Outcome.FAIL


def test_path_control_that_was_off_is_told_so() -> None:
    measured = measured_streams()
    off = replace(measured, facts=replace(measured.facts, path_control=False), events=())
    phases = judge_measured(off)[0].edges[0].phases
    assert phases.path_first.reason == "path control is off"


def test_equal_measurements_leave_equal_bytes(tmp_path: Path) -> None:
    runs = [judged_run(tmp_path / name, measured_streams(_sampled())) for name in ("one", "other")]
    files = [{p.name: p.read_bytes() for p in (run.path / FOLDER).iterdir()} for run in runs]
    assert sorted(files[0]) == ["facts.json", "packets.npz"]
    assert files[0] == files[1]
    with zipfile.ZipFile(runs[0].path / FOLDER / "packets.npz") as packets:
        assert {entry.date_time for entry in packets.infolist()} == {(1980, 1, 1, 0, 0, 0)}, "a time of day"


def test_numpy_reads_the_packets_without_us(run: RunFolder) -> None:
    planes = np.load(run.path / FOLDER / "packets.npz")["received"]
    assert np.array_equal(np.ascontiguousarray(planes.T).reshape(-1).view(RECEIVED), whole(measured_streams().received))


def test_a_run_in_which_nothing_arrived_is_kept_too(tmp_path: Path) -> None:
    measured = replace(measured_streams(), received=NO_PACKETS[1])
    assert analyse(judged_run(tmp_path / "run", measured)).differences == ()


def test_the_command_says_that_all_is_equal_and_has_the_verdict_s_exit_code(run: RunFolder, tmp_path: Path) -> None:
    said = Hpn(tmp_path).run("analyse", str(run.path))
    assert "metrics.json, flows.jsonl, verdict.json: equal to those of the run, byte for byte" in said


def test_the_command_s_json_is_the_run_by_its_records(run: RunFolder, tmp_path: Path) -> None:
    path = run.path / "verdict.json"
    verdict = json.loads(path.read_text())
    path.write_text(path.read_text().replace('"limit": 50.0', '"limit": 60.0'))
    process = Hpn(tmp_path).start("analyse", str(run.path), "--json")
    found = json.loads(process.communicate(timeout=60)[0])
    assert (process.returncode, found["verdict"], len(found["differences"])) == (2, verdict, 1)


def test_an_edited_verdict_is_told_with_its_line_and_exit_2(run: RunFolder, tmp_path: Path) -> None:
    path = run.path / "verdict.json"
    path.write_text(path.read_text().replace('"limit": 50.0', '"limit": 60.0'))
    said = Hpn(tmp_path).run("analyse", str(run.path), code=2)
    assert 'there, "limit": 50.0, by the records' in said
    assert "does not follow from its own records" in said


def test_a_difference_far_along_a_line_is_shown_where_it_is(run: RunFolder) -> None:
    path = run.path / "flows.jsonl"
    path.write_text(path.read_text().replace('"reordered": 0', '"reordered": 7', 1))
    (said,) = analyse(run).differences
    assert '"reordered": 7, ' in said
    assert '"reordered": 0, ' in said


def test_what_the_records_say_goes_to_a_folder_of_its_own(run: RunFolder, tmp_path: Path) -> None:
    (run.path / "metrics.json").unlink()
    said = Hpn(tmp_path).run("analyse", str(run.path), "--out", "again")
    assert "differs: metrics.json: No such file" in said
    again = load(tmp_path / "again")
    assert again.verdict() == run.verdict()
    assert "hpn analysed with" in again.manifest().versions
    assert not (run.path / "metrics.json").exists()
    for name in ("series.json", "series.npz"):
        assert (again.path / name).read_bytes() == (run.path / name).read_bytes()
    assert again.manifest().files == again.sizes()
    for occupied in (run.path, again.path):
        assert "choose another --out" in Hpn(tmp_path).run("analyse", str(run.path), "--out", str(occupied), code=2)
    assert (run.path / FOLDER / "packets.npz").exists()


def test_records_that_lie_elsewhere_are_not_read(run: RunFolder, tmp_path: Path) -> None:
    (run.path / FOLDER).rename(tmp_path / "elsewhere")
    (run.path / FOLDER).symlink_to(tmp_path / "elsewhere")
    assert "leads out of the run folder" in Hpn(tmp_path).run("analyse", str(run.path), code=2)


def test_a_run_without_records_cannot_be_analysed(run: RunFolder, tmp_path: Path) -> None:
    shutil.rmtree(run.path / FOLDER)
    assert "only a run made with --keep-records" in Hpn(tmp_path).run("analyse", str(run.path), code=2)


def _facts(change: Callable[[dict], None]) -> Callable[[RunFolder], None]:  # type: ignore[type-arg]  # plain JSON
    def edit(run: RunFolder) -> None:
        path = run.path / FOLDER / "facts.json"
        facts = json.loads(path.read_text())
        change(facts)
        path.write_text(json.dumps(facts))

    return edit


def _packets(name: str, content: bytes) -> Callable[[RunFolder], None]:
    def edit(run: RunFolder) -> None:
        path = run.path / FOLDER / "packets.npz"
        with zipfile.ZipFile(path) as archive:
            members = {each: archive.read(each) for each in archive.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for each, old in members.items():
                archive.writestr(each, content if each == name else old)

    return edit


def _npy(array: np.ndarray, tail: bytes = b"") -> bytes:
    made = io.BytesIO()
    np.lib.format.write_array(made, array, version=(1, 0), allow_pickle=True)
    return made.getvalue() + tail


def _with_burst(count: int) -> Callable[[RunFolder], None]:
    def edit(run: RunFolder) -> None:
        measured = kept(run).measured
        sent = whole(measured.sent)
        sent["count"][0] = count
        keep(run.path, replace(measured, sent=InMemory(sent)))

    return edit


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_packets("sent.npy", b"nonsense"), "is damaged or of another version"),
        (_packets("sent.npy", _npy(np.array([{"a": 1}], object))), "of object, not"),
        (_packets("received.npy", _npy(np.zeros((32, 8), np.uint8))), "is (32, 8) of uint8, not"),
        (_packets("sent.npy", _npy(np.zeros((32, 18_000), np.uint8), b"\0" * 1000)), "bytes long"),
        (lambda run: (run.path / FOLDER / "packets.npz").write_bytes(b"PK"), "not a zip file"),
        (lambda run: (run.path / FOLDER / "packets.npz").unlink(), "No such file"),
        (_facts(lambda facts: facts.update(format=3)), "has format 3"),
        (_facts(lambda facts: facts.update(counts={"sent": 18_000})), "no count of received"),
        (_facts(lambda facts: facts["facts"]["flows"][0].update(rate_pps=0)), "has a rate of 0"),
        (_facts(lambda facts: facts["facts"]["flows"][1].update(id=0)), "two flows have one id"),
        (_facts(lambda facts: facts["facts"]["flows"][1].update(id=7)), "unknown flows"),
        (_facts(lambda facts: facts["facts"].update(end_ns=-5)), "out of range"),
        (_facts(lambda facts: facts["facts"].update(healthy_end_ns=2**61)), "longer than a day"),
        (_facts(lambda facts: facts.pop("facts")), "Field required"),
        (_with_burst(4_000_000_000), "packets sent, where"),
        (lambda run: (run.path / "events.jsonl").write_text("{}\n"), "is damaged or of another version"),
    ],
)
def test_records_of_somebody_else_are_refused_in_one_line(
    run: RunFolder, harm: Callable[[RunFolder], None], words: str
) -> None:
    harm(run)
    with pytest.raises(InputError, match=r"(?i)" + "".join(f"[{c}]" if c in "()" else c for c in words)) as caught:
        analyse(run)
    assert "\n" not in str(caught.value)


def test_more_records_than_memory_holds_are_not_even_opened(run: RunFolder) -> None:
    _facts(lambda facts: facts["counts"].update(sent=10**12))(run)
    with pytest.raises(MachineError, match="GB of records"):
        analyse(run)


@pytest.mark.parametrize("number", [2**32, 2**64, -1])
def test_a_flow_id_that_no_record_can_hold_is_damage(run: RunFolder, number: int) -> None:
    facts = run.path / FOLDER / "facts.json"
    content = json.loads(facts.read_text())
    content["facts"]["flows"][1]["id"] = number
    facts.write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"flow {number}"):
        analyse(run)


def test_more_packets_than_there_is_memory_for_are_refused_before_any_is_made(run: RunFolder) -> None:
    """One burst of four thousand million packets, of a flow whose facts say that it is as fast as that."""
    measured = kept(run).measured
    sent = whole(measured.sent)
    sent["count"][0] = 2**32 - 1
    flows = tuple(replace(flow, rate_pps=9e8) for flow in measured.facts.flows)
    keep(run.path, replace(measured, facts=replace(measured.facts, flows=flows), sent=InMemory(sent)))
    with pytest.raises(MachineError, match=r"packets\.npz: .* GB of records"):
        kept(run)


def test_a_run_without_flows_or_faults_is_analysed(tmp_path: Path) -> None:
    measured = measured_streams()
    facts = replace(measured.facts, flows=(), edges=())
    nothing = replace(measured, facts=facts, sent=NO_PACKETS[0], received=NO_PACKETS[1], events=())
    assert judge_measured(nothing)[1].outcome is Outcome.INCONCLUSIVE
