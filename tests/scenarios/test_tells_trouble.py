"""What a run saw beside its packets reaches the verdict: something left behind, packets that the machine dropped.

               plane 0        plane 1
host 0 ==x==== ToR 0 -- Agg -- ToR 0 ==== host 1      x is cut and repaired; a route is left on the Agg
"""

from __future__ import annotations

import subprocess
import time
from itertools import count
from pathlib import Path

import pytest

from hpn.failover.inject.injector import Injector
from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.run import session
from hpn.scenarios.run.guard import Guard
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.events import EventKind
from hpn.testbed.files.document import parse

pytestmark = pytest.mark.kernel

_DRILL = """
drill: troubled
summary: a link is cut and repaired
topology: {segments: 2, hosts: 2, rails: 1, aggs: 1, scale: 10000}
workload: {pattern: permutation, queue_pairs: 4, load: 10 %, tick: 10 ms}
profile: quick
timeline:
  healthy: 500 ms
  faults:
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 500 ms, for: 600 ms}
  settle: 1500 ms
expect:
  - state_restored: yes
"""


def _run(out: Path) -> RunFolder:
    drill = drill_from(parse(_DRILL, "troubled.yaml"), Path())
    return session.run(Order(drill, out, ()), lambda _news: None)


def test_a_route_left_behind_and_packets_dropped_by_the_machine_are_in_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heal, backlog = Injector.heal, count(1000, 11)

    async def heal_and_leave_a_route(self: Injector) -> None:
        await heal(self)
        subprocess.run(["ip", "-n", "p0.a0.0", "route", "add", "blackhole", "198.51.100.0/24"], check=True)

    monkeypatch.setattr(Injector, "heal", heal_and_leave_a_route)
    monkeypatch.setattr("hpn.traffic.workers.pool.softnet_drops", lambda: next(backlog))
    run = _run(tmp_path)
    (restored,) = (check for check in run.verdict().checks if check.text == "state restored")
    assert restored.outcome is Outcome.FAIL
    assert "route 198.51.100.0/24 on p0.a0.0: was absent" in restored.evidence
    assert any("the machine itself dropped 11 packets" in reason for reason in run.verdict().reasons)
    _injections_come_before_what_they_do(run)


def _injections_come_before_what_they_do(run: RunFolder) -> None:
    carrier = {e.what: e.at_ns for e in run.events() if e.kind is EventKind.LINK and e.subject == "r0p0"}
    failure, repair = (result.edge for result in run.metrics().edges)
    assert failure.inject_before_ns <= carrier["carrier-down"]
    assert repair.inject_before_ns <= carrier["carrier-up"]


def test_what_stops_a_drill_in_its_sandbox_is_told_outside(tmp_path: Path) -> None:
    text = _DRILL.replace("load: 10 %", "load: 100 %")
    order = Order(drill_from(parse(text, "troubled.yaml"), Path()), tmp_path, ())
    with pytest.raises(InputError, match="would carry 99% of its rate in a healthy fabric"):
        session.run(order, lambda _news: None)


def test_a_task_beside_the_run_that_fails_ends_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that looks after the disk: without it, nobody would."""

    def fails(_guard: Guard) -> None:
        raise OSError(5, "Input/output error", "disk")

    monkeypatch.setattr(Guard, "look", fails)
    order = Order(drill_from(parse(_DRILL.replace("500 ms", "60 s"), "troubled.yaml"), Path()), tmp_path, ())
    begun = time.monotonic()
    with pytest.raises(MachineError, match=r"Input/output error \(disk\)"):
        session.run(order, lambda _news: None)
    assert time.monotonic() - begun < 60, "the fault was not waited for"
