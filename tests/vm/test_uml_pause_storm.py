"""Pause storms in virtual time: who stands still and how long, by arithmetic; other faults keep the buffers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.failover.analysis.model import EdgeKind
from hpn.results.judge.verdict import Outcome
from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from tests.docs.pages import ROOT
from tests.docs.pause_pictures import pauses_svg
from tests.product.hpn import Hpn, skip_without_virtual_time
from tests.vm.twice import twice

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]

STUCK, FULL_MS, DETECT_MS, STORM_MS = "p0.s0.h0.r0", 20, 200, 2000
XOFF_MS = 32767 * 512 / 200e6 * 1e3  # a NIC port has 200 Mbit/s
SHARES_A_LINK, SHARES_A_HOST = "p0.s1.h1.r0>p0.s0.h1.r0#3", "p0.s1.h1.r0>p0.s0.h1.r0#1"

FAULTS = """\
drill: lossless-faults
summary: a storm on lossless switches while other things break
topology: {preset: tiny, switch: {buffer: 2 MB}}
workload: {pattern: permutation, queue_pairs: 4, load: 40 %, ib_timeout: 20}
profile: quick
timeline:
  healthy: 1 s
  faults:
    - {id: storm, fault: pause-storm, target: p0.s0.h0.r0, at: 1 s, for: 2500 ms}
    - {id: other, fault: pause-storm, target: p0.s0.h0.r0.0, at: 1200 ms, for: 4 s, priority: 4}
    - {id: lanes, fault: rate-drop, target: p0.s0.h0.r0.1, at: 1500 ms, for: 3 s, rate: 50 %}
    - {id: flap, fault: link-flap, target: p0.s0.h0.r0.0, at: 2 s, period: 400 ms, duty: 50 %, count: 3}
    - {id: nic, fault: nic-down, target: p0.s1.h1.r1, at: 2 s, for: 1 s}
    - {id: tor, fault: tor-crash, target: p0.s0.t0.1, at: 4 s, for: 2 s}
    - {id: agg, fault: agg-crash, target: p0.a0.1, at: 3 s, for: 1 s}
  settle: 8 s
expect:
  - queue_pair_deaths: {at_most: 0}
  - state_restored: yes
"""


def _stood_still_ms(run: RunFolder) -> dict[str, float]:
    """The flows that the storm stopped, with the time without a packet."""
    stood = {}
    for flow in run.metrics().flows:
        at = flow.edges[0]
        if at.impairment.receive_gap_ms > 2:
            stood[flow.name] = at.impairment.receive_gap_ms
    return stood


@pytest.mark.slow
def test_a_stuck_nic_stops_who_shares_a_link_and_then_who_shares_a_host(tmp_path: Path) -> None:
    run = twice(tmp_path, "pause-storm")
    stood = _stood_still_ms(run)
    hit = {name for name in stood if f">{STUCK}#" in name}
    assert stood.keys() - hit == {SHARES_A_LINK, SHARES_A_HOST}
    assert [stood[name] for name in hit] == [pytest.approx(STORM_MS, abs=2)] * 4
    assert stood[SHARES_A_LINK] == pytest.approx(STORM_MS - FULL_MS + 8, abs=3)
    assert STORM_MS - 100 < stood[SHARES_A_HOST] < stood[SHARES_A_LINK]
    assert sum(flow.lost for flow in run.metrics().flows) == 0
    assert pauses_svg(run) == (ROOT / "docs" / "pictures" / "pause-storm.svg").read_text(), "make pictures"


def test_a_watchdog_gives_up_the_stuck_nic_and_frees_all_others(tmp_path: Path) -> None:
    run = twice(tmp_path, "pause-storm-watchdog")
    stood = _stood_still_ms(run)
    assert stood[SHARES_A_LINK] == pytest.approx(DETECT_MS - FULL_MS, abs=3)
    assert stood[SHARES_A_HOST] < stood[SHARES_A_LINK]
    lost = {flow.name: flow.lost for flow in run.metrics().flows if flow.lost}
    assert lost.keys() == stood.keys() - {SHARES_A_LINK, SHARES_A_HOST}
    last_xoff_ms = STORM_MS // XOFF_MS * XOFF_MS
    for name in lost:
        assert stood[name] == pytest.approx(last_xoff_ms + DETECT_MS, abs=2)


@pytest.mark.slow
def test_storms_lower_rates_flaps_and_crashes_together_leave_lossless_switches_as_they_were(tmp_path: Path) -> None:
    skip_without_virtual_time()
    (tmp_path / "drill.yaml").write_text(FAULTS)
    Hpn(tmp_path).run("drill", "run", "./drill.yaml", "--engine", "uml-virtual-time", "--out", "run", code=None)
    run = folder.load(tmp_path / "run" / "lossless-faults")
    outcomes = {check.text: check.outcome for check in run.verdict().checks}
    assert outcomes["state restored"] is Outcome.PASS
    assert outcomes["queue pair deaths at most 0"] is Outcome.PASS
    assert sum(edge.edge.kind is EdgeKind.FAILURE for edge in run.metrics().edges) == 8
