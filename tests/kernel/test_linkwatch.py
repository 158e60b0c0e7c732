"""The kernel takes 100 changes of carrier at a run and then waits for up to a second: asked, it takes all at once."""

from __future__ import annotations

import os

import pytest

from hpn.testbed.kernel import linkwatch
from hpn.testbed.kernel.rtnetlink import rtnl
from tests.kernel.linkwatch_pairs import FAR, NEAR, heard, pairs

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(
        tuple(map(int, os.uname().release.split(".")[:2])) < (6, 8),
        reason="this kernel answers a look-up without carrying out what is pending (Linux 6.8 does)",
    ),
]


def test_all_far_ends_have_heard_when_the_call_returns() -> None:
    asking, monitor = pairs()
    for up in (False, True):
        asking.run([rtnl.set_link(near, up=up) for near in NEAR])
        linkwatch.carry_out_far(asking, NEAR)
        assert heard(monitor) == dict.fromkeys(FAR, up)


def test_an_interface_that_is_gone_is_passed_over_and_the_others_are_carried_out() -> None:
    asking, monitor = pairs()
    asking.run([rtnl.set_link(near, up=False) for near in NEAR])
    linkwatch.carry_out(asking, [9999])
    linkwatch.carry_out_far(asking, [9999, *NEAR])
    assert heard(monitor) == dict.fromkeys(FAR, False)
