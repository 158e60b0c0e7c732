"""Retry timers: what is waited, how often, and how long in all."""

from __future__ import annotations

import pytest

from hpn.traffic.transport.timers import RETRY_TIMERS
from hpn.traffic.transport.work import Transport

MS = 10**6


def test_the_standards_timer_waits_the_same_each_time_for_the_first_try_and_all_retries() -> None:
    timer = RETRY_TIMERS["ib"].make(14)
    assert [timer.wait_ns(tries) for tries in (0, 1, 7)] == [67_108_864] * 3
    assert timer.retries(7) == 7
    assert timer.patience_ns(7) == 8 * 67_108_864


def test_nccl_s_defaults_kill_a_job_after_34_seconds() -> None:
    assert Transport().patience_ns == 8 * 4_294_967_296


def test_the_adaptive_timer_doubles_from_2_ms_up_to_the_ack_timeout() -> None:
    timer = RETRY_TIMERS["adaptive"].make(14)
    waits = [timer.wait_ns(tries) / MS for tries in range(8)]
    assert waits == [2, 4, 8, 16, 32, 64, 67.108864, 67.108864]


def test_the_adaptive_timer_gives_up_at_the_first_expiry_after_ack_timeout_times_retry_count() -> None:
    timer = RETRY_TIMERS["adaptive"].make(14)
    total = 67_108_864 * 7
    retries = timer.retries(7)
    assert sum(timer.wait_ns(tries) for tries in range(retries)) < total <= timer.patience_ns(7)
    assert timer.patience_ns(7) - total < timer.wait_ns(retries)


def test_the_adaptive_timer_never_waits_longer_than_a_short_ack_timeout() -> None:
    timer = RETRY_TIMERS["adaptive"].make(8)  # 1.05 ms
    assert timer.wait_ns(0) == 4096 << 8
    assert timer.patience_ns(7) == 7 * (4096 << 8)


@pytest.mark.parametrize("name", RETRY_TIMERS)
def test_slower_links_wait_longer(name: str) -> None:
    timer = RETRY_TIMERS[name].make(12)
    slow = timer.scaled(0.001)
    assert [slow.wait_ns(tries) for tries in range(12)] == [1000 * timer.wait_ns(tries) for tries in range(12)]
    assert slow.patience_ns(7) == 1000 * timer.patience_ns(7)
