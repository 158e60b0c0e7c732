"""A large lab starts with its FIBs held: each kernel is told of a route once, with all its next hops."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterable
from itertools import count

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Node, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.process.priority import go_first
from hpn.testbed.lab import large_labs
from hpn.testbed.lab.expected_routes import expected_routes
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.large_labs import FibState, is_large
from hpn.testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS
from hpn.testbed.routing.bgp import BgpDaemon
from hpn.testbed.routing.bird.config import config
from tests.lab.running import Recorder, cut, mend, running, tiny
from tests.lag.rack import wire


def _hosts(lab: Lab, node: Node) -> int:
    return sum(prefix.endswith("/32") for prefix in lab.watcher.routes(node.name))


@pytest.mark.kernel
async def test_a_lab_that_starts_held_has_heard_all_before_its_kernels_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_labs, "MANY_NEXT_HOPS", 0)
    heard: list[int] = []
    learned: list[int] = []
    hear, deliver = FibState.hear, FibState.deliver

    async def before_hearing(self: FibState, daemons: Iterable[BgpDaemon]) -> None:
        heard.extend(_hosts(lab, node) for node in lab.fabric.switches if node.role is Role.AGG)
        await hear(self, daemons)

    async def before_delivery(self: FibState, daemons: Iterable[BgpDaemon]) -> None:
        learned.extend(_hosts(lab, node) for node in lab.fabric.switches if node.role is Role.TOR)
        await deliver(self, daemons)

    monkeypatch.setattr(FibState, "hear", before_hearing)
    monkeypatch.setattr(FibState, "deliver", before_delivery)
    lab = Lab.start(build(tiny()), lambda _event: None)
    await lab.converged(20)
    assert heard == [0] * 4, "no host is announced before every port carries"
    assert learned == [2] * 8, "the hosts behind the ToR's own ports"
    nic, far = lab.fabric.nics[0], "p0.s1.t0.0"
    cut(lab, nic.links[0])
    await lab.wait_for(lambda: f"{nic.ip}/32" not in lab.watcher.routes(far), 10)
    mend(lab, nic.links[0])
    await lab.converged(20)
    assert (len(heard), len(learned)) == (4, 8), "only the start is held"
    lab.close()


@pytest.mark.kernel
async def test_a_small_lab_speaks_lacp_itself() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    async with running(tiny(), converge=False) as lab:
        assert lab.lacp.pids == frozenset()
        assert os.getpriority(os.PRIO_PROCESS, 0) == before


@pytest.mark.kernel
async def test_the_supervisor_of_a_large_lab_goes_before_its_daemons(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _may_go_first():
        pytest.skip("a user's processes may not go before others")
    monkeypatch.setattr(large_labs, "MANY_NEXT_HOPS", 0)
    lab = Lab.start(build(tiny()), lambda _event: None)
    daemons = lab.child_pids() - lab.lacp.pids
    assert len(daemons) == len(lab.fabric.switches)
    assert os.getpriority(os.PRIO_PROCESS, 0) == -10
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in daemons} == {0}
    lab.close()


def _may_go_first() -> bool:
    """Tried in a process of its own, which alone it changes."""
    pid = os.fork()
    if pid == 0:
        go_first()
        os._exit(os.getpriority(os.PRIO_PROCESS, 0) < 0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


@pytest.mark.kernel
async def test_a_large_lab_says_when_its_lacp_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_labs, "MANY_NEXT_HOPS", 0)
    lab = Lab.start(build(tiny()), lambda _event: None)
    (pid,) = lab.lacp.pids
    assert pid in lab.child_pids()
    await lab.converged(20)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(MachineError, match=rf"LACP \(process {pid}\) died, killed by signal 9"):
        await lab.wait_for(lambda: False, 10)
    assert lab.child_pids() == {pid for daemon in lab.bgp.values() for pid in daemon.pids}
    lab.close()


@pytest.mark.kernel
async def test_a_tor_of_a_large_lab_is_silent_when_its_crash_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_labs, "MANY_NEXT_HOPS", 0)
    events = Recorder()
    async with running(tiny(), events) as lab:
        nic = lab.fabric.nics[0]
        tor, port = lab.tors[nic.links[0].upper.node], nic.links[0].upper.name
        ear = wire(lab.wiring.namespaces[nic.host], nic.links[0].lower.name, ETHERTYPE_SLOW_PROTOCOLS)
        tor.freeze()
        tor.thaw({link.upper.name for link in lab.fabric.links_of(tor.node.name)})
        assert tor.collecting(port), "it was not away for long"
        assert tor.status()[port].partner.system == nic.mac
        tor.crash()
        _drain(ear)
        crashed_ns = now_ns()
        await lab.wait_for(lambda: lab.nics[nic.name].active == (1,), 10)
        assert _drain(ear) == 0
        assert events.after(crashed_ns, EventKind.LACP, tor.node.name) == []
        assert events.after(crashed_ns, EventKind.LACP, nic.host)[0].what == "expired"
        tor.start()
        for link in lab.fabric.links_of(tor.node.name):
            if link.upper.name in tor.speakers:
                tor.speakers[link.upper.name].carrier(link.upper.name, True)
        await lab.converged(20)


def _drain(ear: socket.socket) -> int:
    """How many frames waited."""
    for heard in count():
        try:
            ear.recv(2048)
        except BlockingIOError:
            return heard
    raise AssertionError


def test_only_labs_beyond_the_benchmark_are_held() -> None:
    held = {name: is_large(expected_routes(build(PRESETS[name].spec))) for name in ("tiny", "medium", "segment")}
    assert held == {"tiny": False, "medium": False, "segment": True}


def test_a_holding_switch_announces_all_and_keeps_it_from_its_kernel() -> None:
    fabric = build(tiny())
    node = fabric.node("p0.s0.t0.0")
    free, held = (config(fabric, node, holding=holds).splitlines() for holds in (False, True))
    assert [line.strip() for line in free if line not in held] == [
        "export where source = RTS_BGP || source = RTS_STATIC;",
    ]
    assert "    export where source = RTS_STATIC;" in held
    deaf = config(fabric, node, holding=True, deaf=True).splitlines()
    assert [line.strip() for line in held if line not in deaf] == ["scan time 20;", "import filter host_routes;"]
