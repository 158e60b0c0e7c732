"""The open files of a lab: as many as are asked for, and not many more."""

from __future__ import annotations

import asyncio
import os

import pytest

from testbed.fabric.build import build
from testbed.fabric.presets import PRESETS
from testbed.lab.lab import Lab
from testbed.lab.wire import files_wanted


@pytest.mark.kernel
def test_a_lab_opens_no_more_files_than_it_asks_for() -> None:
    async def opened() -> tuple[int, int]:
        fabric = build(PRESETS["small"].spec)
        lab = Lab(fabric, lambda _event: None)
        before = len(os.listdir("/proc/self/fd"))
        lab.start()
        await lab.converged()
        for node in fabric.nodes:
            lab.requests(node.name)
        return len(os.listdir("/proc/self/fd")) - before, files_wanted(fabric)

    used, wanted = asyncio.run(opened())
    assert used <= wanted - 256, "the 256 are for traffic, impairments and news"
    assert wanted - 256 <= 3 * used, "a limit of open files is not asked for that nobody needs"
