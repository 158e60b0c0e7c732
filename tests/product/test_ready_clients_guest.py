"""Programs that nobody here wrote take what the network lets them, in virtual time: each where it is installed.

PyTorch's turn is ``tests/judges/test_gloo_guest.py``.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.traffic.client.client import Site
from hpn.traffic.client.registry import CLIENTS
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.extra, pytest.mark.timeout(400)]

DRILL = """\
drill: small
summary: what a client takes while nothing fails
topology: tiny
workload: {{client: {{run: {run}, deadline: 120 s{more}}}}}
timeline: {{healthy: 2 s}}
expect:
  - job_survives: yes
{expect}"""
SUMS = "  - wrong_results: {at_most: 0}\n"
RANKS, SIZE_BYTES, PORT_BPS = 4, 4_000_000, 200e6
MTU, ETHERNET, HEADERS = 4200, 14, 52  # of a fabric link; IP and TCP with its time stamps
BOUND_MS = 2 * (RANKS - 1) / RANKS * SIZE_BYTES * 8e3 / PORT_BPS * (MTU + ETHERNET) / (MTU - HEADERS)
"""Of a ring, whichever program walks round it; a port's bucket of tokens gives some frames for nothing."""
ACKS = (HEADERS + ETHERNET) / (MTU + ETHERNET)
"""What acknowledgements add to a port that they share by the hashes with data, where each segment has its own."""
RING = (0.995 * BOUND_MS, 1.01 * (1 + ACKS) * BOUND_MS)


@pytest.mark.parametrize(
    ("run", "more", "expect", "low_ms", "high_ms"),
    [
        ("iperf3", ", protocol: udp, rate: 20M", "", 100.0, 150.0),  # sums nothing; its ranks begin one after the other
        ("mpi", "", SUMS, *RING),
    ],
)
def test_a_client_takes_what_the_network_lets_it(
    run: str, more: str, expect: str, low_ms: float, high_ms: float, tmp_path: Path
) -> None:
    skip_without_virtual_time()
    client = CLIENTS[run].model_validate({"run": run})
    if missing := client.missing(Site(tmp_path, sys.executable)):
        pytest.skip(missing)
    (tmp_path / "small.yaml").write_text(DRILL.format(run=run, more=more, expect=expect))
    Hpn(tmp_path).run("drill", "run", "small.yaml", "--engine", "uml", "--virtual-time", "--out", "run")
    job = load(tmp_path / "run" / "small").metrics().job
    assert job is not None
    assert (job.wrong, job.deaths) == (0, ())
    assert len(job.iterations) >= 5
    assert low_ms <= statistics.median(each.ms for each in job.iterations) <= high_ms
