"""Series of what switches wrote into probes."""

from __future__ import annotations

import numpy as np

from hpn.failover.analysis.metrics.stamps import stamp_series
from hpn.failover.analysis.series import bins_of
from hpn.traffic.jobengine.records import STAMP
from tests.failover.synthetic import MS, S, flow


def test_the_longest_of_a_bin_counts_by_queue_pair_and_hop() -> None:
    told = [
        (0, 0, 1_500, 10_000, S),
        (0, 0, 900, 30_001, S + MS),
        (0, 1, 0, 0, S + MS),
        (1, 2, 7_000, 0, S + 29 * MS),
        (1, 0, 1, 1, S - 1),
        (1, 0, 1, 1, S + 30 * MS),
    ]
    found = stamp_series(np.array(told, STAMP), [flow(0), flow(1)], bins_of(S, S + 30 * MS))
    assert found.took_us[0, 0].tolist() == [2, 0, 0]
    assert found.wait_us[0, 0].tolist() == [31, 0, 0]
    assert found.took_us[0, 1].tolist() == [1, 0, 0], "there was one, though it took no time"
    assert found.took_us[1, 2].tolist() == [0, 0, 7]
    assert found.took_us[1, 0].tolist() == [0, 0, 0], "before and after"
