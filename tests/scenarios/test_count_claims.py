"""Claims that are counted: each holds for HPN's pod and fails for the network without the feature."""

from __future__ import annotations

import pytest

from hpn.scenarios.paper.claim import Claim, ClaimAnswer
from hpn.scenarios.paper.count_claims import CLAIMS, PRICES, cost
from hpn.scenarios.paper.judging import judge
from hpn.scenarios.paper.measures import ClaimEvidence
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric

JUDGED = [claim for claim in CLAIMS if claim.judge is not None]


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.key)
def test_it_holds_for_the_pod_and_not_without_the_feature(claim: Claim) -> None:
    row = judge(claim, {}, {}, 0)
    assert row.answer is ClaimAnswer.COMPUTED
    assert [each.answer for each in row.without] == [ClaimAnswer.DIFFERS]


def test_the_saving_is_the_sum_of_parts_by_hand() -> None:
    pod = inventory(load_fabric("pod"))
    ours = cost(ClaimEvidence({}, {}, {}, pod)).ours
    hpn = (360 * PRICES["switch"] + 28_800 * PRICES["optic"] + 30_720 * PRICES["access"]) / 15_360
    dcn = (640 * PRICES["switch"] + 65_536 * PRICES["optic"] + 32_768 * PRICES["access"]) / 16_384
    assert ours.startswith(f"{hpn / dcn - 1:+.0%} ")
