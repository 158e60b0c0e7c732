"""``hpn explore`` in virtual time: a variant is its base run, to the event, until its second fault comes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]
_PATIENCE_S = 550


def test_a_second_fault_with_needs_of_its_own_moves_no_event_before_it(tmp_path: Path) -> None:
    skip_without_virtual_time()
    asked = ("explore", "link-down", "--seconds", "arp-loss,late-tor", "--most", "2", "--out", "out")
    said = Hpn(tmp_path).start(*asked).communicate(timeout=_PATIENCE_S)
    rows = json.loads((tmp_path / "out" / "answer.json").read_text())["rows"]
    assert {row["told"] for row in rows} == {"holds"}, said
    assert {"arp-loss", "late-tor"} <= {row["second"] for row in rows}
