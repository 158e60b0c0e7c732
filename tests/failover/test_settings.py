"""The resolution that is claimed follows what pacing allows."""

from __future__ import annotations

from hpn.failover.analysis.model import QUICK


def test_dense_packets_keep_the_claimed_resolution() -> None:
    found = QUICK.for_pacing(period_ms=0.8, tick_ms=1.0)
    assert (found.claimed_resolution_ms, found.pacing_tick_ms) == (QUICK.claimed_resolution_ms, 1.0)


def test_sparse_packets_coarsen_it() -> None:
    assert QUICK.for_pacing(period_ms=17, tick_ms=20).claimed_resolution_ms == 74
