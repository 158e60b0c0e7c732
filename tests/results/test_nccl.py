"""Collectives as nccl-tests prints them: its factors, its columns, its verdict on the data."""

from __future__ import annotations

import pytest

from hpn.failover.analysis.job import SpanResult
from hpn.results.text.nccl import json_rows, lines, rows
from hpn.traffic.collectives.registry import KINDS


def span(kind: str, size_bytes: int, ranks: int, ms: float, wrong: int = 0, times: int = 1) -> SpanResult:
    return SpanResult(kind, kind, size_bytes, ranks, times, ms, ms, ms, 0.0, 0.0, wrong)


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("all-reduce", 1.5),
        ("all-gather", 0.75),
        ("reduce-scatter", 0.75),
        ("all-to-all", 0.75),
        ("broadcast", 1),
        ("send-recv", 1),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(kind: str, factor: float) -> None:
    (row,) = rows([span(kind, 4_000_000, 4, 250)])
    assert row.algbw_gbps == pytest.approx(0.016)
    assert row.busbw_gbps == pytest.approx(0.016 * factor)


def test_every_kind_has_a_factor_that_this_file_knows() -> None:
    assert set(KINDS) == {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv"}


def test_the_lines_are_those_of_nccl_tests() -> None:
    found = rows([span("broadcast", 1, 3, 0.512345, 2), span("all-reduce", 4_194_304, 4, 244.140625)])
    assert list(lines(found)) == [
        "# all-reduce over 4 ranks; time: mean of the slowest rank's (-a 3), each repetition checked",
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
        "     4194304        524288    uint64     sum      -1   244141  0.0172  0.0258       0",
        "# broadcast over 3 ranks; time: mean of the slowest rank's (-a 3), each repetition checked",
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
        "           1             1    uint64    none       0   512.35  0.0000  0.0000       2",
        "# Out of bounds values : 2 FAILED",
        "# Avg bus bandwidth    : 0.0128859",
    ]


def test_equal_collectives_are_one_row_and_what_is_none_has_no_row() -> None:
    """Buckets of a training iteration: of one size, under several labels; the mean is that of all repetitions."""
    found = rows([span("all-reduce", 8, 2, 1, times=3), span("compute", 0, 0, 9), span("all-reduce", 8, 2, 5, wrong=1)])
    assert [(row.times, row.time_us, row.wrong) for row in found] == [(4, 2000.0, 1)]
    assert json_rows(found)[0]["redop"] == "sum"


def test_without_wrong_data_the_lines_say_ok_and_without_rows_nothing() -> None:
    assert "# Out of bounds values : 0 OK" in lines(rows([span("all-gather", 8, 2, 1)]))
    assert list(lines([])) == []
