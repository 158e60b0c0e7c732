"""PFC while a ToR crashes, in virtual time, and the same network without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run import folder
from hpn.scenarios.drill.catalogue import find
from tests.product.hpn import Hpn
from tests.vm.twice import twice

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

SWITCH = ", switch: {buffer: 2 MB}"
OFFERED, ROOM = 240, 200  # Mbit/s of the port that is left


@pytest.mark.slow
def test_pfc_holds_back_what_a_crash_moves_to_the_other_plane_and_without_it_the_port_drops(tmp_path: Path) -> None:
    lossless = twice(tmp_path, "tor-crash-pfc")
    assert sum(flow.lost for flow in lossless.metrics().flows) == 0
    text = find("tor-crash-pfc").read_text()
    assert SWITCH in text
    kept = [line for line in text.splitlines() if not any(word in line for word in ("_drops:", "pause_time:"))]
    (tmp_path / "drill.yaml").write_text("\n".join(kept).replace(SWITCH, ""))
    Hpn(tmp_path).run("drill", "run", "./drill.yaml", "--engine", "uml-virtual-time", "--out", "lossy", code=None)
    lossy = folder.load(tmp_path / "lossy" / "tor-crash-pfc").metrics()
    edge = next(edge for edge in lossy.edges if edge.edge.index == 0)
    hit = [flow for flow in lossy.flows if flow.name.endswith(("r0#0", "r0#1", "r0#2", "r0#3"))]
    sent_bps = edge.goodput.before_bps / 2
    assert sum(flow.lost for flow in hit) > 0
    kept_bps = edge.goodput.during_bps - sent_bps  # rail 1 has the other half
    assert kept_bps / sent_bps == pytest.approx(ROOM / OFFERED, abs=0.05)
