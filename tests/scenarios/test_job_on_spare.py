"""A job moves to a spare host in a real lab, from one worker process to another, and does its sums there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hpn.scenarios.drill.job import JobSpec, plan_of
from hpn.scenarios.run import job_on_lab
from hpn.scenarios.run.job_on_lab import LabJob
from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.lab.lab import Lab
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.jobengine.records import SPAN
from tests.lab.running import Recorder

pytestmark = pytest.mark.kernel

MS = 1_000_000
LOST, SPARE = "p0.s0.h1", "p0.s0.h2"


@pytest.mark.parametrize(("ib_timeout", "watchdog_ns"), [(14, None), (20, 1000 * MS)], ids=["retries", "watchdog"])
async def test_ranks_of_a_host_that_answers_nobody_go_on_at_a_spare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ib_timeout: int, watchdog_ns: int | None
) -> None:
    monkeypatch.setattr(job_on_lab, "_WORKER_PPS", 1)  # a worker for each core
    policy = RestartPolicy(2000 * MS, spares=1, watchdog_ns=watchdog_ns)
    job = JobSpec(CollectiveWork("all-reduce", 200_001), gpus=1, ib_timeout=ib_timeout, restart=policy)
    events = Recorder()
    lab = Lab.start(build(PRESETS["tiny-spare"].spec), events.append)
    try:
        await lab.converged()
        on_lab = LabJob(lab, plan_of(job, lab.fabric), tmp_path, "disjoint")
        try:
            await on_lab.start()
            on_lab.engine.begin(start := now_ns() + 50 * MS)
            await on_lab.until(start + 500 * MS)
            ports = lab.fabric.links_of(LOST)
            lab.breakage.ports_down([(link, link.lower.node) for link in ports])
            await lab.wait_for(lambda: bool(events.after(start, EventKind.JOB, "job")), 10)
            await lab.wait_for(lambda: any(each.restarted_at_ns for each in on_lab.engine.deaths), 10)
            await on_lab.until(now_ns() + 1500 * MS)
            report = await on_lab.finish()
        finally:
            await on_lab.engine.close()
    finally:
        lab.close()
    (death,) = on_lab.engine.deaths
    assert bool(death.silent) == (watchdog_ns is not None) != bool(death.queue_pair)
    assert [(each.host, each.by, each.ranks) for each in death.replaced] == [(LOST, SPARE, (1,))]
    spans = np.concatenate([np.fromfile(path, SPAN) for path in report.span_files])
    assert not spans["wrong"].any()
    after = spans[(spans["span"] == 0) & (spans["iteration"] >= death.first)]
    ended = Counter(after["rank"].tolist())
    assert set(ended) == {0, 1, 2, 3}
    assert min(ended.values()) >= 3
    assert not any(LOST in (flow.src_nic[:8], flow.dst_nic[:8]) for flow in on_lab.flows)
    at_spare = [nic for worker in report.workers for nic in worker.nics if nic.nic.startswith(SPARE)]
    assert sum(nic.counters["rx_write_requests"] for nic in at_spare) > 0
