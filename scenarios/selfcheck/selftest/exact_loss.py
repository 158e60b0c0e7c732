"""Self-test on a lab: steady flows in both directions, and a rule that drops them for exact times, repeatedly.

The drop is at the receiver's ingress, by the fault action that faults use. The clock is read before and after each
change of the rule, so that each truth is an interval. In virtual time it is microseconds wide. Numpy is not loaded
while it runs.
"""

from __future__ import annotations

import asyncio
import gc
import platform
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.faults.actions import Action, LostFrames
from hpn.failover.faults.streams import Direction
from hpn.failover.inject.lab_actions import LabActions
from hpn.failover.sampling.host import HostSampler
from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.scenarios.selfcheck.selftest.sizes import MS, Cut, Pause, Plan
from hpn.testbed.events import Event, now_ns
from hpn.testbed.fabric.model import Fabric, Link, Nic
from hpn.testbed.kernel.process.processes import own_pids, reap_strangers
from hpn.testbed.kernel.timerfd import Ticker
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.flow import SPORT_MIN, FlowSpec
from hpn.traffic.workers.messages import TrafficReport

UP, DOWN = Direction.UP, Direction.DOWN
_PATH_MTU = 1024
_IB_TIMEOUT = 18
"""IB timeout with a total wait of 8.6 s: no queue pair fails by these outages."""
_LEAD_NS = 200 * MS


@dataclass(frozen=True, slots=True)
class DropSpan:
    """Interval of an active rule: from within the first pair of clock readings to within the second."""

    put_before_ns: int
    put_after_ns: int
    lift_before_ns: int
    lift_after_ns: int

    @property
    def shortest_ns(self) -> int:
        """Minimum duration in ns."""
        return self.lift_before_ns - self.put_after_ns

    @property
    def longest_ns(self) -> int:
        """Maximum duration in ns."""
        return self.lift_after_ns - self.put_before_ns


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations of a self-test. ``hit``: flows whose path crosses the drop, by direction; ``cuts`` likewise.

    All other flows must lose nothing.
    """

    fabric: Fabric
    engine: str
    kernel: str
    datapath: str
    flows: tuple[FlowSpec, ...]
    hit: Mapping[Direction, frozenset[int]]
    links: tuple[str, ...]
    cuts: tuple[Mapping[Direction, DropSpan], ...]
    pauses: tuple[Pause | None, ...]  # at each of ``cuts``
    start_ns: int
    end_ns: int
    healthy_ns: int
    tick_ns: int
    report: TrafficReport
    events: Sequence[Event]
    host: HostLoad | None


async def observe(fabric: Fabric, plan: Plan, engine: str, folder: Path) -> Observed:
    """Start a lab, inject the plan's outages into its flows, and return all observations. MachineError."""
    events: list[Event] = []
    lab = Lab.start(fabric, events.append)
    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, lambda: reap_strangers(lab.child_pids()))
    await lab.converged()
    traffic = LabTraffic(lab, flows(fabric, plan), folder, plan.tick_ns)
    sampler, alarm = HostSampler(own_pids), _Alarm()
    try:
        await traffic.start()
        gc.collect()
        gc.freeze()
        sampler.start()
        start_ns = now_ns() + _LEAD_NS
        traffic.engine.begin(start_ns)
        drops = _drops(lab, traffic)
        cuts = [await _cut(lab, traffic, alarm, drops, cut, start_ns) for cut in plan.cuts()]
        await alarm.at(now_ns() + plan.spacing_ns)
        end_ns = now_ns()
        sampler.stop()
        report = await traffic.finish()
    finally:
        sampler.stop()
        alarm.close()
        await traffic.engine.close()
    lab.close()
    return Observed(
        fabric=fabric,
        engine=engine,
        kernel=platform.release(),
        datapath=lab.datapath,
        flows=traffic.flows,
        hit={drop.direction: drop.flows for drop in drops},
        links=tuple(dict.fromkeys(drop.link.name for drop in drops)),
        cuts=tuple(cuts),
        pauses=tuple(cut.pause for cut in plan.cuts()),
        start_ns=start_ns,
        end_ns=end_ns,
        healthy_ns=plan.healthy_ns,
        tick_ns=plan.tick_ns,
        report=report,
        events=events,
        host=sampler.load(start_ns, end_ns),
    )


def flows(fabric: Fabric, plan: Plan) -> tuple[FlowSpec, ...]:
    """Return the plan's flows both ways between the first NICs of two segments; source ports are chosen later."""
    near, far = fabric.nic("p0.s0.h0.r0"), fabric.nic("p0.s1.h0.r0")
    rates = (plan.fast_pps, *[plan.slow_pps] * plan.slow_flows)
    wanted = [(src, dst, rate) for src, dst in ((near, far), (far, near)) for rate in rates]
    return tuple(_flow(number, *ends_and_rate) for number, ends_and_rate in enumerate(wanted))


def _flow(number: int, src: Nic, dst: Nic, rate_pps: float) -> FlowSpec:
    return FlowSpec(
        id=number,
        name=f"{src.name}>{dst.name}#{number}",
        src_nic=src.name,
        dst_nic=dst.name,
        src_ip=src.ip,
        dst_ip=dst.ip,
        sport=SPORT_MIN + number,
        ack_sport=SPORT_MIN + 1000 + number,
        rate_pps=rate_pps,
        path_mtu=_PATH_MTU,
        ib_timeout=_IB_TIMEOUT,
    )


@dataclass(frozen=True, slots=True)
class _Drop:
    """Link where one direction is dropped, and the flows that cross it."""

    direction: Direction
    link: Link
    flows: frozenset[int]


def _drops(lab: Lab, traffic: LabTraffic) -> tuple[_Drop, ...]:
    """Return the drops up and down at the first NIC, each on the link of that direction's fast flow."""
    paths = {flow.id: lab.path(Flow(flow.src_nic, flow.dst_nic, flow.sport)).links for flow in traffic.flows}
    nic = traffic.flows[0].src_nic
    up = [flow for flow in traffic.flows if flow.src_nic == nic]
    down = [flow for flow in traffic.flows if flow.dst_nic == nic]
    found = []
    for direction, ones, place in ((UP, up, 0), (DOWN, down, -1)):
        link = lab.fabric.link(paths[ones[0].id][place])
        crossing = frozenset(flow.id for flow in ones if paths[flow.id][place] == link.name)
        found.append(_Drop(direction, link, crossing))
    return tuple(found)


async def _cut(
    lab: Lab, traffic: LabTraffic, alarm: _Alarm, drops: tuple[_Drop, ...], cut: Cut, start_ns: int
) -> Mapping[Direction, DropSpan]:
    """Drop RoCE packets, and pause the senders, as planned; return the clock around each rule change, by direction."""
    actions = LabActions.of(lab)
    acts = {drop.direction: actions.lose(drop, drop.link, [drop.direction], LostFrames.DATA) for drop in drops}
    at_ns, engine = start_ns + cut.at_ns, traffic.engine
    put: dict[Direction, tuple[int, int]] = {}
    lifted: dict[Direction, tuple[int, int]] = {}

    async def drop() -> None:
        put.update({direction: _put(act) for direction, act in acts.items()})

    async def lift() -> None:
        lifted.update({direction: await _lift(act) for direction, act in acts.items()})

    async def stop() -> None:
        engine.stand_still(True)

    async def go_on() -> None:
        engine.stand_still(False)

    steps = [(at_ns, drop), (at_ns + cut.for_ns, lift)]
    if cut.pause is not None:
        paused_ns = at_ns + cut.pause.from_ns
        steps += [(paused_ns, stop), (paused_ns + cut.pause.for_ns, go_on)]
    for due_ns, step in sorted(steps, key=lambda planned: planned[0]):
        await alarm.at(due_ns)
        await step()
    return {direction: DropSpan(*put[direction], *lifted[direction]) for direction in acts}


def _put(act: Action) -> tuple[int, int]:
    before = now_ns()
    act.do()
    return before, now_ns()


async def _lift(act: Action) -> tuple[int, int]:
    before = now_ns()
    await act.undo()
    return before, now_ns()


class _Alarm:
    """Exact timer: the event loop's own timers are rounded up to whole milliseconds."""

    def __init__(self) -> None:
        self._ticker = Ticker()
        self._loop = asyncio.get_running_loop()

    async def at(self, moment_ns: int) -> None:
        """Sleep until ``moment_ns`` on CLOCK_MONOTONIC."""
        rung = asyncio.Event()
        self._loop.add_reader(self._ticker.fileno(), rung.set)
        self._ticker.start(moment_ns, 0)
        await rung.wait()
        self._loop.remove_reader(self._ticker.fileno())
        self._ticker.take()

    def close(self) -> None:
        """Close the timer."""
        self._ticker.close()
