"""``Lab.start``: a complete lab, or none; what stood when it failed is closed in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.lab import lab as module
from hpn.testbed.lab.host_nic import HostNic
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.markers import MarkerKind
from hpn.testbed.lab.stack import Stacks
from hpn.testbed.lab.tor import Tor
from hpn.testbed.lab.watch import Watcher
from hpn.testbed.lab.wire import Wiring, wire
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.routing.bgp import BgpDaemon
from tests.lab.running import tiny

FABRIC = build(tiny())


def _packet_sockets(space: NetNs) -> int:
    with space.entered():
        return len(Path("/proc/thread-self/net/packet").read_text().splitlines()) - 1


@pytest.mark.kernel
@pytest.mark.parametrize("failing", ["p0.s0.t0.0", "p0.a0.0"])
async def test_a_start_that_fails_closes_what_stands_in_order(monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    wired: list[Wiring] = []
    closed: list[str] = []
    start_bird = BgpDaemon.start

    def keep(fabric: Fabric, kind: LagKind, marking: MarkerKind | None, *, in_order: bool) -> Wiring:
        wired.append(wire(fabric, kind, marking, in_order=in_order))
        return wired[0]

    def refuse(bird: BgpDaemon, *, holding: bool = False) -> None:
        stand = [node.name for node in FABRIC.nodes if _packet_sockets(wired[0].namespaces[node.name])]
        assert stand == [node.name for node in FABRIC.nodes if node.role in {Role.HOST, Role.TOR}]
        if bird.node.name == failing:
            raise MachineError("planted")
        start_bird(bird, holding=holding)

    def overhear(owner: type, method: str, name: Callable[[Any], str]) -> None:
        real = getattr(owner, method)

        def heard(one: Any) -> None:
            closed.append(name(one))
            real(one)

        monkeypatch.setattr(owner, method, heard)

    monkeypatch.setattr(module, "wire", keep)
    monkeypatch.setattr(BgpDaemon, "start", refuse)
    overhear(Stacks, "close", lambda _stacks: "stacks")
    overhear(Watcher, "stop", lambda _watcher: "monitors")
    overhear(Tor, "crash", lambda tor: tor.node.name)
    overhear(HostNic, "close", lambda nic: nic.nic.name)

    with pytest.raises(MachineError, match="planted"):
        Lab.start(FABRIC, lambda _event: None)
    tors = [node.name for node in FABRIC.switches if node.role is Role.TOR]
    nics = [nic.name for host in FABRIC.hosts for nic in FABRIC.nics_of(host.name)]
    assert closed == ["stacks", "monitors", *tors, *nics]
    assert [name for name, space in wired[0].namespaces.items() if _packet_sockets(space)] == []
