"""The page of costs: samples by part, and a packet's share of each."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from tests.product.costs import PARTS, Sampled, page, parts_of

SCRIPT = """\
          python   100      7f5e6cb5cab0 (/usr/lib/x86_64-linux-gnu/libc.so.6)
           linux   201      4012c000 (#2185 (deleted))
           linux   201      4012c010 (#2185 (deleted))
           linux   202      4012c010 (#2185 (deleted))
           linux   200      60012345 (/root/.cache/hpn/uml/0123/linux)
           linux   200  ffffffff8110 ([kernel.kallsyms])
             git   300      7f5e6cb5cab0 (/usr/lib/x86_64-linux-gnu/libz.so.1)
[ perf record: 2 samples lost ]
"""


def test_each_sample_counts_for_one_part_and_the_busiest_program_is_the_worker() -> None:
    assert [parts_of(SCRIPT.splitlines())[part] for part in PARTS] == [2, 1, 1, 1, 2]


def test_a_packet_costs_what_the_idle_drill_does_not() -> None:
    made = MagicMock(date="2026-11-28T08:00:00", commit="28aa099a5caa0123", machine={"cpus": 2}, kernel="6.12.117")
    idle = Sampled(dict.fromkeys(PARTS, 1.0), 100, made)
    busy = Sampled(dict.fromkeys(PARTS, 1.5), 50_100, made)
    found = page(busy, idle)
    assert "2026-11-28, commit 28aa099a5caa, 2 CPUs, Linux 6.12.117." in found
    assert "50,000 packets" in found
    assert found.count("| 1.00 | 10.0 |") == len(PARTS)
    assert "| all | 5.00 | 50.0 |" in found


@pytest.mark.parametrize("line", ["", "linux 12 (nothing)"])
def test_what_is_no_sample_counts_for_nothing(line: str) -> None:
    assert parts_of([line]).total() == 0
