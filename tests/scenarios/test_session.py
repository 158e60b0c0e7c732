"""A drill seen from outside its sandbox: which signals end it, and what its run says of itself."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hpn.results.run.identity import identity_in, identity_of
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.run import session
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.stored_drill import asked_of
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse

_DRILL = """
drill: short
summary: one link is cut
topology: {segments: 1, hosts: 2, rails: 1, aggs: 1, scale: 10000}
workload: {pattern: permutation, queue_pairs: 1, load: 10 %, across_segments: no}
profile: quick
timeline:
  healthy: 500 ms
  faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 500 ms}]
  settle: 1200 ms
expect: [state_restored: yes]
"""


def test_what_nohup_ignores_does_not_end_a_drill() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with session._InterruptOnce():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.kernel
def test_a_run_says_when_it_was_made_and_of_which_experiment_it_is(tmp_path: Path) -> None:
    drill, before = drill_from(parse(_DRILL, "short.yaml"), Path()), datetime.now(UTC)
    run = session.run(Order(drill, tmp_path / "run", (), phase=3), lambda _news: None)
    manifest, fabric = run.manifest(), build(drill.topology)
    times = [datetime.fromisoformat(each) for each in (manifest.wall_begin, manifest.started_at, manifest.wall_end)]
    assert before - timedelta(milliseconds=1) <= times[0] <= times[1] < times[2]
    assert manifest.digests == identity_of(fabric, asked_of(drill, fabric)).digests, "as of the first repeat"
    assert manifest.digests == identity_in(run, replace(manifest, digests={})).digests, "and as the folder has it"


class _Asked(Exception):
    """What the checks before a run were asked for."""


@pytest.mark.parametrize(("engine", "alike"), [("host", False), ("uml-virtual-time", True)])
def test_in_virtual_time_a_drill_makes_every_probe_whatever_its_faults_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str, alike: bool
) -> None:
    def checked(*_given: object, raising: bool, alike: bool) -> None:
        raise _Asked(alike)

    monkeypatch.setattr("hpn.scenarios.run.session.refusals.check", checked)
    with pytest.raises(_Asked, match=str(alike)):
        session.run(Order(drill_from(parse(_DRILL, "short.yaml"), Path()), tmp_path, (), engine=engine), lambda _: None)
