"""Cost of steering by destination when a ToR loses a whole plane of destinations: the real agents, no kernel.

CPU times are those of this process. There are a ToR and a few of its hosts, which send no registered traffic: each
learns every destination from the ToR. The cost of nftables is not included.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from hpn.results.text.figure import Figure
from hpn.testbed.fabric.spec import PathControlSpec
from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_MAIN, RTN_UNICAST
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, RouteEvent
from hpn.testbed.routing.pathcontrol.actions import Action, Send, Steer
from hpn.testbed.routing.pathcontrol.destinations import Destinations, HostSettings
from hpn.testbed.routing.pathcontrol.steering import ALSO, SteeringAgent
from hpn.testbed.routing.pathcontrol.tor_agent import TorAgent

DESTINATIONS = 1000
HOSTS = 8

_PORTS = ("p0", "p1")
_UPLINK, _FIRST_ACCESS = 1, 1000
_MS = 1_000_000
_HEADERS, _SHORTEST = 18, 64  # Ethernet header and checksum; shorter frames are padded

_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True)
class SteeringCost:
    """CPU times in ms: of the ToR for all hosts together, and of the median host."""

    steered: int  # destinations of one host
    notices: int  # frames to one host
    tor_loss_ms: float
    host_loss_ms: float
    refresh_octets: int  # between one host and the ToR, both directions
    tor_refresh_ms: float
    host_refresh_ms: float


def figures(runs: int = 3) -> Iterator[Figure]:
    """Yield the cost with a thousand destinations; CPU times are those of this machine, now."""
    found = measure(HOSTS, DESTINATIONS, runs)
    size = f"{DESTINATIONS:,} destinations, {HOSTS} hosts; no system calls"
    yield Figure("plane lost: CPU of a host that steers", found.host_loss_ms, "ms", note=size)
    share = 100 * found.host_refresh_ms / PathControlSpec().refresh_ms
    yield Figure("refresh: CPU of a host that steers", share, "% of a core", note=f"{found.refresh_octets:,} bytes")


def measure(hosts: int, destinations: int, runs: int) -> SteeringCost:
    """Return the median of each time over several runs."""
    gc.collect()
    gc.disable()  # a full collection would be charged to a random node
    try:
        found = [_one(hosts, [f"10.{1 + n // 250}.0.{1 + n % 250}" for n in range(destinations)]) for _ in range(runs)]
    finally:
        gc.enable()
    return SteeringCost(
        steered=found[0].steered,
        notices=found[0].notices,
        tor_loss_ms=median(cost.tor_loss_ms for cost in found),
        host_loss_ms=median(cost.host_loss_ms for cost in found),
        refresh_octets=found[0].refresh_octets,
        tor_refresh_ms=median(cost.tor_refresh_ms for cost in found),
        host_refresh_ms=median(cost.host_refresh_ms for cost in found),
    )


class _Stopwatch:
    """CPU time of one node's work."""

    def __init__(self) -> None:
        self.ms = 0.0

    def run(self, work: Callable[[], _Done]) -> _Done:
        """Run ``work`` and add its CPU time."""
        begun_ns = time.process_time_ns()
        done = work()
        self.ms += (time.process_time_ns() - begun_ns) / _MS
        return done


class _Rack:
    """ToR with a route to every destination, and hosts that have learned all of them from it."""

    def __init__(self, hosts: int, ips: Sequence[str]) -> None:
        control = PathControlSpec()
        self.now_ns = 0
        self.octets = 0
        self.tor = TorAgent({f"h{n}": _FIRST_ACCESS + n for n in range(hosts)}, 1, control.gather_ms)
        self.tor.resync([LinkEvent(0, _UPLINK, "up0", True, True, False)], routes(ips, gone=False), 0)
        settings = HostSettings(control.refresh_ms, control.hold_ms, control.hold_max_ms)
        self.hosts = [SteeringAgent("", _PORTS, Destinations(f"h{n}", _PORTS, settings, 0, ALSO)) for n in range(hosts)]
        for n, host in enumerate(self.hosts):
            self.exchange(n, host.set_active(_PORTS, 0), _Stopwatch(), _Stopwatch())

    def exchange(self, n: int, actions: Sequence[Action], tor: _Stopwatch, host: _Stopwatch) -> None:
        """Deliver a host's frames from its first port to the ToR and the answers back, until no frame is pending."""
        waiting = [action for action in actions if isinstance(action, Send) and action.port == _PORTS[0]]
        while waiting:
            ask = waiting.pop(0)
            answers = tor.run(lambda ask=ask: self.tor.on_frame(f"h{n}", ask.payload, self.now_ns))  # type: ignore[misc]  # early binding
            self.octets += sum(_octets(send) for send in (ask, *answers))
            for answer in answers:
                more = host.run(lambda answer=answer: self.hosts[n].on_frame(_PORTS[0], answer.payload, self.now_ns))  # type: ignore[misc]  # early binding
                waiting += [action for action in more if isinstance(action, Send) and action.port == _PORTS[0]]


def _one(hosts: int, ips: Sequence[str]) -> SteeringCost:
    rack = _Rack(hosts, ips)
    rack.now_ns, rack.octets = 1000 * _MS, 0
    asking, answering = [_Stopwatch() for _ in rack.hosts], _Stopwatch()
    for n, host in enumerate(rack.hosts):
        actions = asking[n].run(lambda host=host: host.on_timer(rack.now_ns))  # type: ignore[misc]  # early binding
        rack.exchange(n, actions, answering, asking[n])
    octets = rack.octets
    rack.now_ns += 100 * _MS
    tor, clocks = _Stopwatch(), [_Stopwatch() for _ in rack.hosts]
    sends = tor.run(lambda: rack.tor.on_events(routes(ips, gone=True), rack.now_ns))
    while (due_ns := rack.tor.deadline_ns) is not None and due_ns < rack.now_ns + 100 * _MS:  # remainder of bursts
        rack.now_ns = due_ns
        sends += tor.run(lambda: rack.tor.on_timer(rack.now_ns))
    steered = 0
    for n, host in enumerate(rack.hosts):
        for send in [send for send in sends if send.port == f"h{n}"]:
            actions = clocks[n].run(lambda host=host, send=send: host.on_frame(_PORTS[0], send.payload, rack.now_ns))  # type: ignore[misc]  # early binding
            steered += sum(isinstance(action, Steer) for action in actions)
    return SteeringCost(
        steered=steered // hosts,
        notices=len(sends) // hosts,
        tor_loss_ms=tor.ms,
        host_loss_ms=median(clock.ms for clock in clocks),
        refresh_octets=octets // hosts,
        tor_refresh_ms=answering.ms,
        host_refresh_ms=median(clock.ms for clock in asking),
    )


def routes(ips: Sequence[str], *, gone: bool) -> list[RouteEvent]:
    """Return the events that the ToR's monitor reads when host routes come or go."""
    return [RouteEvent(0, f"{ip}/32", RT_TABLE_MAIN, 12, RTN_UNICAST, (_UPLINK,), gone, 32) for ip in ips]


def _octets(send: Send) -> int:
    return max(_SHORTEST, len(send.payload) + _HEADERS)
