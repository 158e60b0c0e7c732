"""A run folder as large as drills get: 512 flows over 60 s on ``medium``, with what ports did, made without a lab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hpn.failover.analysis.edge import EdgeKind
from hpn.failover.analysis.hostload import HostMoment
from hpn.failover.analysis.metrics.analyse import analyse_traces
from hpn.failover.analysis.metrics.series import stream_series
from hpn.failover.analysis.metrics.trace import build_traces
from hpn.failover.analysis.model import Settings
from hpn.failover.analysis.paths import PathAt
from hpn.failover.analysis.port_sampling import Ports, Sampled, Sampling, Series, watched
from hpn.failover.analysis.series import Bins
from hpn.results.run.folder import RunFolder, create
from hpn.results.run.series import RunSeries
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.traffic.flows.flow import FlowSpec
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record
from tests.results.sample import LOAD, MANIFEST, verdict
from tests.results.whole import DRILL, QUEUE_PAIRS, WORKERS

FLOWS, LASTS_S, FAULTS = 512, 60, 6
_RATE_PPS = 10
_READ_EVERY_MS = 50
_WIDTH_NS = 10 * MS


def large_run(path: Path) -> RunFolder:
    """All parts of it; six cuts and repairs, at each of which a quarter of the flows loses packets."""
    fabric = load_fabric("medium")
    nics = [nic.name for nic in fabric.nics]
    flows = [
        flow(number, _RATE_PPS, nics[number % len(nics)], nics[(number * 7 + 1) % len(nics)]) for number in range(FLOWS)
    ]
    traces = build_traces(flows, *_records(flows).tables, Settings(validation_s=1), None)
    kinds = (EdgeKind.FAILURE, EdgeKind.REPAIR)
    edges = [edge(*_window(at), kinds[at % 2], at // 2, "cut") for at in range(2 * FAULTS)]
    events = _events(nics)
    found = analyse_traces(traces, events, edges, (S, 4 * S), Settings(validation_s=1), LOAD)
    run = create(path)
    run.write_events(events)
    run.write_metrics(found)
    run.write_fabric(fabric)
    run.write_drill(DRILL)
    bins = Bins(S, _WIDTH_NS, LASTS_S * S // _WIDTH_NS)
    ports = watched(fabric, Ports.TOR_DOWN)
    run.write_series(RunSeries(stream_series(traces, bins), ports=_sampled([Series(port) for port in ports])))
    run.write_host([HostMoment(S + at * 100 * MS, 0.25, 50 + at % 50, 0.0, at % 7, 1.5, at % 3) for at in range(600)])
    run.write_paths(_paths(flows))
    run.write_counts(QUEUE_PAIRS, WORKERS)
    run.write_manifest(replace(MANIFEST, fabric="medium", files=run.sizes()))
    run.write_verdict(verdict(found))
    return run


def _window(at: int) -> tuple[int, int]:
    """Of an edge: a fault every nine seconds, its repair four later."""
    begin_ns = 6 * S + (at // 2) * 9 * S + (at % 2) * 4 * S
    return begin_ns, begin_ns + (4 + at % 2) * S


def _records(flows: list[FlowSpec]) -> Records:
    """A quarter of the flows is deaf for a while after each failure, each for another one."""
    made = []
    for each in flows:
        cuts = [_window(2 * at)[0] for at in range(FAULTS)] if each.id % 4 == 0 else []
        dead = [Dead(at_ns, at_ns + (10 + each.id) * 2 * MS) for at_ns in cuts]
        made.append(record(each, LASTS_S * S, dead, seed=each.id))
    return Records(np.concatenate([each.sent for each in made]), np.concatenate([each.received for each in made]))


def _events(nics: list[str]) -> list[Event]:
    found = []
    for at in range(2 * FAULTS):
        begin_ns, _ = _window(at)
        found.append(Event(begin_ns, EventKind.FAULT, "", "cut", "inject" if at % 2 == 0 else "heal"))
        found += [
            Event(begin_ns + (step + 1) * MS // 4, EventKind.LINK, nic.rpartition(".")[0], "r0.0", "carrier-down")
            for step, nic in enumerate(nics)
        ]
    return found


def _paths(flows: list[FlowSpec]) -> list[PathAt]:
    begin = [PathAt(S, each.id, "begin", each.sport, each.id % 2, each.id % 2) for each in flows]
    moved = [
        PathAt(_window(at)[0] + MS, each.id, "LAG", each.sport, at % 2, at % 2)
        for at in range(2 * FAULTS)
        for each in flows[:: at % 4 + 1]
    ]
    return begin + moved


def _sampled(ports: list[Series]) -> Sampled:
    rng = np.random.default_rng(1)
    for number, port in enumerate(ports):
        backlog = rng.integers(0, 500_000, LASTS_S * 1000 // _READ_EVERY_MS)
        for at, waits in enumerate(backlog.tolist()):
            at_ns = S + at * _READ_EVERY_MS * MS + number
            port.append(BucketReading(at_ns, 1, waits, 0, at, at * 1500, at, 200_000_000))
    return Sampled(Sampling(_READ_EVERY_MS * MS), ports, 7)
