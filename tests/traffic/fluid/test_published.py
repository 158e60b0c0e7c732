"""The model against what others published: figures of the HPN paper, and an AllReduce in SimAI's ns-3.

docs/model.md has the table.
"""

from __future__ import annotations

import numpy as np
import pytest

from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.fluid.flows import Pairs, drawn, permutation, ring
from hpn.traffic.fluid.pace import healthy
from hpn.traffic.fluid.pods import Pods
from hpn.traffic.fluid.solve import Floats, link_load
from tests.traffic.fluid import simai

SIMAI_512M_GBYTE_S = 45.653648
"""Bus bandwidth of an AllReduce of 512 MB over 256 GPUs on rail-optimised single-ToR switches at 400G (SimAI,
docs/Tutorial.md, 'HPN 7.0 architecture VS DCN+ architecture', Spectrum-X)."""

SIMAI_DCN_PLUS_512M_GBYTE_S = 36.242008
"""The same without rails ('DCN-SingleToR'; aliyun/SimAI, docs/Tutorial.md at cef83f9d, there since 2fd25a72)."""


def test_an_allreduce_over_256_gpus_is_within_a_tenth_of_simais_packets() -> None:
    pods = Pods.of(FabricSpec(architecture="single-tor", segments=1, hosts=32, rails=8, aggs=8))
    bus = healthy(pods, drawn(pods, ring(pods), 4, 1, "even")).slowest_bps / 8e9
    assert bus == 50.0  # a ring's bus bandwidth is the rate of its slowest hop; no header, no start
    assert 1.0 < bus / SIMAI_512M_GBYTE_S < 1.1


def test_an_allreduce_without_rails_loses_three_fifths_of_what_simais_packets_lose() -> None:
    """With its messages, each by a port of its own, its switches' hash and their seeds: who meets whom is the same."""
    groups = simai.bus_gbyte_s(simai.one_a_message)
    assert groups.min() == pytest.approx(41.61, abs=0.005)
    of_gpu_0 = groups[0]  # which alone writes SimAI's figures
    assert of_gpu_0 == pytest.approx(43.97, abs=0.005)
    assert 1.21 < of_gpu_0 / SIMAI_DCN_PLUS_512M_GBYTE_S < 1.22
    lost, theirs = 1 - of_gpu_0 / 50.0, 1 - SIMAI_DCN_PLUS_512M_GBYTE_S / SIMAI_512M_GBYTE_S
    assert lost / theirs == pytest.approx(0.585, abs=0.005)


def test_queue_pairs_that_stay_where_their_hash_sent_them_lose_half() -> None:
    groups = simai.bus_gbyte_s(simai.one_for_all)
    assert sorted(groups) == pytest.approx([25.0] * 6 + [50.0] * 2)


def test_simais_hash_is_murmur() -> None:
    """Vectors as they go round: 'test' and 'aaaa'."""
    words = np.array([0x74736574, 0x61616161], np.uint32)
    assert simai.murmur([words], np.array([0, 0x9747B28C], np.uint32)).tolist() == [0xBA6BD213, 0x5A97808A]


def _far_port_loads(architecture: str) -> Floats:
    """What comes down to each NIC by each port, (NICs, ports), in a permutation over a third of a pod."""
    pods = Pods.of(FabricSpec(architecture=architecture, segments=5, hosts=128, rails=1, aggs=60))
    paced = healthy(pods, drawn(pods, permutation(pods, 1), 16, 1, "even"))
    offered = np.full(len(paced.rates), pods.port_bps * pods.tors / 16)
    load = link_load(paced.paths, offered, pods.links)
    return load[pods.blocks[1] : pods.blocks[2]].reshape(-1, pods.tors)


def test_ports_towards_a_nic_differ_threefold_in_a_clos_and_not_in_two_planes() -> None:
    """Paper, section 6: 60 Aggs that hash onto 2 ToRs load the two ports of a NIC differently, up to 3x."""
    clos, planes = _far_port_loads("dual-tor-clos"), _far_port_loads("hpn")
    assert (planes[:, 0] == planes[:, 1]).all()
    ratio = clos.max(axis=1) / np.maximum(clos.min(axis=1), 1)
    assert np.quantile(ratio, 0.9) >= 2
    assert np.mean(ratio >= 3) > 0.02


def test_pods_that_only_talk_to_each_other_get_a_sixteenth() -> None:
    """Aggs of 15:1 under ToRs of 1.067:1 (paper, section 7): the Cores are full, and a NIC gets 1/16 on average."""
    pods = Pods.of(PRESETS["pods"].spec.model_copy(update={"rails": 2, "hosts": 32, "segments": 15, "cores": 2}))
    everybody = np.arange(pods.gpus, dtype=np.int64)
    half = pods.segments * pods.hosts
    other = everybody // half * half + everybody % half + np.where(everybody // half % 2 == 0, half, -half)
    paced = healthy(pods, drawn(pods, Pairs(everybody, other), 32, 1, "even"))
    core = slice(pods.blocks[4], pods.blocks[6])
    share = paced.capacity[core].sum() / 2 / (pods.gpus * pods.port_bps * pods.tors)
    got = paced.pair_rates.mean() / (pods.port_bps * pods.tors)
    assert got == pytest.approx(share, rel=0.05)
    assert got <= share * (1 + 1e-9)
