"""Claims that arithmetic judges: each holds where the feature is, and fails for the network without it."""

from __future__ import annotations

import pytest

from hpn.scenarios.paper.claim import Claim, ClaimAnswer
from hpn.scenarios.paper.count_claims import CLAIMS, PRICES, cost
from hpn.scenarios.paper.judging import judge
from hpn.scenarios.paper.measures import ClaimEvidence
from hpn.scenarios.paper.month_claims import CLAIMS as MONTHS
from hpn.scenarios.paper.month_claims import stops_in_months
from hpn.scenarios.paper.other_claims import CLAIMS as OTHER
from hpn.scenarios.paper.other_claims import crc32, kernel
from hpn.scenarios.paper.topology_claims import CLAIMS as TOPOLOGIES
from hpn.scenarios.paper.topology_claims import PAPER, Size, dragonfly, slim_fly, three_layers, two_layers
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.inventory import check_budgets, inventory
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import LinkKind
from hpn.testbed.fabric.spec import FabricSpec

JUDGED = [claim for claim in (*CLAIMS, *MONTHS, *OTHER, *TOPOLOGIES) if claim.judge is not None and not claim.shortfall]


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.key)
def test_it_holds_for_the_pod_and_not_without_the_feature(claim: Claim) -> None:
    row = judge(claim, {}, {}, 0)
    assert row.answer is (ClaimAnswer.COUNTED if claim.counted else ClaimAnswer.COMPUTED)
    assert {each.answer for each in row.without} == {ClaimAnswer.DIFFERS}


def test_the_saving_is_the_sum_of_parts_by_hand() -> None:
    pod = inventory(load_fabric("pod"))
    ours = cost(ClaimEvidence({}, {}, {}, pod)).ours
    hpn = (360 * PRICES["switch"] + 28_800 * PRICES["optic"] + 30_720 * PRICES["access"]) / 15_360
    dcn = (640 * PRICES["switch"] + 65_536 * PRICES["optic"] + 32_768 * PRICES["access"]) / 16_384
    assert ours.startswith(f"{hpn / dcn - 1:+.0%} ")


def test_other_fleets_fail_more_often_than_hpn_s_rates_say_and_that_is_told() -> None:
    row = judge(next(claim for claim in OTHER if claim.key == "llama3-network"), {}, {}, 0)
    assert row.answer is ClaimAnswer.DIFFERS
    assert row.known
    assert row.ours.startswith("17.5 ")  # 16,384 links and 1,024 ToRs for 1.78 months, as FACTS has it


def test_only_the_crc_is_linear() -> None:
    one, other, change = (1, 2, 49152, 4791), (77, 5, 50000, 4791), 0b1011
    for by, is_linear in ((crc32, True), (kernel, False)):
        moves = [by([flow])[0] ^ by([(*flow[:2], flow[2] ^ change, flow[3])])[0] for flow in (one, other)]
        assert (moves[0] == moves[1]) is is_linear


def test_a_stack_s_stops_are_too_few_for_eight_months_to_tell_and_that_is_told() -> None:
    found = stops_in_months("stacked-dual-tor", ClaimEvidence({}, {}, {}, inventory(load_fabric("pod"))))
    assert found.agrees, "so that it is no network without the feature"
    assert found.details.startswith("a stack's by its rates: 0.4, ")  # 8 x 240 x 0.051 % x 40 %


def _counted(spec: FabricSpec) -> Size:
    fabric = build(spec)
    check_budgets(fabric)
    found = inventory(fabric)
    links = found.link_count(LinkKind.FABRIC) + found.link_count(LinkKind.CORE)
    return Size(found.gpus, found.tors + found.aggs + found.cores, links)


def _planes(radix: int, planes: int) -> FabricSpec:
    """As many planes of two layers as rails: a GPU's NIC is in one of them, as in DeepSeek's cluster."""
    half = radix // 2
    return FabricSpec(
        architecture="rail-only",
        segments=radix,
        hosts=half,
        rails=planes,
        aggs=half,
        switch_capacity=radix * 400 * 10**9,
    )


@pytest.mark.parametrize(("radix", "planes"), [(4, 1), (8, 3), (64, 8)])
def test_two_layers_have_the_size_of_the_network_that_is_built_and_no_more_fits(radix: int, planes: int) -> None:
    spec = _planes(radix, planes)
    assert _counted(spec) == two_layers(radix, planes)
    with pytest.raises(InputError, match="switch has"):
        _counted(spec.model_copy(update={"segments": radix + 1}))


@pytest.mark.parametrize("radix", [4, 8])
def test_three_layers_have_the_size_of_the_fat_tree_that_is_built(radix: int) -> None:
    half = radix // 2
    counts = {"segments": half, "hosts": half, "aggs": half, "cores": half**2, "core_groups": half}
    capacity = radix * 400 * 10**9
    spec = FabricSpec(architecture="fat-tree", pods=radix, switch_capacity=capacity, **counts)
    assert _counted(spec) == three_layers(radix)


def test_a_slim_fly_is_the_hoffman_singleton_graph_where_that_fits() -> None:
    assert slim_fly(11) == Size(200, 50, 175)  # Besta and Hoefler, SC 2014, section 2.1.1: q = 5, k' = 7, p = 4
    assert slim_fly(64).switches == 2 * 28**2
    assert slim_fly(64, exists=True).switches == 2 * 27**2


def test_a_dragonfly_of_seven_ports_has_nine_groups() -> None:
    assert dragonfly(7) == Size(72, 36, 90)  # Kim et al., ISCA 2008, figure 5: p = h = 2, a = 4


def test_the_dragonfly_of_the_table_has_two_groups_less_than_fit() -> None:
    row = judge(next(claim for claim in TOPOLOGIES if claim.key == "deepseek-dragonfly"), {}, {}, 0)
    assert row.answer is ClaimAnswer.DIFFERS
    assert row.known
    assert dragonfly(64, 2) == PAPER["DF"]


def test_a_clos_forwards_nothing_and_rail_only_seven_eighths() -> None:
    row = judge(next(claim for claim in TOPOLOGIES if claim.key == "rail-only"), {}, {}, 0)
    assert row.ours.startswith(f"{7 / 8 * 400 / 3200 * 1920 / 1919:+.1%} ")
    assert row.without[0].ours.startswith("+0.0% ")
