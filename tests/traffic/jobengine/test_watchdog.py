"""A job's watchdog accuses NICs that got packets before and get none any more, and no other ones."""

from __future__ import annotations

import pytest

from hpn.traffic.jobengine.watchdog import Watchdog
from tests.failover.synthetic import flow
from tests.traffic.jobengine.wires import MS

LIMIT_NS = 500 * MS
FLOWS = {0: flow(0, src="a", dst="b"), 1: flow(1, src="b", dst="c"), 2: flow(2, src="c", dst="b")}


@pytest.fixture
def watchdog() -> Watchdog:
    """One that has seen packets at b and c."""
    made = Watchdog(LIMIT_NS)
    assert not made.silent(0, {0: 5, 1: 5, 2: 0}, FLOWS)
    return made


def test_a_nic_is_silent_once_it_got_nothing_for_the_limit(watchdog: Watchdog) -> None:
    assert not watchdog.silent(LIMIT_NS - 1, {0: 5, 1: 6, 2: 0}, FLOWS)
    assert watchdog.silent(LIMIT_NS, {0: 5, 1: 7, 2: 0}, FLOWS) == "b"


def test_packets_of_any_queue_pair_keep_a_nic_alive(watchdog: Watchdog) -> None:
    assert not watchdog.silent(LIMIT_NS, {0: 5, 1: 6, 2: 1}, FLOWS)


def test_a_nic_that_never_got_a_packet_is_not_missed() -> None:
    assert not Watchdog(LIMIT_NS).silent(10 * LIMIT_NS, {0: 0, 1: 0}, FLOWS)


def test_a_report_is_about_the_nics_of_its_worker_alone(watchdog: Watchdog) -> None:
    assert watchdog.silent(LIMIT_NS, {1: 5}, FLOWS) == "c"


def test_a_new_life_is_waited_for_as_long_as_the_first(watchdog: Watchdog) -> None:
    watchdog.begin(10 * LIMIT_NS)
    assert not watchdog.silent(11 * LIMIT_NS - 1, {0: 5, 1: 5, 2: 0}, FLOWS)
    assert watchdog.silent(11 * LIMIT_NS, {0: 5, 1: 5, 2: 0}, FLOWS) == "b, c"


def test_of_many_the_first_are_named() -> None:
    flows = {number: flow(number, src="a", dst=f"n{number}") for number in range(9)}
    made, received = Watchdog(LIMIT_NS), dict.fromkeys(flows, 1)
    assert not made.silent(0, received, flows)
    assert made.silent(LIMIT_NS, received, flows) == "n0, n1, n2, n3 and 5 more"
