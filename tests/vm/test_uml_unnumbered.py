"""BGP unnumbered and FRR's BFD in virtual time: a fabric by its own files loses a ToR, and a link that drops all."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run import folder
from hpn.results.run.folder import RunFolder
from hpn.testbed.kernel.process import programs
from tests.fabric.own_network import edit
from tests.fabric.unnumbered_network import write
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.long, pytest.mark.timeout(1000)]
_PATIENCE_S = 900
"""28 daemons take minutes where two cores have other work."""
_DRILL = """
drill: unnumbered
summary: {fault} of {target}
topology: unnumbered.yaml
workload: {{queue_pairs: 4, load: 2 %}}
timeline:
  healthy: 1 s
  faults:
    - {{id: it, fault: {fault}, target: '{target}', at: 1 s, for: {for_s} s}}
  settle: {settle_s} s
expect: [{expected}state_restored: yes]
"""


def _run(tmp_path: Path, **values: object) -> RunFolder:
    skip_without_virtual_time()
    if programs.find("bfdd") is None:
        pytest.skip("FRR's bfdd is not installed: apt install frr")
    (tmp_path / "d.yaml").write_text(_DRILL.format(**values))
    process = Hpn(tmp_path).start("drill", "run", "./d.yaml", "--engine", "uml-virtual-time", "--out", "out")
    said = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 0, said
    return folder.load(tmp_path / "out" / "unnumbered")


def test_a_tor_dies_and_returns(tmp_path: Path) -> None:
    write(tmp_path)
    edit(tmp_path, "leaf3", "defaults datacenter", "defaults traditional")  # which logs no session by itself
    run = _run(
        tmp_path,
        fault="tor-crash",
        target="leaf1",
        for_s=2,
        settle_s=9,
        expected="worst_outage: {flows: hit, edge: failure, below: 200 ms}, ",
    )
    events = {(event.kind, event.node, event.subject, event.what) for event in run.events()}
    for kind, down, up in (("bgp", "down", "established"), ("bfd", "down", "up")):
        assert {(kind, "spine1", "swp1", down), (kind, "spine1", "swp1", up), (kind, "leaf1", "swp52", up)} <= events


@pytest.mark.parametrize(
    ("bfd", "for_s", "found_s"),
    [
        pytest.param(True, 2, (0.15, 0.4), marks=pytest.mark.slow),  # three intervals of 100 ms, less jitter
        (False, 5, (1.9, 3.1)),  # the hold time, 3 s after the last keepalive
    ],
)
def test_a_link_that_drops_everything_is_found_by_bfd_or_by_the_hold_timer(
    tmp_path: Path, bfd: bool, for_s: int, found_s: tuple[float, float]
) -> None:
    write(tmp_path, bfd=bfd)
    run = _run(tmp_path, fault="silent-drop", target="leaf1:swp51", for_s=for_s, settle_s=7, expected="")
    events = list(run.events())
    injected = next(event.at_ns for event in events if event.kind == "fault" and event.what == "injected")
    down = next(e.at_ns for e in events if e.kind == "bgp" and e.what == "down" and e.at_ns > injected)
    assert found_s[0] < (down - injected) / 1e9 < found_s[1]
    assert any(event.kind == "bfd" for event in events) == bfd
