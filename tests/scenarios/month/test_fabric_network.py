"""A month on any fabric: as by arithmetic where that knows it, and by hand on others."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import pytest

from hpn import cli
from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.scenarios.model.month.fabric_network import FabricNetwork
from hpn.scenarios.model.month.failures import Failure, Kind
from hpn.scenarios.model.month.job import ModelledJob
from hpn.scenarios.model.month.job_network import JobNetwork, PodNetwork
from hpn.scenarios.model.month.month import MonthRequest, reckon
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.fluid.pods import Pods

GIVEN = Assumptions()


def _stretch(network: JobNetwork, kind: Kind, number: int) -> float:
    return ModelledJob(network, GIVEN).stretch([Failure(0.0, 1.0, kind, number)])


def _cut_s(network: JobNetwork, link: int) -> float:
    """Duration of an iteration with that link cut."""
    return ModelledJob(network, GIVEN).iteration_s * _stretch(network, Kind.LINK, link)


@pytest.mark.parametrize("architecture", ["hpn", "dual-tor-clos", "single-tor"])
@pytest.mark.parametrize("path_control", [True, False])
def test_it_has_the_parts_that_arithmetic_has_and_iterations_as_long_under_a_cut(
    architecture: str, path_control: bool
) -> None:
    given: dict[str, object] = {"path_control": {"enabled": path_control}}
    spec = FabricSpec.model_validate(
        {"architecture": architecture, "segments": 2, "hosts": 3, "rails": 2, "aggs": 8, **given}
    )
    mine = FabricNetwork(build(spec), 2)
    pods = PodNetwork.first_hosts(Pods.of(spec), 12, 2, 1, path_control=path_control)
    for figure in ("gpus", "links", "tors", "isolated_planes", "has_another_way"):
        assert getattr(mine, figure) == getattr(pods, figure), figure
    assert {*Counter(map(mine.segment, range(mine.links))).values()} == {mine.links // 2}
    assert {*Counter(pods.segment(pods.link(each)) for each in range(pods.links)).values()} == {mine.links // 2}
    for number in mine.some_links():
        assert _cut_s(mine, number) == pytest.approx(_cut_s(pods, number))


def test_a_crashed_tor_of_a_direct_network_cuts_its_hosts_off_and_a_long_way_round_costs_bandwidth() -> None:
    ring = {"architecture": "torus", "segments": 4, "dimensions": [4], "hosts": 1, "bgp": {"asn": "per-switch"}}
    network = FabricNetwork(build(FabricSpec.model_validate(ring)), 1)
    assert (network.gpus, network.links, network.tors, network.has_another_way) == (4, 4, 4, False)
    assert network.slowest_bps(frozenset()) == network.nic_bps, "neighbours have a link of their own"
    assert _stretch(network, Kind.TOR, 1) == _stretch(network, Kind.LINK, 1) == math.inf
    assert ModelledJob(network, GIVEN).stretch_of_a_cut == 1.0


def test_hosts_without_a_path_and_too_many_queue_pairs_are_refused() -> None:
    clos = build(FabricSpec(name="apart", architecture="dual-tor-clos", segments=2, hosts=1))
    apart = replace(clos, links=tuple(link for link in clos.links if not link.is_routed))
    with pytest.raises(InputError, match="on apart some NICs of a rail have no path"):
        FabricNetwork(apart, 1)
    with pytest.raises(MachineError, match=r"8,192 queue pairs on tiny take about 0\.1 GB and 0\.1 GB are free"):
        next(reckon(MonthRequest((), (load_fabric("tiny"),), queue_pairs=1024), 120e6, lambda _line: None))


def test_a_slow_nic_sets_the_rate() -> None:
    fabric = build(FabricSpec(segments=1, hosts=2, rails=1))
    first = fabric.nics[0]
    slow = replace(first, links=tuple(replace(link, rate_bps=link.rate_bps // 2) for link in first.links))
    mixed = replace(fabric, nics=(fabric.nics[1], slow))
    assert FabricNetwork(fabric, 2).nic_bps == 2 * FabricNetwork(mixed, 2).nic_bps


def test_spares_take_no_part() -> None:
    network = FabricNetwork(build(FabricSpec(segments=2, hosts=2, spare_hosts=1)), 1)
    assert (network.gpus, network.links) == (4, 8)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"architecture": "stacked-dual-tor"}, "write hpn month stacked-dual-tor"),
        ({"nic": {"port_selection": "queue-affinity"}, "path_control": {"policy": "rebind"}}, "adapters that bind"),
        ({"segments": 1, "hosts": 1}, "no two hosts"),
        ({"switch": {}}, "lossless switches stop senders"),
    ],
)
def test_what_the_model_does_not_support_is_refused(keys: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        FabricNetwork(build(FabricSpec.model_validate({"name": "mine", **keys})), 1)


@pytest.mark.parametrize("preset", ["tiny", "tiny-torus", "tiny-dragonfly", "tiny-slim-fly", "tiny-ub-mesh"])
def test_every_nic_of_a_ring_has_a_path_and_a_cut_is_survived_where_there_is_another(preset: str) -> None:
    network = FabricNetwork(load_fabric(preset), 4)
    assert 0 < network.slowest_bps(frozenset()) <= network.nic_bps
    job = ModelledJob(network, GIVEN)
    assert math.isfinite(max(_stretch(network, Kind.LINK, each) for each in network.some_links())) is (
        network.has_another_way
    )
    assert job.iteration_s >= GIVEN.iteration_s


def _run(*words: str) -> None:
    cli.command_line.main(["month", *words], prog_name="hpn", standalone_mode=False)


def test_the_command_has_a_row_for_each_topology(capsys: pytest.CaptureFixture[str]) -> None:
    _run("--topology", "tiny", "--topology", "tiny-torus", "--months", "2", "--queue-pairs", "2", "--json")
    document = json.loads(capsys.readouterr().out)
    assert [(each["network"], each["gpus"]) for each in document["networks"]] == [("tiny", 8), ("tiny-torus", 12)]
    with pytest.raises(InputError, match="--gpus are about pods; name a NETWORK"):
        _run("--topology", "tiny", "--gpus", "4")


def test_spare_hosts_have_no_part_in_the_job_that_is_announced() -> None:
    said: list[str] = []
    asked = MonthRequest((), (load_fabric("tiny-spare"),), queue_pairs=2, months=1)
    [outcome] = reckon(asked, math.inf, said.append)
    assert outcome.gpus == 8
    assert said == ["tiny-spare: 8 GPUs, 16 queue pairs, 1 months"]
