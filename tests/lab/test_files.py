"""The open files of a lab: as many as are asked for, and not many more."""

from __future__ import annotations

import os

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.lab.wire import files_wanted
from tests.lab.running import running


@pytest.mark.kernel
async def test_a_lab_opens_no_more_files_than_it_asks_for() -> None:
    fabric = build(PRESETS["small"].spec)
    wanted = files_wanted(fabric)
    before = len(os.listdir("/proc/self/fd"))
    async with running(fabric, converge=False) as lab:
        await lab.converged()
        for node in fabric.nodes:
            lab.requests(node.name)
        used = len(os.listdir("/proc/self/fd")) - before
    assert used <= wanted - 256, "the 256 are for traffic, impairments and news"
    assert wanted - 256 <= 3 * used, "a limit of open files is not asked for that nobody needs"
