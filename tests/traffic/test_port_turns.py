"""Ports of bound queue pairs: taken in turn as a library makes them, and kept whatever source ports are chosen."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hpn.scenarios.model.router import Lag, ModelRouter
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec, NicSpec
from hpn.traffic.flows.flow import FlowSpec, answering
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.flows.patterns import NewFlows, flows_for
from hpn.traffic.flows.port_turns import turns_of
from hpn.traffic.fluid.forwarding import Forwarding

BOUND = NicSpec(port_selection="queue-affinity")


def _fabric(preset: str = "tiny", **changes: object) -> Fabric:
    return build(FabricSpec.model_validate(PRESETS[preset].spec.model_dump() | {"nic": BOUND} | changes))


def _every_pair(fabric: Fabric, queue_pairs: int) -> list[FlowSpec]:
    """All NICs of rail 0 send to each other, connection by connection."""
    nics = [nic for nic in fabric.nics if nic.rail == 0]
    made = NewFlows(4096, 14, 7, turns_of(fabric, queue_pairs))
    return [made.between(a, b, k, 1.0) for a in nics for b in nics if a != b for k in range(queue_pairs)]


def test_with_one_queue_pair_a_connection_a_nic_sends_by_one_port_with_two_by_both() -> None:
    fabric = _fabric()
    for queue_pairs, ports in ((1, 1), (2, 2), (4, 2)):
        flows = _every_pair(fabric, queue_pairs)
        used = {nic.name: {flow.port for flow in flows if flow.src_nic == nic.name} for nic in fabric.nics}
        answered = {nic.name: {flow.ack_port for flow in flows if flow.dst_nic == nic.name} for nic in fabric.nics}
        for nic in (nic.name for nic in fabric.nics if nic.rail == 0):
            assert len(used[nic]) == len(answered[nic]) == ports
            if queue_pairs == 1:
                assert used[nic] != answered[nic], "acknowledgements leave by the other port"


def test_a_library_that_sets_ports_spreads_the_queue_pairs_that_send_one_a_connection_too() -> None:
    fabric = _fabric("small", nic=NicSpec(port_selection="queue-affinity", affinity="explicit"))
    flows = _every_pair(fabric, 1)
    for nic in (nic.name for nic in fabric.nics if nic.rail == 0):
        sent = Counter(flow.port for flow in flows if flow.src_nic == nic)
        answered = Counter(flow.ack_port for flow in flows if flow.dst_nic == nic)
        assert max(sent.values()) - min(sent.values()) <= 1
        assert max(answered.values()) - min(answered.values()) <= 1
        assert len(sent) == len(answered) == 2


def test_the_drivers_counter_begins_with_the_second_port_and_a_lag_that_hashes_binds_nothing() -> None:
    fabric = _fabric()
    assert [flow.ack_port for flow in flows_for(fabric, "permutation", load=0.1, queue_pairs=3)[:3]] == [1, 0, 1]
    hashed = flows_for(build(PRESETS["tiny"].spec), "permutation", load=0.1, queue_pairs=3)
    assert {(flow.port, flow.ack_port) for flow in hashed} == {(None, None)}


def test_a_flows_acknowledgements_are_bound_as_its_responder_is() -> None:
    flow = flows_for(_fabric(), "permutation", load=0.1, queue_pairs=2)[0]
    assert (answering(flow).port, answering(flow).ack_port) == (flow.ack_port, flow.port)
    assert answering(answering(flow)) == flow


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("preset", ["tiny", "small", "tiny-dcn-plus"])
def test_every_choice_of_source_ports_keeps_the_ports_and_its_paths_begin_there(choice: str, preset: str) -> None:
    fabric = _fabric(preset)
    router = ModelRouter(fabric, Lag(fabric), Forwarding(fabric))
    flows = flows_for(fabric, "permutation", load=0.2, queue_pairs=4)
    found = CHOICES[choice].choose(flows, router, (), 1).flows
    assert [(flow.port, flow.ack_port) for flow in found] == [(flow.port, flow.ack_port) for flow in flows]
    for flow in found:
        assert flow.port is not None
        first = router.links(flow.src_nic, flow.dst_nic, flow.sport, flow.port)[0]
        assert first == fabric.nic(flow.src_nic).links[flow.port].name
    taken = Counter((flow.src_nic, flow.sport) for flow in found)
    assert max(taken.values()) == (4 if choice == "drawn-once" else 1)


def test_source_ports_still_decide_between_switches() -> None:
    fabric = _fabric()
    router = ModelRouter(fabric, Lag(fabric), Forwarding(fabric))
    flow = flows_for(fabric, "permutation", load=0.1)[0]
    paths = {tuple(router.links(flow.src_nic, flow.dst_nic, sport, 0)) for sport in range(0xC000, 0xC040)}
    assert len(paths) > 1
    assert len({path[0] for path in paths}) == 1
    free = replace(flow, port=None)
    assert len({router.links(free.src_nic, free.dst_nic, sport)[0] for sport in range(0xC000, 0xC040)}) == 2
