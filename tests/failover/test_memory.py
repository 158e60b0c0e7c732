"""Analysis holds of all packets only what it must, and looks at one flow after the other."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import QUICK
from hpn.traffic.streams.columns import Column, InMemory
from tests.failover.synthetic import Records, S, edge, flow, record

FLOWS, EACH = 40, 10_000
PACKETS = FLOWS * EACH
MOST_BYTES = 60
"""For each packet: two columns at most on their way into order, and 14 bytes of it as burst and as arrival."""


@dataclass(frozen=True, eq=False)
class _OnDisk(InMemory):
    """Columns that are new whenever they are asked for, as those of files are."""

    def columns(self) -> Iterator[tuple[str, Column]]:
        for name, column in super().columns():
            yield name, column.copy()


def test_the_memory_of_analysis_is_that_of_a_few_columns_and_of_one_flow() -> None:
    specs = [flow(n) for n in range(FLOWS)]
    all_of_them = [record(spec, EACH * S // 1000, jitter_ns=S // 5000) for spec in specs]
    records = Records(np.concatenate([r.sent for r in all_of_them]), np.concatenate([r.received for r in all_of_them]))
    end_ns = S + EACH * S // 1000
    tracemalloc.start()
    metrics = analyse(
        specs, _OnDisk(records.sent), _OnDisk(records.received), (), [edge(4 * S, end_ns)], (S, 3 * S), QUICK
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(each.sent for each in metrics.flows) == PACKETS
    assert peak / PACKETS < MOST_BYTES
