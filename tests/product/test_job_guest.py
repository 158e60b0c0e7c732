"""A job in virtual time: the ring takes what its bound says, and a run made again is the same to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run.folder import load
from hpn.scenarios.drill.catalogue import load as drill
from hpn.testbed.events import EventKind
from hpn.traffic.flows.framing import wire_bytes
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]

RANKS, SIZE_BYTES, PATH_MTU = 4, 4_000_000, 4096
FILES = ("events.jsonl", "metrics.json", "verdict.json")


def test_a_ring_takes_its_bound_and_outlives_a_port_byte_for_byte(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    for out in ("first", "second"):
        hpn.run("drill", "run", "link-down-allreduce", "--engine", "uml", "--virtual-time", "--out", out)
    first, second = (tmp_path / out / "link-down-allreduce" for out in ("first", "second"))
    assert {name: (first / name).read_bytes() for name in FILES} == {
        name: (second / name).read_bytes() for name in FILES
    }
    job = load(first).metrics().job
    assert job is not None
    rate_bps = drill("link-down-allreduce").topology.nic_port_rate / drill("link-down-allreduce").topology.scale
    sent = 2 * (RANKS - 1) / RANKS * SIZE_BYTES * wire_bytes(PATH_MTU) / PATH_MTU
    bound_ms = sent * 8e3 / rate_bps
    assert bound_ms <= job.mean_ms <= 1.01 * bound_ms
    assert job.packets_again > 0
    assert job.wrong == 0


def test_a_job_that_died_comes_back_from_its_last_checkpoint(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    hpn.run("drill", "run", "job-restarts", "--engine", "uml", "--virtual-time", "--out", "run")
    job = load(tmp_path / "run" / "job-restarts").metrics().job
    asked = drill("job-restarts").job
    assert job is not None
    assert asked is not None
    assert asked.restart is not None
    (death,) = job.deaths
    before = [each for each in job.iterations if each.end_ns <= death.at_ns]
    after = [each for each in job.iterations if each.end_ns > death.at_ns]
    assert death.undone == len(before) % asked.restart.checkpoint_every
    assert death.at_ns - before[-1].end_ns == pytest.approx(asked.transport.patience_ns, rel=0.2)
    assert death.restarted_at_ns == death.at_ns + asked.restart.after_ns
    assert after[0].begin_ns - death.restarted_at_ns < 2 * asked.tick_ns
    assert after[0].number > before[-1].number + 1, "that of the iteration that the death ended"
    assert after[0].ms == pytest.approx(job.mean_ms, rel=0.01)
    assert job.wrong == 0


def test_a_connection_goes_on_over_its_other_port_if_nccl_is_asked_to(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    hpn.run("drill", "run", "port-failover", "--engine", "uml", "--virtual-time", "--out", "run")
    folder = load(tmp_path / "run" / "port-failover")
    told = [event for event in folder.events() if event.kind is EventKind.JOB]
    assert {event.what for event in told} == {"failed-over"}
    assert len(told) == 2, "one to the NIC that cannot be reached, one from it"
    job = folder.metrics().job
    assert job is not None
    assert sum(of["req_transport_retries_exceeded"] for of in job.counters.values()) == 2
    assert (job.deaths, job.wrong) == ((), 0)


def test_a_standby_carries_nothing_until_the_port_before_it_fails(tmp_path: Path) -> None:
    skip_without_virtual_time()
    hpn = Hpn(tmp_path)
    hpn.run("drill", "run", "active-standby", "--engine", "uml", "--virtual-time", "--out", "run")
    folder = load(tmp_path / "run" / "active-standby")
    told = [(event.what, event.subject) for event in folder.events() if event.kind is EventKind.JOB]
    hit = {subject for _, subject in told}
    assert {what for what, _ in told} == {"failed-over", "returned"}
    assert len(told) == 2 * len(hit) == 4
    carried = {each.name: each.counters["bytes_acknowledged"] for each in folder.queue_pairs()}
    standbys = {name for name in carried if name.endswith("#1")}
    assert {name for name in standbys if carried[name]} == {name.replace("#0", "#1") for name in hit}
