"""Traffic of 2 Gbit/s through a lab: paced real packets from one host to another, loss counted from the records."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.lab import Lab
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.flows.patterns import flows_for

_WIRE_BPS = 2e9
_QUEUE_PAIRS = 4
_LEAD_NS = 200_000_000

Measured = dict[str, float]


async def carried(seconds: float) -> Measured:
    """Return wire rate in Gbit/s, packets sent and lost, longest pause of a sender in ms; one direction only."""
    fabric = build(spec())
    lab = Lab.start(fabric, lambda _event: None)
    await lab.converged()
    source = fabric.nics[0].name
    load = _WIRE_BPS / sum(link.rate_bps for link in fabric.nics[0].links)
    flows = [f for f in flows_for(fabric, "pairs", load=load, queue_pairs=_QUEUE_PAIRS) if f.src_nic == source]
    with tempfile.TemporaryDirectory() as out:
        traffic = LabTraffic(lab, flows, Path(out))
        await traffic.start()
        start_ns = now_ns() + _LEAD_NS
        traffic.engine.begin(start_ns)
        await traffic.until(start_ns + int(seconds * 1e9))
        span_s = (now_ns() - start_ns) / 1e9
        report = await traffic.finish()
        received = sum(sum(worker.received.values()) for worker in report.workers)
    sent = sum(sender.sent for sender in report.senders.values())
    gap_ns = max(sender.send_gap_max_ns for sender in report.senders.values())
    lab.close()
    return {
        "gbps": received * wire_bytes(4096) * 8 / span_s / 1e9,
        "sent": sent,
        "lost": sent - received,
        "gap_ms": gap_ns / 1e6,
    }


def spec() -> FabricSpec:
    """Return a fabric with two hosts in two segments, one Agg per plane, 2 x 2 Gbit/s per NIC."""
    return FabricSpec(name="elephants", segments=2, hosts=1, rails=1, aggs=1, scale=100)
