"""Starvation: told from our own work by the figures measured on two cores with and without ``stress``."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.hostload import HostLoad, OwnTime, Sample, is_starved, summarise
from hpn.failover.sampling.host import HostSampler, take_sample
from hpn.testbed.events import now_ns

QUIET = HostLoad(
    samples=100,
    span_s=10,
    cpus=2,
    idle_mean_pct=48.0,
    idle_min_1s_pct=40.0,
    steal_mean_pct=0.0,
    steal_max_1s_pct=0.0,
    psi_some_pct=2.0,
    psi_max_1s_pct=8.0,
    run_delay_mean_pct=1.0,
    run_delay_max_1s_pct=15.0,
    others_mean_pct=0.0,
    others_max_1s_pct=5.0,
    loop_lag_max_ms=6.0,
    loop_lag_p99_ms=1.0,
)


@pytest.mark.parametrize(
    ("idle", "psi", "delay", "others"),
    [
        (78.0, 3.5, 5.9, 0.0),
        (48.3, 1.6, 0.5, 0.0),
        (13.8, 8.3, 5.0, 5.0),
        (3.2, 1.1, 0.5, 0.6),
        (36.0, 1.1, 1.9, 42.7),
        (88.0, 1.0, 33.0, 0.0),
        (51.5, 3.7, 26.7, 0.0),
    ],
    ids=[
        "senders 20 %",
        "senders 50 %",
        "senders 80 %",
        "senders 95 %",
        "senders 20 %, stress -c 1: a core is left",
        "one CPU, all woken by one tick",
        "emulated QEMU: half idle, and PSI knows of no queue",
    ],
)
def test_our_own_work_is_not_starvation(idle: float, psi: float, delay: float, others: float) -> None:
    load = replace(QUIET, idle_mean_pct=idle, psi_some_pct=psi, run_delay_mean_pct=delay, others_mean_pct=others)
    assert is_starved(load) is None


@pytest.mark.parametrize(
    ("idle", "psi", "delay", "others"),
    [(2.4, 27.8, 17.7, 76.0), (0.0, 99.4, 50.1, 50.0), (0.0, 99.9, 50.1, 50.0), (0.1, 48.9, 48.8, 49.5)],
    ids=["senders 20 %", "senders 50 %", "senders 80 %", "senders 50 %, stress -c 1"],
)
def test_stress_of_all_cores_is_starvation(idle: float, psi: float, delay: float, others: float) -> None:
    load = replace(QUIET, idle_mean_pct=idle, psi_some_pct=psi, run_delay_mean_pct=delay, others_mean_pct=others)
    assert is_starved(load) is not None


def test_the_reason_names_figure_and_limit() -> None:
    assert is_starved(replace(QUIET, steal_mean_pct=12.0)) == ("the hypervisor took 12 % of the CPUs away (limit 5 %)")
    assert is_starved(replace(QUIET, loop_lag_max_ms=900.0)) == "the event loop stood still for 900 ms (limit 500 ms)"
    assert is_starved(replace(QUIET, run_delay_mean_pct=50.0, psi_some_pct=60.0)) == (
        "our processes waited for a CPU 50 % of the time they could have run (limit 25 %)"
    )
    assert is_starved(replace(QUIET, run_delay_mean_pct=50.0, psi_some_pct=None)) is not None
    untold = replace(QUIET, run_delay_mean_pct=None, others_mean_pct=None, idle_mean_pct=0.0, psi_some_pct=99.0)
    assert is_starved(untold) == "the machine was full and tasks waited for a CPU 99 % of the time"


def sample(at_s: float, idle: int, own_run_s: float, own_delay_s: float, psi_s: float | None = None) -> Sample:
    psi_us = None if psi_s is None else int(psi_s * 1e6)
    own = {7: OwnTime(int(own_run_s * 1e9), int(own_delay_s * 1e9))}
    return Sample(int(at_s * 1e9), 0, idle, 0, int(at_s * 200), psi_us, own)


def test_the_summary_tells_own_work_from_that_of_others() -> None:
    load = summarise([sample(0, 0, 0, 0, 0), sample(1, 100, 0.6, 0.2, 0.1), sample(2, 100, 1.2, 1.8, 1.1)], cpus=2)
    assert load is not None
    assert (load.idle_mean_pct, load.idle_min_1s_pct) == (25, 0)
    assert load.others_mean_pct == pytest.approx(100 - 25 - 30)
    assert load.run_delay_mean_pct == pytest.approx(60)
    assert load.run_delay_max_1s_pct == pytest.approx(100 * 1.6 / 2.2)
    assert load.psi_some_pct == pytest.approx(55)
    assert load.psi_max_1s_pct == pytest.approx(100)
    assert load.others_max_1s_pct == pytest.approx(100 - 30), "in the second second nothing was idle"


def test_the_worst_lag_and_the_worst_second_of_a_hypervisor_are_kept() -> None:
    lags_ms, taken = (0, 900, 2, 1), (0, 0, 80, 80)
    samples = [
        replace(sample(at, 50 * at, 0, 0), lag_ns=lag * 10**6, steal_ticks=steal)
        for at, (lag, steal) in enumerate(zip(lags_ms, taken, strict=True))
    ]
    load = summarise(samples, cpus=2)
    assert load is not None
    assert (load.loop_lag_max_ms, load.loop_lag_p99_ms) == (900, 2)
    assert load.steal_mean_pct == pytest.approx(100 * 80 / 600)
    assert load.steal_max_1s_pct == pytest.approx(40)


def test_what_the_hypervisor_took_is_nobody_s_work() -> None:
    taken = [replace(sample(at, 100 * at, 0.3 * at, 0), steal_ticks=20 * at) for at in (0, 1)]
    load = summarise(taken, cpus=2)
    assert load is not None
    assert load.steal_mean_pct == pytest.approx(10)
    assert load.others_mean_pct == pytest.approx(100 - 50 - 10 - 15)


def test_one_sample_says_nothing_and_a_kernel_without_the_files_says_none() -> None:
    assert summarise([sample(0, 0, 0, 0)], cpus=2) is None
    bare = [replace(sample(at, 10 * at, 0, 0), own={}) for at in (0, 1)]
    load = summarise(bare, cpus=2)
    assert load is not None
    assert (load.psi_some_pct, load.run_delay_mean_pct, load.others_mean_pct) == (None, None, None)


def test_a_sample_reads_what_the_kernel_writes(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  100 2 30 400 6 1 7 5 9 9\ncpu0 1 2 3 4\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text(
        "some avg10=0.88 avg60=1.81 avg300=0.65 total=7423513\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    )
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "schedstat").write_text("73130 11 1\n")
    found = take_sample(tmp_path, [42, 43], at_ns=5, lag_ns=6)
    assert found == Sample(5, 6, 406, 5, 551, 7423513, {42: OwnTime(73130, 11)})


def test_without_psi_and_schedstat_a_sample_still_stands(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  100 2 30 400\n")
    assert take_sample(tmp_path, [42], 5, 6) == Sample(5, 6, 400, 0, 532, None, {})


async def test_a_loop_that_stands_still_is_a_late_sample() -> None:
    sampler = HostSampler(lambda: [os.getpid()], interval_s=0.005)
    sampler.start()
    await asyncio.sleep(0.02)
    time.sleep(0.08)  # what must never happen in the supervisor
    await asyncio.sleep(0.02)
    sampler.stop()
    load = sampler.load()
    assert load is not None
    assert load.loop_lag_max_ms >= 70


async def test_the_sampler_follows_the_run_of_this_machine() -> None:
    sampler = HostSampler(lambda: [os.getpid()], interval_s=0.005)
    start_ns = now_ns()
    sampler.start()
    await asyncio.sleep(0.1)
    sampler.stop()
    load = sampler.load()
    await asyncio.sleep(0.02)
    assert sampler.load() == load  # stopped is stopped
    assert load is not None
    assert load.samples >= 2
    assert sampler.load(0, start_ns - 1) is None
