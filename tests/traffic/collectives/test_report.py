"""The table of nccl-tests: its factors, its columns, its verdict on the data."""

from __future__ import annotations

import pytest

from traffic.collectives.registry import KINDS
from traffic.collectives.report import Row, table


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
    row = Row(kind, 4_000_000, 4, 250e6, 0)
    assert row.algbw_gbps == pytest.approx(0.016)
    assert row.busbw_gbps == pytest.approx(0.016 * factor)


def test_every_kind_has_a_factor_that_this_file_knows() -> None:
    assert set(KINDS) == {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv"}


def test_the_table_has_the_columns_of_nccl_tests() -> None:
    rows = [Row("all-reduce", 4_194_304, 4, 244_140_625, 0), Row("broadcast", 1, 3, 512_345, 2)]
    assert table(rows).splitlines() == [
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
        "     4194304        524288    uint64     sum      -1   244141  0.0172  0.0258       0",
        "           1             1    uint64    none       0   512.35  0.0000  0.0000       2",
        "# Out of bounds values : 2 FAILED",
        "# Avg bus bandwidth    : 0.0128859",
    ]


def test_without_wrong_data_the_table_says_ok_and_without_rows_nothing() -> None:
    assert "# Out of bounds values : 0 OK" in table([Row("all-gather", 8, 2, 1e3, 0)])
    assert len(table([]).splitlines()) == 2
