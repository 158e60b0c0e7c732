"""Entropy values on a running lab with SRv6: each stands for a static path, and answers come back over its links."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hpn.scenarios.run.values_on_lab import BROKEN, LabValues
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.srv6_carriers import Carriers
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.multipath.settings import EntropyValue, Multipath
from tests.lab.running import cut, running

pytestmark = pytest.mark.kernel
_SHAPES: dict[str, dict[str, object]] = {
    "parallel": {"architecture": "dual-tor-clos", "aggs": 2, "uplinks": 2},
    "three tiers": {"pods": 2, "segments": 1, "aggs": 2, "cores": 2},
    "eight planes": {"planes": 8, "aggs": 1},
}


@pytest.mark.parametrize("shape", _SHAPES)
async def test_values_stand_for_all_static_paths_and_each_has_its_way_back(shape: str) -> None:
    told: dict[int, tuple[EntropyValue, ...]] = {}

    def tell(values: Mapping[int, tuple[EntropyValue, ...]]) -> None:
        told.update(values)

    spec = FabricSpec.model_validate({"segments": 2, "hosts": 1, "lag": "nft", "srv6": {}, **_SHAPES[shape]})
    async with running(spec) as lab:
        first, last = lab.fabric.nics[0], lab.fabric.nics[-1]
        flow = FlowSpec(0, "flow", first.name, last.name, first.ip, last.ip, 50_000, 50_001, 1.0)
        values, carriers = LabValues(lab, Multipath(128), tell), Carriers(lab)
        values.choose([flow])
        there = {each.via: each.path for each in carriers.paths(first.name, last.name)}
        back = {each.via: each.path for each in carriers.paths(last.name, first.name)}
        data, replies = told[0], told[1]
        assert len({value.sport for value in data}) == len(data) == 128
        assert {value.via for value in data} == there.keys()
        for value in data:
            assert there[value.via].links == back[replies[value.back].via].links[::-1]
            assert there[value.via].port == value.port
        assert {dropped for _, dropped in values.ways(flow)} == {None}
        cut(lab, lab.fabric.link(there[data[0].via].links[1]))
        await lab.wait_for(lambda: not lab.link_up(there[data[0].via].links[1]), 5)
        links, dropped = next(iter(values.ways(flow)))
        assert (links, dropped) == (there[data[0].via].links[:2], BROKEN)
