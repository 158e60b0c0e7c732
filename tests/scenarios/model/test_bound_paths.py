"""Computed paths of bound queue pairs on fabrics drawn at random: adapters, rebinding, source ports, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.model.answer import check
from hpn.scenarios.model.path_assignment import PathAssignment
from hpn.scenarios.model.router import Lag
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.document import parse
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.patterns import flows_for

PLANES = {"hpn": True, "dual-tor-clos": False, "stacked-dual-tor": False}


@st.composite
def fabrics(draw: st.DrawFn, architectures: tuple[str, ...] = tuple(PLANES)) -> Fabric:
    return build(
        FabricSpec.model_validate(
            {
                "architecture": draw(st.sampled_from(architectures)),
                "segments": 2,
                "hosts": draw(st.integers(1, 3)),
                "rails": draw(st.integers(1, 2)),
                "aggs": draw(st.integers(1, 4)),
                "lag": draw(st.sampled_from(["kernel", "nft"])),
                "seed": draw(st.integers(0, 99)),
                "nic": {"port_selection": "queue-affinity"},
                "path_control": {"policy": draw(st.sampled_from(["move-source-ports", "rebind", "off"]))},
            }
        )
    )


def _settled(fabric: Fabric, flows: list[FlowSpec], *downs: set[str]) -> list[list[tuple[str, bool]]]:
    """The first link of each flow's data and whether it arrives, with each set of links down in turn."""
    placing = PathAssignment(fabric, Lag(fabric), flows, known=True)
    found = []
    for down in downs:
        paths = placing.settle(down)
        firsts = [fabric.links[links[0] // 2].name for links in paths.links.tolist()]
        found.append(list(zip(firsts, paths.arrives.tolist(), strict=True)))
    return found


@given(fabric=fabrics(), queue_pairs=st.sampled_from([1, 2, 3, 4]), port=st.integers(0, 1))
@settings(max_examples=40, deadline=None)
def test_a_bound_queue_pair_leaves_by_its_port_and_by_the_other_where_only_that_can_help(
    fabric: Fabric, queue_pairs: int, port: int
) -> None:
    flows = flows_for(fabric, "permutation", load=0.1, queue_pairs=queue_pairs)
    victim = fabric.nic(flows[0].dst_nic)
    healthy, cut, repaired = _settled(fabric, flows, set(), {victim.links[port].name}, set())
    home = [f"{flow.src_nic}.{flow.port}" for flow in flows]
    assert healthy == repaired == [(first, True) for first in home]
    isolated = PLANES[fabric.spec.architecture]
    rebinds = fabric.spec.path_control.policy == "rebind"
    for flow, (first, arrives) in zip(flows, cut, strict=True):
        cut_off = flow.dst_nic == victim.name and flow.port == port and isolated
        if flow.src_nic == victim.name:
            assert (first, arrives) == (victim.links[1 - port].name, True), "the adapter's own doing"
        elif cut_off and rebinds:
            assert (first, arrives) == (f"{flow.src_nic}.{1 - port}", True)
        else:
            assert (first, arrives) == (f"{flow.src_nic}.{flow.port}", not cut_off)


DRILL = """drill: mine
summary: x
topology: {preset: tiny, nic: {port_selection: queue-affinity}}
workload: {queue_pairs: 4, load: 40 %}
profile: quick
timeline: {healthy: 1500 ms, faults: [{id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 1500 ms}]}
expect: [queue_pair_deaths: {at_most: 0}]
"""


def test_the_model_refuses_bound_queue_pairs_as_its_times_were_measured_without_them() -> None:
    drill = drill_from(parse(DRILL, "mine"), Path())
    with pytest.raises(InputError, match="without the adapters that bind queue pairs"):
        check(drill)
