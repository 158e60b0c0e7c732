"""A job over real sockets in a real lab: every sum is right, every byte counts once."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpn.scenarios.drill.job import JobSpec, plan_of
from hpn.scenarios.run.job_on_lab import LabJob
from hpn.testbed.errors import MachineError
from hpn.testbed.events import now_ns
from hpn.traffic.collectives.program import Send
from hpn.traffic.job.collective import CollectiveWork
from hpn.traffic.jobengine.records import MESSAGE, SPAN
from hpn.traffic.workers.messages import Progress
from tests.lab.running import running, tiny

pytestmark = pytest.mark.kernel

MS = 1_000_000


async def test_ranks_of_four_hosts_sum_what_they_have_again_and_again(tmp_path: Path) -> None:
    job = JobSpec(CollectiveWork("all-reduce", 200_001), gpus=1, ib_timeout=18)
    async with running(tiny()) as lab:
        plan = plan_of(job, lab.fabric)
        on_lab = LabJob(lab, plan, tmp_path, "disjoint")
        try:
            await on_lab.start()
            on_lab.engine.begin(start := now_ns() + 50 * MS)
            await on_lab.until(start + 1000 * MS)
            report = await on_lab.finish()
        finally:
            await on_lab.engine.close()
    spans = np.concatenate([np.fromfile(path, SPAN) for path in report.span_files])
    assert not spans["wrong"].any()
    ended = Counter(spans["rank"][spans["span"] == 0].tolist())
    assert set(ended) == {0, 1, 2, 3}
    assert min(ended.values()) >= 3
    messages = np.concatenate([np.fromfile(path, MESSAGE) for path in report.message_files])
    pairs = [pair for worker in report.workers for pair in worker.queue_pairs]
    assert sum(pair.bytes_acknowledged for pair in pairs) == int(messages["bytes"].sum())
    assert all(pair.died_at_ns is None for pair in pairs)
    assert all(worker.icrc_bad == worker.foreign == 0 for worker in report.workers)


class _Watched(LabJob):
    """A job that says when every queue pair has sent more than an iteration's messages."""

    again = False

    def _progress(self, news: Progress) -> None:
        super()._progress(news)
        sends = Counter(
            (program.rank, op.peer) for program in self._plan.programs for op in program.ops if isinstance(op, Send)
        )
        pairs = self._plan.queue_pairs
        self.again = all(news.sent.get(pair.flow.id, 0) > sends[pair.source, pair.target] for pair in pairs)


@pytest.mark.timeout(180)
async def test_odd_numbers_of_ranks_sum_odd_sizes(tmp_path: Path) -> None:
    """Each runs until all of its ranks have begun a second iteration, however long that takes."""
    async with running(tiny(hosts=4)) as lab:
        for ranks, size in ((3, 1), (5, 4095), (7, 4096), (3, 4097), (7, 4097)):
            work = CollectiveWork("all-reduce", size, pause_ns=100 * MS)
            plan = plan_of(JobSpec(work, hosts=ranks, gpus=1, ib_timeout=18), lab.fabric)
            assert len(plan.programs) == ranks
            on_lab = _Watched(lab, plan, out := tmp_path / f"{ranks}-{size}", "disjoint")
            try:
                await on_lab.start()
                on_lab.engine.begin(start := now_ns() + 50 * MS)
                while not on_lab.again and now_ns() < start + 30_000 * MS:
                    await on_lab.until(now_ns() + 50 * MS)
                report = await on_lab.finish()
            finally:
                await on_lab.engine.close()
            spans = np.concatenate([np.fromfile(path, SPAN) for path in report.span_files])
            first = spans[(spans["span"] == 0) & (spans["iteration"] == 0)]
            assert set(first["rank"].tolist()) == set(range(ranks)), out.name
            assert not spans["wrong"].any()
            messages = np.concatenate([np.fromfile(path, MESSAGE) for path in report.message_files])
            pairs = [pair for worker in report.workers for pair in worker.queue_pairs]
            assert sum(pair.bytes_acknowledged for pair in pairs) == int(messages["bytes"].sum())
            assert all(worker.icrc_bad == worker.foreign == 0 for worker in report.workers)


async def test_a_queue_pair_that_a_spare_is_taking_over_is_moved_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Path control's news may come while the workers are told where its ends are: whoever does not know it says so."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    async with running(tiny()) as lab:
        plan = plan_of(JobSpec(CollectiveWork("all-reduce", 200_001), gpus=1, ib_timeout=18), lab.fabric)
        on_lab = LabJob(lab, plan, tmp_path, "disjoint")
        engine = on_lab.engine
        try:
            await on_lab.start()
            assert len(engine.pids()) == 2
            flow = on_lab.flows[0]
            elsewhere = next(nic for nic in plan.nics if engine._place[nic] != engine._place[flow.src_nic])
            engine._flows[flow.id] = replace(flow, src_nic=elsewhere)
            with pytest.raises(MachineError, match="its end is on another host"):
                await engine.move(flow.id, 50_001)
            engine.spray({flow.id: (50_001, 50_002)})
            engine._flows[flow.id] = flow
            await engine.move(flow.id, 50_001)
            assert not engine.failed.done()
        finally:
            await engine.close()
