"""A host is replaced on a running lab: its queue pairs are closed, the spare's carry packets under path control."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import MS, HostReplaced, PlannedFault
from hpn.failover.faults.moments import moments
from hpn.failover.inject.injector import Injector
from hpn.scenarios.drill.model import Workload
from hpn.scenarios.drill.spares import assigned, replacement_flows
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import differences, state
from hpn.traffic.streams.qp import RetryPolicy
from hpn.traffic.streams.records import RECEIVED, SENT
from tests.lab.running import Recorder, running, tiny

pytestmark = pytest.mark.kernel

DEAD, SPARE = "p0.s0.h0", "p0.s0.h2"
SPARE_PORT = "p0.s0.h2.r0.0"


async def test_a_spare_carries_the_packets_of_a_dead_host_and_its_queue_pairs_move_as_all_do(tmp_path: Path) -> None:
    events = Recorder()
    async with running(tiny(spare_hosts=1), events) as lab:
        before = state(lab)
        planned = [PlannedFault("power", HostReplaced(DEAD, 300 * MS), 300 * MS, 2000 * MS)]
        faults = assigned(lab.fabric, planned).faults
        flows = flows_of(Workload(queue_pairs=2, load=0.02, ib_timeout=17), lab.fabric)
        traffic = LabTraffic(lab, flows, tmp_path, later=replacement_flows(lab.fabric, faults, flows))
        old = {flow.id for flow in flows if f"{DEAD}.r" in flow.name}
        new = {flow.id: flow for flow in traffic.flows if flow.replaces is not None}
        assert {flow.replaces for flow in new.values()} == old
        assert set(traffic.absent) == set(new)
        injector = Injector(lab, traffic)
        death, takeover, power = moments(faults)
        try:
            await traffic.start()
            traffic.engine.begin(start := now_ns() + 50 * MS)
            await traffic.until(start + death.at_ns)
            dead = await injector.carry_out(death, ())
            await traffic.until(start + takeover.at_ns)
            taken = await injector.carry_out(takeover, (), traffic.planes())
            assert set(traffic.absent) == old
            await traffic.until(now_ns() + 200 * MS)
            lab.breakage.ports_down([(lab.fabric.link(SPARE_PORT), SPARE)])
            cut_ns = now_ns()
            await lab.wait_for(lambda: bool(moves_to(lab, events, cut_ns)), 10)
            lab.breakage.ports_up([(lab.fabric.link(SPARE_PORT), SPARE)])
            await injector.carry_out(power, ())
            await lab.converged(30)
            alive_ns = now_ns()
            patience_ns = RetryPolicy(17, 7).patience_ns
            await traffic.until(max(alive_ns, dead.inject_after_ns + patience_ns) + 200 * MS)
            report = await traffic.finish()
        finally:
            await traffic.engine.close()
        assert [(e.kind, e.taken_over, set(e.absent)) for e in injector.edges] == [
            (EdgeKind.FAILURE, (), set(new)),
            (EdgeKind.REPAIR, ("power",), old),
            (EdgeKind.REPAIR, (), old),
        ]
        assert {link.host for link in dead.links} == {DEAD}
        assert {link.host for link in taken.links} == {SPARE}
        assert {plane for flow, plane in taken.planes if flow in new} == {0, 1}, "their ports are taken in turn"
        sent = np.concatenate([np.fromfile(name, SENT) for name in report.sent_files])
        received = np.concatenate([np.fromfile(name, RECEIVED) for name in report.received_files])
        for flow in new.values():
            first = sent[sent["flow"] == flow.id][0]
            assert first["sent_ns"] >= taken.inject_before_ns
            assert first["sport"] == flow.sport
            arrived = received[received["flow"] == flow.id]
            assert arrived["seq"][0] == 0, "from the very first packet on"
            assert arrived["received_ns"].max() > alive_ns
        assert sent["sent_ns"][np.isin(sent["flow"], list(old))].max() <= taken.inject_after_ns
        died = {event.detail["flow"] for event in events if event.kind is EventKind.QP}
        assert not died & old, "closed is not dead"
        assert differences(before, state(lab)) == ()


def moves_to(lab: Lab, events: Recorder, since_ns: int) -> list[str]:
    """The hosts at which path control has moved queue pairs towards the spare's NIC since a moment."""
    moved = (event for event in events.after(since_ns, EventKind.PATH) if event.what == "moved")
    return [event.node for event in moved if event.detail["dst"] == lab.fabric.nic(f"{SPARE}.r0").ip]
