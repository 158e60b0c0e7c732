"""The very same ``hpn drill run`` inside user-mode Linux, in real and in virtual time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hpn.results.judge.verdict import Outcome
from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from hpn.results.run.reading import read
from hpn.scenarios.run.analyse import analyse
from hpn.testbed.errors import MachineError
from hpn.testbed.package import PACKAGES
from hpn.testbed.vm.guest import GuestJob
from hpn.testbed.vm.uml import Uml
from tests.busy import all_cores_busy

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

_ROOT = Path(__file__).parents[2]
_DRILL = """
drill: short
summary: one link is cut and repaired
topology: {segments: 2, hosts: 2, rails: 1, aggs: 1, scale: 10000}
workload: {pattern: permutation, queue_pairs: 2, load: 40 %}
profile: quick
timeline:
  healthy: 600 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 600 ms, for: 800 ms}
  settle: 1200 ms
expect:
  - queue_pair_deaths: {at_most: 0}
  - state_restored: yes
"""


@pytest.fixture
def drill(tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text(_DRILL)
    return path


def _run(engine: Uml, drill: Path, out: Path) -> tuple[int, RunFolder]:
    try:
        engine.check()
    except MachineError as error:
        pytest.skip(str(error))
    out.mkdir()
    command = (sys.executable, "cli.py", "drill", "run", str(drill), "--out", "run")
    script = 'cd "$0" && exec "$@"'  # the run folder has the same name in every run
    job = GuestJob(
        ("/bin/sh", "-c", script, str(out), command[0], str(_ROOT / "cli.py"), *command[2:]),
        _ROOT, (out,), {}, 1024, 1, 300.0,
    )  # fmt: skip
    lines: list[str] = []
    result = engine.run(job, lines.append)
    assert (out / "run").is_dir(), "\n".join(lines)
    return result.exit_code, folder.load(out / "run" / "short")


def _facts(run: RunFolder) -> dict[str, bytes]:
    """Every file of the run folder but the manifest, which names paths and the machine."""
    files = (
        path for path in run.path.rglob("*") if path.is_file() and path.name not in {"manifest.json", "report.html"}
    )
    return {str(path.relative_to(run.path)): path.read_bytes() for path in files}


def test_a_drill_runs_in_a_guest_and_its_run_folder_comes_back(drill: Path, tmp_path: Path) -> None:
    code, run = _run(Uml(), drill, tmp_path / "out")
    assert code in (0, 4), "pass, or inconclusive where the machine is too slow"
    assert run.manifest().kernel != os.uname().release
    assert run.manifest().datapath == "kernel"
    assert run.verdict().exit_code == code


def _checkout(to: Path) -> Path:
    """A copy of the project without its byte code, and without what pip leaves in a checkout it installs from."""
    for package in (*PACKAGES, "hpn"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_ROOT / package, to / package, symlinks=True, ignore=ignored)
    return Path(shutil.copy(_ROOT / "cli.py", to))


def _with_more_modules(checkout: Path) -> None:
    """A worker that has been cut into more modules, as any refactoring may do."""
    worker, more = checkout / "traffic" / "streams" / "worker.py", checkout / "traffic" / "more"
    more.mkdir()
    for name in ("__init__", "one", "two"):
        (more / f"{name}.py").write_text("")
    first = "from hpn.testbed.events import now_ns\n"
    assert first in worker.read_text()
    worker.write_text(worker.read_text().replace(first, f"{first}from hpn.traffic.more import one, two\n"))


def _in_virtual_time(command: Path, drill: Path, out: Path, path: str) -> RunFolder:
    """``hpn drill run`` as somebody has it whose PATH begins with ``path``; it passes."""
    arguments = (str(drill), "--engine", "uml", "--virtual-time", "--keep-records", "--out", str(out))
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, str(command), "drill", "run", *arguments], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder.load(out / "short")


def _injections_are_when_they_were_made(run: RunFolder) -> None:
    """Both ends of the cut link lose and get their carrier within the edge's clock readings, and a millisecond."""
    for result, what in zip(run.metrics().edges, ("carrier-down", "carrier-up"), strict=True):
        edge = result.edge
        (link,) = edge.links
        ends = (link.lower, link.upper)
        times = [
            event.at_ns for event in run.events() if event.what == what and f"{event.node}:{event.subject}" in ends
        ]
        assert len(times) == 2, what
        assert all(edge.inject_before_ns <= at_ns <= edge.inject_after_ns + 1_000_000 for at_ns in times), what


def _the_folder_tells_all_of_it(run: RunFolder) -> None:
    """Every part is there and agrees with the figures, and is no larger than these."""
    found = read(run.path)
    assert found.gaps == ()
    assert found.metrics is not None
    assert found.series is not None
    assert found.series.streams is not None
    assert found.series.streams.sent.sum(axis=1).tolist() == [flow.sent for flow in found.metrics.flows]
    assert found.series.streams.received.sum(axis=1).tolist() == [flow.received for flow in found.metrics.flows]
    assert found.fabric is not None
    begin = {path.flow: path for path in found.paths or () if path.why == "begin"}
    for flow in found.metrics.flows:
        path = begin[flow.flow]
        assert path.links[0] == found.fabric.nic(flow.src_nic).links[path.port or 0].name
        assert path.links[-1] in {link.name for link in found.fabric.nic(flow.dst_nic).links}
        assert flow.edges[0].plane == path.plane
    crossed = {path.flow for path in begin.values() if found.metrics.edges[0].edge.links[0].name in path.links}
    assert set(found.metrics.edges[0].edge.crossed or ()) == crossed != set()
    after = [path for path in found.paths or () if path.why == "looked" and path.dropped is None]
    assert {path.plane for path in after} == {1}, "those that moved; bonding waits 2 s before it takes them home"
    for path in (*begin.values(), *after):
        assert {found.fabric.link(name).plane for name in path.links} == {path.plane}
    old = ("manifest.json", "events.jsonl", "metrics.json", "flows.jsonl", "verdict.json")
    sizes = {path.name: path.stat().st_size for path in run.path.iterdir() if path.is_file()}
    del sizes["report.html"]  # made of the others, whenever one likes
    assert sum(sizes.values()) < 2 * sum(sizes[name] for name in old)


def test_virtual_time_repeats_to_the_last_digit_with_other_modules_on_a_busy_machine(
    drill: Path, tmp_path: Path
) -> None:
    try:
        Uml(virtual_time=True).check()
    except MachineError as error:
        pytest.skip(str(error))
    before = datetime.now(UTC)
    here = _in_virtual_time(_ROOT / "cli.py", drill, tmp_path / "here", "/usr/bin")
    elsewhere = _checkout(tmp_path / "some" / "where" / "else")
    _with_more_modules(elsewhere.parent)
    with all_cores_busy():
        there = _in_virtual_time(elsewhere, drill, tmp_path / "out" / "there", "/opt/nowhere/bin")
    assert {"events.jsonl", "metrics.json", "verdict.json", "records/packets.npz"} <= _facts(here).keys()
    assert _facts(here) == _facts(there)
    assert before < datetime.fromisoformat(here.manifest().date) < datetime.fromisoformat(there.manifest().date)
    assert len(here.manifest().digests) == 3
    assert here.manifest().digests == there.manifest().digests
    failure = here.metrics().edges[0]
    assert failure.phases.switch.ms is not None
    assert failure.phases.switch.ms <= failure.worst_outage_plbm_ms + failure.resolution_ms, "as the packets have it"
    attached = [e.at_ns for e in here.events() if (e.node, e.subject, e.what) == ("p0.s0.h0", "r0p0", "attached")]
    late_ns = min(at_ns - failure.edge.inject_before_ns for at_ns in attached if at_ns > failure.edge.inject_before_ns)
    assert late_ns <= 2 * 100_000_000 + 10_000_000, "the driver's tick, miimon's look, and ours at the driver's pace"
    assert analyse(here).differences == (), "the host makes the same of the guest's records, to the byte"
    _injections_are_when_they_were_made(here)
    _the_folder_tells_all_of_it(here)
    assert here.verdict().outcome is Outcome.PASS
    host = json.loads((here.path / "metrics.json").read_text())["host"]
    assert host["idle_mean_pct"] > 99, "CPU time is free in virtual time"
