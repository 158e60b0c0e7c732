"""A job in virtual time: the ring takes what its bound says, and a run made again is the same to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from results.run.folder import load
from scenarios.drill.catalogue import load as drill
from tests.product.hpn import Hpn, skip_without_virtual_time
from traffic.framing import wire_bytes

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]

RANKS, SIZE_BYTES, PATH_MTU = 4, 4_000_000, 4096
FILES = ("events.jsonl", "metrics.json", "verdict.json")


def test_a_ring_takes_its_bound_and_outlives_a_port_byte_for_byte(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    for out in ("first", "second"):
        hpn.run("drill", "run", "link-down-allreduce", "--engine", "uml", "--virtual-time", "--out", out)
    first, second = (tmp_path / out / "link-down-allreduce" for out in ("first", "second"))
    assert {name: (first / name).read_bytes() for name in FILES} == {
        name: (second / name).read_bytes() for name in FILES
    }
    job = load(first).metrics().job
    assert job is not None
    rate_bps = drill("link-down-allreduce").topology.nic_port_rate / drill("link-down-allreduce").topology.scale
    sent = 2 * (RANKS - 1) / RANKS * SIZE_BYTES * wire_bytes(PATH_MTU) / PATH_MTU
    bound_ms = sent * 8e3 / rate_bps
    assert bound_ms <= job.mean_ms <= 1.01 * bound_ms
    assert job.packets_again > 0
    assert job.wrong == 0
