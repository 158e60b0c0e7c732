"""SRv6 in running labs: probes go down every path, cuts silence exactly theirs, and tables come back."""

from __future__ import annotations

import pytest

from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.srv6_probe import probe
from hpn.testbed.lab.state import state
from tests.lab.running import cut, mend, running, tiny, whole_again

pytestmark = pytest.mark.kernel


async def test_thin() -> None:
    async with running(tiny(rails=1, srv6={})) as lab:
        before = state(lab)
        print([k for k in before if "SRv6" in k][:4])
        assert not deviations(lab)
        found = await probe(lab, "p0.s0.h0.r0", "p0.s1.h0.r0")
        for each in found:
            print(each)
        assert all(each.arrived for each in found)
        link = lab.fabric.link("p0.s0.t0.0-p0.a0.1")
        cut(lab, link)
        await lab.wait_for(lambda: not lab.link_up(link.name), 5)
        found = await probe(lab, "p0.s0.h0.r0", "p0.s1.h0.r0")
        print([(e.path.links[1], e.arrived) for e in found])
        mend(lab, link)
        await whole_again(lab, before)
        found = await probe(lab, "p0.s0.h0.r0", "p0.s1.h0.r0")
        assert all(each.arrived for each in found)
        assert not deviations(lab)
