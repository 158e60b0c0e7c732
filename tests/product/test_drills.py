"""Drills from the command line: verdict, run folder, JUnit; Ctrl-C; a starved machine.

``make test`` runs them alone; the machine may still have other work, so a verdict may honestly be inconclusive. What
must hold regardless is checked apart.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.process import sandbox
from tests.product.hpn import Hpn

pytestmark = pytest.mark.alone
PASS, INCONCLUSIVE = 0, 4


@pytest.fixture
def hpn(tmp_path: Path) -> Hpn:
    try:
        sandbox.spawn(lambda: 0).wait()
    except MachineError as error:
        pytest.skip(str(error))
    return Hpn(tmp_path)


def _drill(hpn: Hpn, name: str) -> dict[str, Any]:
    """The verdict of a drill that passed; on a starved machine after three tries the test is skipped, not failed.

    With a quarter of the traffic, as the machine may be a slow one.
    """
    process = hpn.start("drill", "run", name, "--slow", "4", "--tries", "3", "--out", "out", "--junit", "junit.xml")
    out, err = process.communicate(timeout=150)
    assert process.returncode in (PASS, INCONCLUSIVE), f"{out}\n{err}"
    if process.returncode == INCONCLUSIVE:
        pytest.skip(f"the machine is too busy to judge a drill: {out[out.find('INCONCLUSIVE') :][:400]}")
    assert name in (hpn.state / "out" / name / "report.html").read_text()
    return dict(json.loads((hpn.state / "out" / name / "verdict.json").read_text()))


def _check(verdict: dict[str, Any], words: str) -> dict[str, Any]:
    return next(check for check in verdict["checks"] if words in check["text"])


def test_link_down_moves_the_queue_pairs_and_leaves_everything_as_it_was(hpn: Hpn) -> None:
    verdict = _drill(hpn, "link-down")
    assert _check(verdict, "queue pair deaths")["outcome"] == "pass"
    assert _check(verdict, "state restored")["outcome"] == "pass"
    events = [json.loads(line) for line in (hpn.state / "out/link-down/events.jsonl").read_text().splitlines()]
    assert [e["at_ns"] for e in events] == sorted(e["at_ns"] for e in events)
    assert any(e["kind"] == "path" and e["what"] == "moved" for e in events)
    report = JUnitXml.fromfile(str(hpn.state / "junit.xml"))
    assert report.tests == 1 + len(verdict["checks"]), "and whether it can be trusted"


def test_without_path_control_receivers_stall_until_the_repair(hpn: Hpn) -> None:
    verdict = _drill(hpn, "link-down-no-path-control")
    assert _check(verdict, "worst outage of receiver flows at failure")["measured"] > 1900, (
        "the gap of the isolated plane must show"
    )


def test_single_tor_loses_the_queue_pairs_that_dual_tor_keeps(hpn: Hpn) -> None:
    verdict = _drill(hpn, "link-down-single-tor")
    assert _check(verdict, "queue pair deaths")["measured"] == 8


def test_ctrl_c_ends_a_drill_and_its_lab(hpn: Hpn) -> None:
    process = hpn.start("drill", "run", "link-down", "--out", "out")
    assert process.stdout is not None
    for line in process.stdout:
        if "failure of" in line:
            break
    children = _descendants(process.pid)
    assert children
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err, err
    assert [pid for pid in children if os.path.exists(f"/proc/{pid}")] == []


def _descendants(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *_descendants(int(child))]
    return found
