"""A fault of the library located in virtual time; the stored records and the command say the same again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpn.results.run import folder
from tests.product.hpn import Hpn, skip_without_virtual_time

DRILL = "probes-dirty-fibre"


@pytest.mark.guest
@pytest.mark.timeout(400)
def test_probes_name_the_fibre_that_loses_one_percent(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    hpn.run("drill", "run", DRILL, "--engine", "uml-virtual-time", "--keep-records", "--out", "out")
    run = tmp_path / "out" / DRILL
    hpn.run("analyse", str(run))
    location = folder.load(run).metrics().location
    assert location is not None
    (fault,) = location.faults
    assert fault.suspect == "p0.s0.t0.0-p0.a0.1 upwards"
    assert location.unseen == 0
    told, _ = json.JSONDecoder().raw_decode(hpn.run("locate", str(run), "--json"))
    assert told["faults"][0]["stable_ns"] / 1e6 == fault.stable_ms
    assert told["load"] < 0.0105
