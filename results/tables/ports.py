"""Table of sampled ports: loads, queues, drops and marks. Pure.

Changes when a figure of a port is added.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.results.tables.table import Column, Kind, Row, RunFacts, Table

_COLUMNS = (
    Column("port", Kind.TEXT, "node:interface"),
    Column("link", Kind.TEXT, "its link"),
    Column("tier", Kind.TEXT, "whose port and which way, as 'tor down'"),
    Column("nic", Kind.TEXT, "NIC that it leads to; empty between switches"),
    Column("rate_bps", Kind.NUMBER, "rate at the end", "bit/s"),
    Column("readings", Kind.COUNT, "times that it was read"),
    Column("since_ns", Kind.COUNT, "when it was read first, CLOCK_MONOTONIC", "ns"),
    Column("load", Kind.NUMBER, "what was sent, as a share of rate_bps"),
    Column("sent_bytes", Kind.COUNT, "bytes sent between the first and the last reading", "bytes"),
    Column("sent_packets", Kind.COUNT, "packets sent between them"),
    Column("drops", Kind.COUNT, "packets dropped at the queue between them"),
    Column("marked", Kind.COUNT, "packets marked (ECN) between them; empty where nothing marks"),
    Column("queue_mean_bytes", Kind.NUMBER, "mean queue of all readings", "bytes"),
    Column("queue_p99_bytes", Kind.COUNT, "99th percentile, nearest rank", "bytes"),
    Column("queue_max_bytes", Kind.COUNT, "largest that was read", "bytes"),
    Column("queue_mean_ms", Kind.NUMBER, "the same as time to drain, at the port's rate of that moment", "ms"),
    Column("queue_p99_ms", Kind.NUMBER, "99th percentile, nearest rank", "ms"),
    Column("queue_max_ms", Kind.NUMBER, "largest that was read", "ms"),
    Column("p99_uncertainty_ms", Kind.NUMBER, "to the farther end of the 95 % interval of queue_p99_ms", "ms"),
)


def _rows(run: RunFacts) -> Iterator[Row]:
    if run.metrics is None or run.metrics.ports is None:
        return
    for port in run.metrics.ports.ports:
        yield {column.name: getattr(port, column.name) for column in _COLUMNS}


PORTS = Table("ports", "one row for each port that was sampled: load, queue, drops and marks", _COLUMNS, _rows)
