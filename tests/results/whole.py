"""A run folder with every part that a run can leave, made without a lab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hpn.failover.analysis.hostload import HostMoment
from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.metrics.series import MessageSeries, StreamSeries
from hpn.failover.analysis.metrics.stamps import StampSeries
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.port_sampling import Sampled, Sampling, Series, Watched
from hpn.failover.analysis.series import Bins, SeriesFlow
from hpn.results.run.counters import QueuePairCounts, WorkerCounts, Workers
from hpn.results.run.drill import AskedDrill, AskedFault, AskedLimit, PlannedMoment
from hpn.results.run.figures import Timelines
from hpn.results.run.folder import RunFolder, create
from hpn.results.run.series import RunSeries
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.traffic.transport.telemetry import ROOM
from tests.failover.synthetic import MS, S
from tests.results.sample import EVENTS, MANIFEST, metrics, verdict

FABRIC = load_fabric("tiny")
DRILL = AskedDrill(
    name="link-down",
    summary="one link is cut",
    description="",
    source="link-down.yaml",
    profile="quick",
    healthy_ns=3 * S,
    end_ns=9 * S,
    delay_threshold_ns=100 * MS,
    faults=(
        AskedFault("cut", "link-down", "p0.s0.h0.r0.0", {"for": 2 * S}, (PlannedMoment(3 * S, "failure", 0, "cut"),)),
    ),
    expects=(AskedLimit("worst outage below 50 ms", "worst_outage", "below", 50e6, "ms", None, "failure"),),
    traffic=("permutation: 3 queue pairs",),
    workload={"load": 0.4, "seed": None},
    job={"recovery": "gbn"},
)
HOST = tuple(HostMoment(S + at * 100 * MS, 0.25, 99.5, 0.0, None if at else 1.5, 0.0, 0.0) for at in range(3))
PATHS = (
    PathAt(S, 0, "begin", 50344, 0, 0, ("p0.s0.h0.r0.0", "p0.s1.h0.r0.0")),
    PathAt(4 * S, 0, "LAG", 50344, 1, 1),
    PathAt(5 * S, 0, "LAG", 50344, None, None),
)
QUEUE_PAIRS = (QueuePairCounts(0, "a>b#0", 0, {"packets": 100, "naks": 3}), QueuePairCounts(1, "b>a#0", 1, {}, 7 * S))
WORKERS = Workers(0, (WorkerCounts(0, 0.25, {"late_ticks": 1}, {"EAGAIN": 2}),))
SPANS = (SpanTime(0, 1, "sum", "all-reduce", S, 2 * S, 0),)
DEVICES = '{"p0.s0.h0.r0": {"sent_pkts": {"before": 1, "after": null}}}'


def series() -> RunSeries:
    """Two streams and a queue pair in ten bins, and two ports that were read five times."""
    bins = Bins(S, 10 * MS, 10)
    flows = (SeriesFlow(0, "a>b#0", "a", "b", 4096), SeriesFlow(1, "c>b#0", "c", "b", 4096, replaces=0))
    sent = np.arange(20, dtype=np.uint32).reshape(2, 10)
    streams = StreamSeries(bins, flows, sent, sent // 2, sent * 100)
    messages = MessageSeries(bins, flows[:1], np.full((1, 10), 2**40, np.uint64))
    ports = tuple(Series(Watched("t", n, f"t:{n}", f"link{n}", "tor down", None)) for n in (1, 2))
    for at in range(5):
        for port in ports:
            port.append(BucketReading(S + at * MS, 1, at, 0, 5, at, at, 8_000_000))
    took_us = np.arange(ROOM * 10, dtype=np.uint32).reshape(1, ROOM, 10)
    stamps = StampSeries(bins, flows[1:], took_us, took_us // 2)
    return RunSeries(streams, messages, stamps, Sampled(Sampling(MS), ports, 7))


def whole_run(path: Path) -> RunFolder:
    """All parts of it."""
    run, found = create(path), metrics()
    run.write_events(EVENTS)
    run.write_metrics(found, Timelines(SPANS, SPANS))
    run.write_fabric(FABRIC)
    run.write_drill(DRILL)
    run.write_series(series())
    run.write_host(HOST)
    run.write_paths(PATHS)
    run.write_counts(QUEUE_PAIRS, WORKERS)
    (path / "hw_counters.json").write_text(DEVICES)
    run.write_manifest(replace(MANIFEST, job={"recovery": "gbn"}, client={"run": "x"}, files=run.sizes()))
    run.write_verdict(verdict(found))
    return run
