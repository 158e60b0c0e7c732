"""What a running drill says of its queue pairs."""

from __future__ import annotations

import pytest

from hpn.scenarios.run.queue_pairs_on_lab import plane_named


@pytest.mark.parametrize(
    ("port", "planes", "named"),
    [
        (1, 2, "plane 1"),
        (3, 2, "plane 1"),
        (7, 8, "plane 7"),
        (0, 1, "port 0"),
        (None, 1, "no port"),
        (None, 2, "no port"),
    ],
)
def test_goodput_of_a_nic_without_a_port_is_told_as_that(port: int | None, planes: int, named: str) -> None:
    assert plane_named(port, planes) == named
