"""A large lab starts with its FIBs held: each kernel is told of a route once, with all its next hops."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from testbed.fabric.build import build
from testbed.fabric.model import Role
from testbed.fabric.presets import PRESETS
from testbed.lab import holding
from testbed.lab.convergence import expected_routes
from testbed.lab.holding import Held, is_held
from testbed.lab.lab import Lab
from testbed.routing.bgp import BgpDaemon
from testbed.routing.bird.config import config
from tests.lab.running import cut, mend, tiny


@pytest.mark.kernel
async def test_a_lab_that_starts_held_has_heard_all_before_its_kernels_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(holding, "MANY_NEXT_HOPS", 0)
    before: list[int] = []
    deliver = Held.deliver

    async def looked_at(self: Held, daemons: Iterable[BgpDaemon]) -> None:
        before.extend(len(lab.watcher.routes(node.name)) for node in lab.fabric.switches if node.role is Role.AGG)
        await deliver(self, daemons)

    monkeypatch.setattr(Held, "deliver", looked_at)
    lab = Lab.start(build(tiny()), lambda _event: None)
    await lab.converged(20)
    assert before == [0] * 4
    nic, far = lab.fabric.nics[0], "p0.s1.t0.0"
    cut(lab, nic.links[0])
    await lab.wait_for(lambda: f"{nic.ip}/32" not in lab.watcher.routes(far), 10)
    mend(lab, nic.links[0])
    await lab.converged(20)
    assert before == [0] * 4, "only the start is held"
    lab.close()


def test_only_labs_beyond_the_benchmark_are_held() -> None:
    held = {name: is_held(expected_routes(build(PRESETS[name].spec))) for name in ("tiny", "medium", "segment")}
    assert held == {"tiny": False, "medium": False, "segment": True}


def test_a_holding_switch_announces_all_and_keeps_it_from_its_kernel() -> None:
    fabric = build(tiny())
    node = fabric.node("p0.s0.t0.0")
    free, held = (config(fabric, node, holding=holds) for holds in (False, True))
    assert [line for line in free.splitlines() if line not in held.splitlines()] == [
        "    export where source = RTS_BGP || source = RTS_STATIC;"
    ]
    assert "    export where source = RTS_STATIC;" in held.splitlines()
