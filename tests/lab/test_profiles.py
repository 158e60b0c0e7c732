"""Labs with hosts as in production: every architecture converges, loses a link and has it back."""

from __future__ import annotations

from typing import Any

import pytest

from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.profiles import PRODUCTION
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.lab.service.inspect import report
from hpn.testbed.lab.state import state
from tests.lab.running import cut, mend, running, whole_again

pytestmark = pytest.mark.kernel
PRESETS_TRIED = (
    "tiny",
    "tiny-pods",
    "tiny-stacked",
    "tiny-dcn-plus",
    "tiny-rail-only",
    "tiny-fat-tree",
    "tiny-same-rail",
)


def production(preset: str) -> FabricSpec:
    return FabricSpec.model_validate({**PRESETS[preset].spec.model_dump(exclude_unset=True), "profile": PRODUCTION})


@pytest.mark.parametrize("preset", PRESETS_TRIED)
async def test_a_link_is_cut_and_mended_under_hosts_of_production(preset: str) -> None:
    async with running(production(preset)) as lab:
        before = state(lab)
        link = lab.fabric.nics[0].links[0]
        host = lab.nics[lab.fabric.nics[0].name]
        cut(lab, link)
        await lab.wait_for(lambda: 0 not in host.active, 10)
        mend(lab, link)
        await whole_again(lab, before)


async def test_inspect_lacp_names_the_profile_and_what_each_end_asks() -> None:
    async with running(production("tiny")) as lab:
        rows: Any = report(lab, "lacp", [])
        of_hosts = [row for row in rows if ".h" in row["port"].partition(":")[0]]
        assert {(row["profile"], row["asks"]) for row in of_hosts} == {(PRODUCTION, "slow")}
        assert {(row["profile"], row["asks"]) for row in rows if row not in of_hosts} == {("", "slow")}
