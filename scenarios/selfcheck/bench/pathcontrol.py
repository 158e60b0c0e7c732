"""Cost of path control when a ToR's hosts lose a whole plane at once: the real agents in this process, no kernel.

Every node has a CPU like this machine's. Its clock advances by the CPU time of its agent, and by the waits that the
agent requests. System calls and cables are left out; the drills measure those.
"""

from __future__ import annotations

import gc
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from socket import inet_aton
from statistics import median
from typing import TypeVar

from hpn.results.text.figure import Figure
from hpn.testbed.fabric.spec import PathControlSpec
from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_MAIN, RTN_UNICAST
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, RouteEvent
from hpn.testbed.lag.jhash import nft_jhash
from hpn.testbed.routing.pathcontrol.actions import Action, Move, Send
from hpn.testbed.routing.pathcontrol.destinations import HostSettings
from hpn.testbed.routing.pathcontrol.host_agent import Connection, HostAgent
from hpn.testbed.routing.pathcontrol.tor_agent import TorAgent

SIZES = ((2, 8), (8, 8), (32, 8), (128, 8), (128, 32), (128, 100))
"""Hosts on the ToR and queue pairs of each; the last size is a ToR of the paper."""

REMOTE = tuple(f"10.1.0.{n}" for n in range(1, 129))
"""Destinations: the NICs of the same rail in another segment, whose ToR in this plane is lost."""

_Done = TypeVar("_Done", bound=Action)
_PORTS = ("p0", "p1")
_UPLINK, _FIRST_ACCESS = 1, 1000
_MS = 1_000_000
_LOSS_NS = 100 * _MS  # after the hosts have sent their interest, before they refresh it
_READING_NS = 20_000  # interval of the ToR's monitor when routes are withdrawn one by one
_HEADERS, _SHORTEST = 18, 64  # Ethernet header and checksum; shorter frames are padded


@dataclass(frozen=True, slots=True)
class PlaneLoss:
    """Cost of one loss of a plane: times in ms, traffic between the ToR and all its hosts; CPU of the busiest host."""

    moved: int  # queue pairs of all hosts
    notices: int  # frames
    notice_octets: int
    tor_cpu_ms: float
    host_cpu_ms: float
    last_move_ms: float  # since the ToR's FIB began to change
    refresh_octets: int  # both directions, per refresh
    refresh_tor_cpu_ms: float
    refresh_host_cpu_ms: float


class _Clock:
    """Clock of one node."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.cpu_ns = 0

    def run(self, at_ns: int, work: Callable[[int], Sequence[_Done]]) -> Sequence[_Done]:
        """Run the agent, not before ``at_ns`` nor before its last work is done."""
        self.now_ns = max(self.now_ns, at_ns)
        begun_ns = time.process_time_ns()
        actions = work(self.now_ns)
        spent_ns = time.process_time_ns() - begun_ns
        self.now_ns += spent_ns
        self.cpu_ns += spent_ns
        return actions


_Sent = list[tuple[int, Send]]
"""Frames with the time at which each left."""


def figures(runs: int = 5) -> Iterator[Figure]:
    """Yield the cost at the paper's scale; CPU times are those of this machine, now."""
    hosts, queue_pairs = SIZES[-1]
    found = measure(hosts, queue_pairs, runs)
    size = f"{hosts} hosts x {queue_pairs} queue pairs, {found.moved:,} moved; no system calls"
    yield Figure("plane lost: last queue pair moved", found.last_move_ms, "ms", 100, note=size)
    yield Figure("plane lost: notices", found.notices, "", hosts, note=f"{found.notice_octets:,} bytes in all")
    yield Figure("plane lost: CPU of the ToR", found.tor_cpu_ms, "ms")
    yield Figure("plane lost: CPU of the busiest host", found.host_cpu_ms, "ms")
    refresh_ms = PathControlSpec().refresh_ms
    share = 100 * found.refresh_tor_cpu_ms / refresh_ms
    yield Figure("refresh: CPU of the ToR", share, "% of a core", 20, note=f"every {refresh_ms} ms")


def measure(hosts: int, queue_pairs: int, runs: int, *, one_by_one: bool = False) -> PlaneLoss:
    """Return the median of each figure. ``one_by_one``: True if the ToR's monitor reads every withdrawal separately."""
    found = [_one(hosts, queue_pairs, one_by_one=one_by_one) for _ in range(runs)]

    def middle(figure: Callable[[PlaneLoss], float]) -> float:
        return float(median(figure(loss) for loss in found))

    return PlaneLoss(
        moved=found[0].moved,
        notices=round(middle(lambda loss: loss.notices)),
        notice_octets=round(middle(lambda loss: loss.notice_octets)),
        tor_cpu_ms=middle(lambda loss: loss.tor_cpu_ms),
        host_cpu_ms=middle(lambda loss: loss.host_cpu_ms),
        last_move_ms=middle(lambda loss: loss.last_move_ms),
        refresh_octets=found[0].refresh_octets,
        refresh_tor_cpu_ms=middle(lambda loss: loss.refresh_tor_cpu_ms),
        refresh_host_cpu_ms=middle(lambda loss: loss.refresh_host_cpu_ms),
    )


def _one(hosts: int, queue_pairs: int, *, one_by_one: bool) -> PlaneLoss:
    rack = _Rack(hosts, queue_pairs)
    gc.collect()
    gc.disable()  # a full collection would be charged to a random node
    try:
        return rack.lose_plane(one_by_one=one_by_one)
    finally:
        gc.enable()


class _Rack:
    """ToR with a route to every remote NIC, and its hosts, whose queue pairs are spread over these NICs."""

    def __init__(self, hosts: int, queue_pairs: int) -> None:
        control = PathControlSpec()
        ports = {f"h{n}": _FIRST_ACCESS + n for n in range(hosts)}
        self.tor = TorAgent(ports, epoch=1, gather_ms=control.gather_ms)
        self.tor.resync([LinkEvent(0, _UPLINK, "up0", True, True, False)], [_route(ip, gone=False) for ip in REMOTE], 0)
        settings = HostSettings(control.refresh_ms, control.hold_ms, control.hold_max_ms)
        self.hosts = [HostAgent(f"h{n}", _PORTS, settings, _lag(n)) for n in range(hosts)]
        for n, host in enumerate(self.hosts):
            host.set_active(_PORTS, 0)
            targets = [REMOTE[(n + k) % len(REMOTE)] for k in range(queue_pairs)]
            made = [Connection(k, ip, 4791, 0xC000 + 37 * k) for k, ip in enumerate(targets)]
            self._exchange(n, [a for a in host.add(made, 0) if isinstance(a, Send)], _Clock(0), _Clock(0))

    def lose_plane(self, *, one_by_one: bool) -> PlaneLoss:
        """Withdraw all remote routes; then let every host refresh its interest once."""
        tor = _Clock(_LOSS_NS)
        sent = self._withdraw(tor, [(ip,) for ip in REMOTE] if one_by_one else [REMOTE])
        clocks = [_Clock(_LOSS_NS) for _ in self.hosts]
        moved, last_ns = 0, _LOSS_NS
        for n, clock in enumerate(clocks):
            arrived = [(at_ns, send.payload) for at_ns, send in sent if send.port == f"h{n}"]
            moves = self._hear(n, clock, arrived)
            moved += len(moves)
            last_ns = max([last_ns, *moves])
        asking, answering = [_Clock(10**9) for _ in self.hosts], _Clock(10**9)
        octets = 0
        for n, clock in enumerate(asking):
            actions = clock.run(10**9, self.hosts[n].on_timer)
            octets += self._exchange(n, [a for a in actions if isinstance(a, Send)], answering, clock)
        return PlaneLoss(
            moved=moved,
            notices=len(sent),
            notice_octets=sum(_octets(send) for _, send in sent),
            tor_cpu_ms=tor.cpu_ns / _MS,
            host_cpu_ms=max(clock.cpu_ns for clock in clocks) / _MS,
            last_move_ms=(last_ns - _LOSS_NS) / _MS,
            refresh_octets=octets,
            refresh_tor_cpu_ms=answering.cpu_ns / _MS,
            refresh_host_cpu_ms=max(clock.cpu_ns for clock in asking) / _MS,
        )

    def _withdraw(self, clock: _Clock, readings: Sequence[Sequence[str]]) -> _Sent:
        """Let the ToR read the losses and send notices until nothing is pending."""
        sent: _Sent = []
        for at, ips in enumerate(readings):
            due_ns = _LOSS_NS + at * _READING_NS
            self._tell(clock, due_ns, sent)
            events = [_route(ip, gone=True) for ip in ips]
            sends = clock.run(due_ns, lambda now_ns, events=events: self.tor.on_events(events, now_ns))  # type: ignore[misc]  # early binding
            sent += [(clock.now_ns, send) for send in sends]
        self._tell(clock, 2 * _LOSS_NS, sent)
        return sent

    def _tell(self, clock: _Clock, before_ns: int, sent: _Sent) -> None:
        """Run the ToR's timers that are due before ``before_ns``."""
        while (due_ns := self.tor.deadline_ns) is not None and due_ns < before_ns:
            sends = clock.run(due_ns, self.tor.on_timer)
            sent += [(clock.now_ns, send) for send in sends]

    def _hear(self, n: int, clock: _Clock, arrived: Sequence[tuple[int, bytes]]) -> list[int]:
        """Return when each queue pair of a host moved."""
        host, moves = self.hosts[n], []
        for at_ns, payload in arrived:
            actions = clock.run(at_ns, lambda now_ns, payload=payload: host.on_frame(_PORTS[0], payload, now_ns))  # type: ignore[misc]  # early binding
            moves += [clock.now_ns for action in actions if isinstance(action, Move)]
        while (due_ns := host.deadline_ns) is not None and due_ns < 2 * _LOSS_NS:
            actions = clock.run(due_ns, host.on_timer)
            moves += [clock.now_ns for action in actions if isinstance(action, Move)]
        return moves

    def _exchange(self, n: int, asks: Sequence[Send], tor: _Clock, host: _Clock) -> int:
        """Deliver a host's INTEREST and the ToR's answers; return the bytes on the cable."""
        octets = 0
        for ask in asks:
            if ask.port == _PORTS[0]:
                octets += _octets(ask)
                answers = tor.run(tor.now_ns, lambda at_ns, ask=ask: self.tor.on_frame(f"h{n}", ask.payload, at_ns))  # type: ignore[misc]  # early binding
                for answer in answers:
                    octets += _octets(answer)
                    payload = answer.payload
                    host.run(tor.now_ns, lambda at, payload=payload: self.hosts[n].on_frame(_PORTS[0], payload, at))  # type: ignore[misc]  # early binding
        return octets


def _lag(host: int) -> Callable[[int, str, int, Sequence[str]], str]:
    """Return the hash of the nft datapath."""
    source = inet_aton(f"10.0.0.{host + 1}")

    def port_for(sport: int, dst_ip: str, dport: int, active: Sequence[str]) -> str:
        key = source + inet_aton(dst_ip) + struct.pack("!HxxHxx", sport, dport)
        return active[nft_jhash(key, len(active), host + 1)]

    return port_for


def _route(ip: str, *, gone: bool) -> RouteEvent:
    return RouteEvent(0, f"{ip}/32", RT_TABLE_MAIN, 12, RTN_UNICAST, (_UPLINK,), gone, 32)


def _octets(send: Send) -> int:
    return max(_SHORTEST, len(send.payload) + _HEADERS)
