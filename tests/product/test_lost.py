"""A daemon of ours that dies or is stopped while a drill runs ends it at once, by its name, with exit code 3."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.product.chaos import DRILL
from tests.product.hpn import Hpn, pids_of, processes_of, skip_without_sandbox, until


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    skip_without_sandbox()


def _started(hpn: Hpn, text: str = DRILL) -> subprocess.Popen[str]:
    (hpn.state / "quiet.yaml").write_text(text)
    started = hpn.start("drill", "run", "quiet.yaml", "--out", "out")
    assert started.stdout is not None
    for line in started.stdout:
        if "healthy" in line:
            break
    return started


def _first(state: Path) -> int:
    """The drill's first process: the parent of its BIRDs."""
    fields = Path(f"/proc/{pids_of(state, 'bird -f')[0]}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize(
    ("whom", "name"), [("bird", "BIRD (process"), ("worker", "traffic worker 0"), ("first", "drill's supervisor")]
)
def test_a_lost_daemon_ends_the_run_at_once_by_name(
    tmp_path: Path, whom: str, name: str, number: signal.Signals
) -> None:
    hpn = Hpn(tmp_path)
    started = _started(hpn)
    victims = {"bird": "bird -f", "worker": "hpn.traffic.streams.worker"}
    victim = pids_of(tmp_path, victims[whom])[0] if whom in victims else _first(tmp_path)
    os.kill(victim, number)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, name in err) == (3, True), f"{started.returncode}\n{out}\n{err}"
    assert "Traceback" not in err
    assert "failure of" not in out, "the fault of 20 s later was not waited for"
    assert not (tmp_path / "out" / "quiet" / "verdict.json").exists()
    until(lambda: processes_of(tmp_path) == [], "everything is gone", 20)


def test_queue_pairs_that_all_die_before_the_first_fault_end_the_run(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path)
    impatient = DRILL.replace("load: 5 %", "load: 5 %, ib_timeout: 1, retry_count: 0")
    started = _started(hpn, impatient)
    out, err = started.communicate(timeout=60)
    assert started.returncode == 4, f"{out}\n{err}"
    assert "every queue pair died before the first fault" in err
    assert "failure of" not in out, "the fault of 20 s later was not waited for"
