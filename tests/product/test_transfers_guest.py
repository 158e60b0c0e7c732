"""Bursts over a cut link in virtual time: every packet is of one transfer, and one port left takes twice as long."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hpn.results.run.folder import load
from tests.product.hpn import skip_without_virtual_time
from tests.product.test_plugins import hpn


@pytest.mark.guest
def test_bursts_fill_what_a_cut_leaves_and_the_record_of_transfers_is_that_of_the_packets(tmp_path: Path) -> None:
    skip_without_virtual_time()
    drill = ("drill", "run", "link-down-bursts", "--engine", "uml", "--virtual-time", "--keep-records")
    ran = hpn(*drill, "--out", str(tmp_path), COLUMNS="200")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    folder = tmp_path / "link-down-bursts"
    rows = [json.loads(line) for line in (folder / "transfers.jsonl").read_text().splitlines()]
    metrics = load(folder).metrics()
    assert metrics.inconclusive == ()
    assert metrics.noise.noise_floor_ms < 0.1
    for flow in metrics.flows:
        own = Counter[str]()
        for row in rows:
            own.update({key: row[key] for key in ("sent", "received", "lost") if row["flow"] == flow.flow})
        assert (own["sent"], own["received"], own["lost"]) == (flow.sent, flow.received, flow.lost + flow.corrupted)
    assert {row["edge"] for row in rows if row["fate"] == "incomplete"} == {"cut failure 0"}
    hit = [flow.flow for flow in metrics.flows if flow.edges[0].relation.is_touched]
    times = [
        row["ms"] for row in rows if row["flow"] in hit and row["fate"] == "complete" and row["edge"] == "cut failure 0"
    ]
    healthy = [row["ms"] for row in rows if row["edge"] is None]
    assert max(healthy) < 21 < 35 < max(times) < 42
    again = hpn("analyse", str(folder))
    assert again.returncode == 0
    assert "transfers.jsonl" in again.stdout
    assert "byte for byte" in again.stdout
