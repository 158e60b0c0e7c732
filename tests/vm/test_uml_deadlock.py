"""Deadlock by bounces in a whole fabric, in virtual time: what makes it, what breaks it, and networks without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.pause_cycles import deadlock
from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill.catalogue import find
from tests.docs.pages import ROOT
from tests.docs.pause_pictures import deadlock_svg
from tests.product.hpn import Hpn, skip_without_virtual_time
from tests.vm.twice import twice

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

RINGS = (
    ("p0.a0.0:s0r0t0", "p0.s0.t0.0:up1", "p0.a0.1:s1r0t0", "p0.s1.t0.0:up0"),
    ("p0.a0.0:s1r0t0", "p0.s1.t0.0:up1", "p0.a0.1:s0r0t0", "p0.s0.t0.0:up0"),
)
"""In the order of waiting; the hash says which of both stands."""
BOUNCING = ("p0.s2", "p0.s3")
PICTURES = ROOT / "docs" / "pictures"


def _buffers(run: RunFolder) -> tuple[ClassUse, ...]:
    found = run.metrics().buffers
    assert found is not None
    return tuple(found)


def _with(tmp_path: Path, old: str, new: str) -> RunFolder:
    """One run of the deadlock with one change, over a second after its repair."""
    skip_without_virtual_time()
    text = find("deadlock-bounce").read_text()
    assert old in text
    (tmp_path / "drill.yaml").write_text(text.replace(old, new).replace("settle: 3 s", "settle: 1500 ms"))
    Hpn(tmp_path).run("drill", "run", "./drill.yaml", "--engine", "uml-virtual-time", "--out", "run", code=None)
    return folder.load(tmp_path / "run" / "deadlock-bounce")


@pytest.mark.slow
def test_two_failures_make_a_ring_that_the_repair_does_not_end(tmp_path: Path) -> None:
    run = twice(tmp_path, "deadlock-bounce")
    found = deadlock(_buffers(run))
    start = next(at for at, port in enumerate(found) if port.startswith("p0.a0.0"))
    assert found[start:] + found[:start] in RINGS
    assert all(each.last_packets == 0 for each in _buffers(run) if each.priority == 3)
    assert sum(each.lost for each in _buffers(run) if each.is_switch) == 0
    assert deadlock_svg(run) == (PICTURES / "deadlock-bounce.svg").read_text(), "make pictures"


def test_a_watchdog_breaks_the_ring(tmp_path: Path) -> None:
    run = twice(tmp_path, "deadlock-bounce-watchdog")
    fired = {each.port for each in _buffers(run) if each.storms}
    assert any(fired & set(ring) for ring in RINGS)
    assert all(each.is_switch for each in _buffers(run) if each.storms)


@pytest.mark.slow
def test_without_valleys_the_bouncing_flows_have_no_path_and_the_others_notice_nothing(tmp_path: Path) -> None:
    run = _with(tmp_path, "asn: per-switch", "asn: per-tier")
    assert deadlock(_buffers(run)) == ()
    for flow in run.metrics().flows:
        lost = flow.edges[0].lost
        assert (lost > 1000) == flow.src_nic.startswith(BOUNCING), flow.name
        assert flow.src_nic.startswith(BOUNCING) or lost == 0, flow.name


def test_without_pfc_the_same_bounces_lose_packets_and_go_on(tmp_path: Path) -> None:
    classes = "switch: {buffer: 2 MB, classes: [{priority: 3, dscp: [3], weight: 15, alpha: 0.125}]}"
    run = _with(tmp_path, "switch: {buffer: 2 MB}", classes)
    assert deadlock(_buffers(run)) == ()
    assert sum(each.drops for each in _buffers(run) if each.is_switch) > 1000
    failure = next(edge for edge in run.metrics().edges if edge.edge.index == 0)
    assert failure.goodput.during_bps > 0.4 * failure.goodput.before_bps
