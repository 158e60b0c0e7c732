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
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric

JUDGED = [claim for claim in (*CLAIMS, *MONTHS, *OTHER) if claim.judge is not None and not claim.shortfall]


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
