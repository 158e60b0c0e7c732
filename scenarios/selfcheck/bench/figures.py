"""Figures of the bench, each measured in its own sandbox and compared with its target."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from pydantic import TypeAdapter

from hpn.failover.inject.lab_actions import LabActions
from hpn.results.text.figure import Figure
from hpn.scenarios.selfcheck.bench.elephants import Measured, carried
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.srv6_spec import Srv6Spec
from hpn.testbed.kernel.process import programs, sandbox
from hpn.testbed.kernel.rtnetlink import rtnl, seg6
from hpn.testbed.kernel.rtnetlink.netlink import Monitor, Netlink
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service import preflight
from hpn.testbed.lab.wire import wire
from hpn.testbed.lag.host_nft import NFT
from hpn.testbed.routing.srv6.plan import UsidPlan

_MEASURED = TypeAdapter(Measured)
_ELEPHANTS_S = 3.0
_BESIDE_S = 3
_EIGHT_PLANES = FabricSpec(planes=8, segments=4, hosts=16, rails=1, aggs=1, srv6=Srv6Spec())
_ROUTES = 1000


def everything(runs: int = 3) -> Iterator[Figure]:
    """Yield all figures as they are measured. MachineError when this machine cannot run labs at all."""
    preflight.check(build(PRESETS["medium"].spec))
    yield from bring_up(runs)
    yield from failover(runs)
    yield from elephants()
    yield from _other_rooms(runs)


def _other_rooms(runs: int) -> Iterator[Figure]:
    from hpn.scenarios.selfcheck.bench import analysis, flowlevel, guests, jobs, pathcontrol, steering

    yield from analysis.figures(_in_sandbox(analysis.judged))
    if programs.find("iperf3") is not None:
        yield from jobs.figures(_in_sandbox(lambda: asyncio.run(jobs.side_by_side(_BESIDE_S))))
    yield from flowlevel.figures(_in_sandbox(flowlevel.measured))
    yield from pathcontrol.figures()
    yield from steering.figures()
    yield from guests.guests(runs)


def bring_up(runs: int) -> Iterator[Figure]:
    """Measure 164 nodes and 384 links with addresses and rates: up, down, memory; also stock Mininet on this graph."""
    fabric = build(PRESETS["medium"].spec)
    ours = [_up_and_down(fabric) for _ in range(runs)]
    size = f"{len(fabric.nodes)} nodes, {len(fabric.links)} links"
    up, down = (median(run[key] for run in ours) for key in ("up_s", "down_s"))
    yield Figure("up, before daemons", up, "s", 1.5, note=size)
    yield Figure("down and verified", down, "s", 0.5, note=size)
    converged = _in_sandbox(lambda: asyncio.run(_converge(fabric)))
    yield Figure("up and converged, LACP and BGP", converged["converged_s"], "s", note=size)
    yield Figure(
        "memory without BIRD", converged["memory_mb"], "MB", 150, note="largest resident size of the supervisor"
    )
    yield from _mininet(fabric, up, down)
    yield from _planes()


def _planes() -> Iterator[Figure]:
    """Measure 64 hosts on eight planes with static SRv6 paths beside BGP: up and converged; a table of 1,000 routes."""
    fabric = build(_EIGHT_PLANES)
    converged = _in_sandbox(lambda: asyncio.run(_converge(fabric)))
    size = f"{len(fabric.nodes)} nodes, {len(fabric.links)} links"
    yield Figure("eight planes: up and converged", converged["converged_s"], "s", 3, note=size)
    table = _in_sandbox(lambda: _static_table(fabric))
    yield Figure("a switch's table of 1,000 static routes", table["ms"], "ms", note="IPv6, in one batch")


def _static_table(fabric: Fabric) -> Measured:
    """Install routes through one neighbour of a switch, without daemons."""
    switch = next(node.name for node in fabric.nodes if node.is_switch)
    entry = next(entry for entry in UsidPlan(fabric).table(switch) if entry.gateway)
    prefixes = (f"2001:db8:{number:x}::/48" for number in range(_ROUTES))
    batch = [seg6.add_route6(prefix, entry.ifindex, gateway=entry.gateway) for prefix in prefixes]
    requests = Netlink(wire(fabric, NFT).namespaces[switch])
    before_ns = now_ns()
    requests.run(batch)
    return {"ms": (now_ns() - before_ns) / 1e6}


def _mininet(fabric: Fabric, up: float, down: float) -> Iterator[Figure]:
    if programs.find("mnexec") is None or importlib.util.find_spec("mininet") is None:
        return
    from hpn.scenarios.selfcheck.bench.stock_mininet import build_and_stop

    # Always in a user namespace, as Mininet changes limits of the whole machine.
    stock = _in_sandbox(lambda: build_and_stop(fabric), user_namespace=True)
    yield Figure("stock Mininet with TCLink: up", stock["up_s"], "s")
    yield Figure("stock Mininet with TCLink: down", stock["down_s"], "s")
    yield Figure("times faster than Mininet: up", stock["up_s"] / up, "x", 5, at_least=True)
    yield Figure("times faster than Mininet: down", stock["down_s"] / down, "x", 5, at_least=True)


def _up_and_down(fabric: Fabric) -> Measured:
    """Wire in a sandbox, kill it, wait until its process is gone."""
    reader, writer = os.pipe()

    def body() -> int:
        started = time.monotonic()
        wire(fabric, NFT)
        os.write(writer, json.dumps(time.monotonic() - started).encode() + b"\n")
        signal.pause()
        return 0

    box = sandbox.spawn(body)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        up = float(pipe.readline())
    started = time.monotonic()
    os.kill(box.first_pid, signal.SIGKILL)
    box.wait()
    gone = not Path(f"/proc/{box.first_pid}").exists()
    down = time.monotonic() - started
    if not gone:
        raise MachineError(f"process {box.first_pid} outlived its sandbox")
    return {"up_s": up, "down_s": down}


async def _converge(fabric: Fabric) -> Measured:
    started = now_ns()
    lab = Lab.start(fabric, lambda _event: None)
    await lab.converged()
    converged = (now_ns() - started) / 1e9
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lab.close()
    return {"converged_s": converged, "memory_mb": memory}


def failover(runs: int) -> Iterator[Figure]:
    """Measure the time from carrier loss to the rewritten LAG, and the skew of a ToR's port losses."""
    found = _in_sandbox(lambda: asyncio.run(_failover(max(runs, 5))))
    yield Figure("carrier loss to traffic on the other port", found["switch_ms"], "ms", 10, note="nft datapath, worst")
    found = _in_sandbox(lambda: _port_loss_skew(max(runs, 5)))
    yield Figure("a ToR's ports lost within", found["skew_ms"], "ms", 2, note=f"{found['ports']:.0f} ports, worst")


async def _failover(runs: int) -> Measured:
    events: list[Event] = []
    lab = Lab.start(build(PRESETS["small"].spec), events.append)
    await lab.converged()
    gc.freeze()
    link = lab.fabric.nics[0].links[0]
    cut = LabActions.of(lab).cut([(link, link.lower.node)])
    switch_ms = []
    for _ in range(runs):
        before = now_ns()
        cut.do()
        rewritten = await _first(events, lab, before, lambda e: e.kind is EventKind.LAG and e.node == link.lower.node)
        switch_ms.append((rewritten.at_ns - before) / 1e6)
        await cut.undo()
        await lab.converged()
    lab.close()
    return {"switch_ms": max(switch_ms)}


async def _first(events: list[Event], lab: Lab, after_ns: int, wanted: Callable[[Event], bool]) -> Event:
    """Return the first such event after ``after_ns``. TimeoutError after 5 s."""
    await lab.wait_for(lambda: any(e.at_ns >= after_ns and wanted(e) for e in events), 5.0)
    return next(e for e in events if e.at_ns >= after_ns and wanted(e))


def _port_loss_skew(runs: int) -> Measured:
    """Take all ports of a ToR down in one batch and measure when each far end loses carrier, without daemons."""
    fabric = build(PRESETS["small"].spec)
    spaces = wire(fabric, NFT).namespaces
    tor = next(node.name for node in fabric.nodes if node.role is Role.TOR)
    links = fabric.links_of(tor)
    far = [link.far_end(tor) for link in links]
    requests = Netlink(spaces[tor])
    poller = select.poll()
    monitors = {}
    for port in far:
        monitor = Monitor(spaces[port.node], link=True)
        monitors[monitor.fileno()] = (monitor, port.ifindex)
        poller.register(monitor.fileno(), select.POLLIN)
    skews = []
    for _ in range(runs):
        requests.run([rtnl.set_link(link.end_at(tor).ifindex, up=False) for link in links])
        lost_at = _changes(poller, monitors, carrier=False)
        skews.append((max(lost_at) - min(lost_at)) / 1e6)
        requests.run([rtnl.set_link(link.end_at(tor).ifindex, up=True) for link in links])
        _changes(poller, monitors, carrier=True)
    return {"skew_ms": max(skews), "ports": len(links)}


def _changes(poller: select.poll, monitors: dict[int, tuple[Monitor, int]], *, carrier: bool) -> list[int]:
    """Return when each watched port reached that carrier state. MachineError when one does not within 5 s."""
    at_ns: dict[int, int] = {}
    while len(at_ns) < len(monitors):
        ready = poller.poll(5000)
        if not ready:
            raise MachineError("a port's carrier did not follow its far end within 5 s")
        for fd, _ in ready:
            monitor, ifindex = monitors[fd]
            for event in monitor.read():
                if isinstance(event, LinkEvent) and event.ifindex == ifindex and event.carrier is carrier:
                    at_ns.setdefault(fd, event.at_ns)
    return list(at_ns.values())


def elephants() -> Iterator[Figure]:
    """Measure 2 Gbit/s of paced elephants, real packets of path MTU 4096, host to host over ToR, Agg, ToR."""
    found = _in_sandbox(lambda: asyncio.run(carried(_ELEPHANTS_S)))
    yield Figure("elephants over three switches", found["gbps"], "Gbit/s", 2.0 * 0.99, at_least=True, note="wire rate")
    yield Figure("elephants: packets lost", found["lost"], "", 0, note=f"of {found['sent']:.0f}")
    yield Figure("elephants: largest sender pause", found["gap_ms"], "ms")


def _in_sandbox(measure: Callable[[], Measured], *, user_namespace: bool | None = None) -> Measured:
    """Run ``measure`` as first process of a sandbox. MachineError with its message when it fails."""
    return _MEASURED.validate_python(sandbox.ask(measure, user_namespace=user_namespace))
