"""The table of networks: its drills on every network, its counts, and what it says of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.model import DrillMetrics, Goodput
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Role
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.document import parse
from tests.product import network_sizes
from tests.product.network_cells import FAULTS, NETWORKS, Network, Trial, fabric_of, trials
from tests.product.network_counts import counts, shortest_paths
from tests.product.network_page import Made, page
from tests.results.sample import MANIFEST
from tests.scenarios.measured import link_down


@pytest.mark.parametrize("trial", [*trials()], ids=lambda trial: trial.name)
def test_every_network_has_a_valid_drill_of_every_fault(trial: Trial, tmp_path: Path) -> None:
    drill = drill_from(parse(trial.drill, f"{trial.name}.yaml"), tmp_path)
    (fault,) = drill.timeline.faults
    assert trial.fault.kind == fault.fault.KIND


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.key)
def test_faults_hit_what_the_first_nic_uses(network: Network) -> None:
    fabric = fabric_of(network)
    cut, tor, onward, agg = (fault.target(fabric) for fault in FAULTS)
    assert cut
    assert onward
    assert fabric.link(cut) in fabric.nics[0].links
    assert fabric.link(cut).upper.node == tor == fabric.link(onward).lower.node
    assert (fabric.link(onward).upper.node == agg) == any(node.role is Role.AGG for node in fabric.nodes)


@pytest.mark.parametrize(
    ("preset", "paths"),
    [
        ("tiny", 2 * 2),  # planes, Aggs
        ("tiny-fat-tree", 2 * 2),  # Aggs, Cores of each (k/2)^2
        ("tiny-four-planes", 4 * 2),
        ("pod", 2 * 60),
        ("deepseek-planes", 32),
        ("dcn-plus", 2 * 64 * 64 * 64),  # ports, uplinks, Cores of an Agg's group, links down by every Agg and ToR
    ],
)
def test_paths_are_as_many_as_the_tiers_multiply_to(preset: str, paths: int) -> None:
    fabric = load_fabric(preset)
    src = fabric.nics[0]
    dst = [nic for nic in fabric.nics if nic.rail == src.rail and not fabric.node(nic.host).spare][-1]
    assert shortest_paths(fabric, src, dst) == paths


def test_networks_that_no_switch_joins_have_no_path() -> None:
    fabric = build(FabricSpec(name="x", architecture="rail-only", segments=2, hosts=2, rails=2, aggs=2))
    assert shortest_paths(fabric, fabric.nics[0], fabric.nics[-1]) == 0, "another rail"


def test_a_fat_tree_costs_what_its_formula_says() -> None:
    """Al-Fares: 5 k^2/4 switches, k^3/4 hosts and 2 links of switches for each, two transceivers a link."""
    found = counts("x", load_fabric("tiny-fat-tree"))
    assert (found.gpus, found.tiers, found.below_tor) == (16, 3, 2)
    assert found.switches * found.gpus == 5 * 4**2 / 4
    assert found.optics == 4
    ports_bps, links_bps = 400e9 * 5, 400e9 * 2
    assert found.dollars == pytest.approx(ports_bps / 51.2e12 * 40_000 + 2 * links_bps / 400e9 * 800 + 800)


@pytest.mark.parametrize("network", network_sizes.NETWORKS, ids=lambda network: network.title)
def test_a_network_is_as_large_as_its_table_says_and_no_plan_contradicts_itself(network: network_sizes.Sized) -> None:
    for at, size in enumerate(network_sizes.SIZES):
        spec = network_sizes.spec_of(network, at)
        if spec is not None:
            assert not contradictions(spec)
            gpus = spec.pods * spec.segments * spec.hosts * spec.rails
            assert 0.93 <= gpus / size <= 1.07, (at, gpus)


@pytest.mark.parametrize("network", network_sizes.NETWORKS, ids=lambda network: network.title)
def test_no_tier_of_a_tree_is_narrower_above(network: network_sizes.Sized) -> None:
    spec = network_sizes.spec_of(network, 0)
    assert spec is not None
    fabric = build(spec)
    if ARCHITECTURES[spec.architecture].direct:
        return
    tor, agg = (next(node for node in fabric.switches if node.role is role) for role in (Role.TOR, Role.AGG))
    for node in (tor, agg):
        down, up = ([link for link in fabric.links_of(node.name) if (link.upper.node == node.name) is below]
                    for below in (True, False))  # fmt: skip
        rates = [sum(link.rate_bps for link in links) for links in (down, up)]
        if rates[1]:
            assert rates[1] >= 0.9 * rates[0], node.name


def _made(metrics: DrillMetrics, outcome: Outcome = Outcome.PASS) -> Made:
    return Made(Trial(NETWORKS[0], FAULTS[0], "streams"), MANIFEST, Verdict(outcome, (), ()), metrics)


def test_a_cell_has_the_longest_outage_the_streams_that_lost_and_the_goodput() -> None:
    metrics = link_down()
    first = replace(metrics.edges[0], goodput=Goodput(100.0, 75.0, 90.0))
    made = _made(replace(metrics, edges=(first, *metrics.edges[1:])))
    assert "| HPN, two planes | 12 | 40 ms (2/3), 75% |" in page([made], [])
    assert "| HPN, two planes | 12 | 0 |" in page([_made(link_down(sender=0, receiver=0))], [])


def test_an_outage_without_an_end_and_dead_queue_pairs_are_named() -> None:
    metrics = link_down()
    first = metrics.edges[0]
    endless = replace(metrics, edges=(replace(first, flows_unrecovered=1), *metrics.edges[1:]))
    assert "| over 40 ms (2/3) |" in page([_made(endless)], [])
    dead = replace(metrics, edges=(replace(first, flows_died=2), *metrics.edges[1:]))
    assert "| **2 dead** |" in page([_made(dead)], [])


def test_a_run_in_doubt_is_named() -> None:
    assert "hpn-cut-streams, phase" in page([_made(link_down(), Outcome.FAIL)], [])


def test_jobs_are_told_once_there_are_runs_of_them() -> None:
    made = _made(link_down())
    assert "## A job" not in page([made], [])
    assert "## A job" in page([replace(made, trial=replace(made.trial, traffic="job"))], [])
