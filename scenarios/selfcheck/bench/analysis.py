"""Memory of a run's analysis: records of constant-rate streams are generated, not sent. Imports numpy."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hpn.failover.analysis.edges import hit_links, with_windows
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import QUICK, Edge, EdgeKind
from hpn.results.text.figure import Figure
from hpn.scenarios.drill.catalogue import load
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.selfcheck.bench.elephants import Measured
from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.columns import InFiles, Records
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.streams.records import RECEIVED, SENT

_FLOWS, _RATE_PPS, _SECONDS = 64, 1000.0, 24
_PACKETS = 6_000_000  # in the run that the figure is for
_GOAL_MB = 500
_S, _MS = 10**9, 10**6
_DARK_NS = (10 * _S, 10 * _S + 50 * _MS)
"""Interval in which the first flow's packets are lost."""


def figures(found: Measured) -> Iterator[Figure]:
    """Yield the figure of ``judged``; the extra memory grows with the number of packets."""
    each = (found["peak_bytes"] - found["before_bytes"]) / found["packets"]
    megabytes = (found["before_bytes"] + each * _PACKETS) / 1e6
    note = f"{found['before_bytes'] / 1e6:.0f} MB and {each:.0f} B a packet, by {found['packets'] / 1e6:.1f} M of them"
    yield Figure(f"memory of analysis, {_PACKETS // 10**6} M packets", megabytes, "MB", _GOAL_MB, note=note)


def judged() -> Measured:
    """Return the peak resident size of this process before and after analysis in bytes.

    Run it in a separate process.
    """
    fabric = build(load("link-down").topology)
    flows = _flows(fabric)
    hit = hit_links(fabric, [fabric.nic_by_name[flows[0].src_nic].links[0].name])
    edges = with_windows([Edge("cut", EdgeKind.FAILURE, 0, _DARK_NS[0], _DARK_NS[0] + _MS, 0, hit)], _SECONDS * _S)
    with tempfile.TemporaryDirectory() as out:
        paths = Path(out) / "sent.bin", Path(out) / "received.bin"
        _write(flows, *paths)
        sent, received = InFiles(paths[:1], SENT), InFiles(paths[1:], RECEIVED)
        before = _peak_bytes()
        metrics = analyse(flows, sent, received, (), edges, (_S, _DARK_NS[0]), QUICK)
        peak = _peak_bytes()
    if not metrics.flows[0].lost or metrics.flows[1].lost:
        raise MachineError("the bench's own records were judged wrongly; please report it")
    return {"before_bytes": before, "peak_bytes": peak, "packets": float(sum(flow.sent for flow in metrics.flows))}


def _flows(fabric: Fabric) -> Sequence[FlowSpec]:
    found = flows_of(load("link-down").workload, fabric)
    return [
        replace(found[at % len(found)], id=at, name=f"flow{at}", rate_pps=_RATE_PPS, replaces=None)
        for at in range(_FLOWS)
    ]


def _write(flows: Sequence[FlowSpec], sent: Path, received: Path) -> None:
    """Write records as a worker does: each period a burst of one packet of every flow, and the arrivals."""
    bursts, packets = RecordFile(sent, SENT), RecordFile(received, RECEIVED)
    for seq in range(int(_SECONDS * _RATE_PPS)):
        left, came = _period(flows, seq)
        bursts.append(left)
        packets.append(came)
    bursts.close()
    packets.close()


def _period(flows: Sequence[FlowSpec], seq: int) -> tuple[Records, Records]:
    left, came = np.zeros(len(flows), SENT), np.zeros(len(flows), RECEIVED)
    at_ns = _S // 2 + round(seq * 1e9 / _RATE_PPS) + np.arange(len(flows)) * 1000
    left["count"] = 1
    for made in (left, came):
        made["flow"], made["seq"], made["sent_ns"] = range(len(flows)), seq, at_ns
    came["received_ns"] = at_ns + _MS // 10
    dark = (came["flow"] == 0) & (at_ns >= _DARK_NS[0]) & (at_ns < _DARK_NS[1])
    return left, came[~dark]


def _peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
