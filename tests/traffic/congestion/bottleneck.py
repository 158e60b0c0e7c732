"""A bottleneck to try congestion controls on: n senders, one queue with a marker, packets. Pure and without a kernel.

    sender 0 --\\
    sender 1 ---- queue (rate, limit, marker) ---- receiver --ACK, CNP after ``delay_ns``--> senders

A packet that finds no room is lost or, with ``trims``, its sender hears of it without waiting in the queue. A packet
carries the telemetry of a sender that asks for it, as it leaves the queue. Acknowledgements name marked packets.

Times are kept on a grid of ``grid_ns``: with one of ``longer`` ns two scales round alike, so that they can be compared.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hpn.testbed.fabric.marking import Marker
from hpn.traffic.congestion.admission import AdmissionReceiver, AdmissionSender
from hpn.traffic.congestion.control import CongestionControl
from hpn.traffic.congestion.dcqcn import DcqcnParameters
from hpn.traffic.congestion.hop import Hop
from hpn.traffic.congestion.notifier import Notifier
from hpn.traffic.congestion.parameter_sets import PARAMETERS

MESSAGES, MESSAGE_BYTES = 400, 1 << 20


def dcqcn(name: str) -> DcqcnParameters:
    """The values of a parameter set of DCQCN."""
    values = PARAMETERS[name].values
    assert isinstance(values, DcqcnParameters)
    return values


@dataclass
class Outcome:
    """What happened; shares and queue after ``warm_ns`` only."""

    sent: list[int]  # packets of each sender
    delivered: list[int]
    drops: int = 0  # in the whole run
    marks: int = 0
    cnps_sent: int = 0
    cnps_handled: int = 0
    delivered_late: list[int] = field(default_factory=list)
    drops_late: int = 0
    queue: list[float] = field(default_factory=list)  # bytes, at each departure
    trajectory: list[tuple[int, int, float]] = field(default_factory=list)  # grid time, sender, rate / line rate

    def queue_at(self, quantile: float) -> float:
        """Bytes that wait at most, that share of departures."""
        return sorted(self.queue)[int(quantile * (len(self.queue) - 1))]


@dataclass
class Bottleneck:
    """The network: rates of the queue and of every sender's port, sizes, delays."""

    rate_bps: float
    limit_bytes: float
    marker: Marker | None
    delay_ns: int  # from a departure to the sender's knowledge of it
    frame_bytes: float = 4200
    grid_ns: int = 1
    seed: int = 1
    trims: bool = False  # what finds no room

    def run(
        self,
        controls: Sequence[CongestionControl],
        notifiers: Sequence[Notifier | None],
        until_ns: int,
        warm_ns: int = 0,
        receiver: AdmissionReceiver | None = None,
    ) -> Outcome:
        """All senders have endless work from 0 on, a fraction of a packet apart; a ``receiver`` has to grant it."""
        run = _Run(self, controls, notifiers, until_ns, warm_ns)
        return run.run() if receiver is None else run.run_granted(receiver)


class _Run:
    def __init__(
        self,
        net: Bottleneck,
        controls: Sequence[CongestionControl],
        notifiers: Sequence[Notifier | None],
        until_ns: int,
        warm_ns: int,
    ) -> None:
        self._net, self._controls, self._notifiers = net, controls, notifiers
        self._until_ns, self._warm_ns = until_ns, warm_ns
        self._random = random.Random(net.seed)
        self._events: list[tuple[int, int, Callable[..., None], tuple[int, ...]]] = []
        self._count = 0
        self._backlog = 0.0
        self._free_ns = 0
        n = len(controls)
        self._out = Outcome([0] * n, [0] * n, delivered_late=[0] * n)
        self._receiver: AdmissionReceiver | None = None
        self._senders = [AdmissionSender() for _ in controls]
        self._credit: list[float] | None = None  # bytes granted and not sent; None: all may be
        self._under_way = [deque[tuple[int, int]]() for _ in controls]  # granted: tag and offset of each frame
        self._idle: list[bool] = []
        self._next = [0] * n
        self._unprobed = [float("inf")] * n  # bytes since the last probe
        self._through = 0.0  # bytes
        self._paced_bps = [control.rate_bps for control in controls]
        self._frame_ns = self._grid(net.frame_bytes * 8e9 / net.rate_bps)

    def run(self) -> Outcome:
        for i in range(len(self._controls)):
            self._at(self._grid(self._frame_ns * i / len(self._controls)), self._send, i)
        while self._events and self._events[0][0] <= self._until_ns:
            now, _, act, arguments = heapq.heappop(self._events)
            act(now, *arguments)
        return self._out

    def run_granted(self, receiver: AdmissionReceiver) -> Outcome:
        self._receiver = receiver
        for tag in range(MESSAGES):
            for i, sender in enumerate(self._senders):
                receiver.expect(i, tag, MESSAGE_BYTES, (tag, i))
                sender.post(0, tag, MESSAGE_BYTES)
        self._credit = [0.0] * len(self._controls)
        self._idle = [False] * len(self._controls)
        self._grant(0)
        return self.run()

    def _grant(self, now: int) -> None:
        while self._receiver is not None and (grant := self._receiver.next_grant()) is not None:
            self._at(now + self._net.delay_ns, self._granted, grant.peer, grant.tag, grant.up_to)

    def _granted(self, now: int, i: int, tag: int, up_to: int) -> None:
        part = self._senders[i].on_grant(0, tag, up_to)
        assert part is not None
        assert self._credit is not None
        self._credit[i] += part.size_bytes
        stop = part.offset + part.size_bytes
        self._under_way[i] += [(tag, at) for at in range(part.offset, stop, round(self._net.frame_bytes))]
        if self._idle[i]:
            self._idle[i] = False
            self._send(now, i)

    def _grid(self, ns: float) -> int:
        return round(ns / self._net.grid_ns) * self._net.grid_ns

    def _at(self, at_ns: int, act: Callable[..., None], *arguments: int) -> None:
        self._count += 1
        heapq.heappush(self._events, (at_ns, self._count, act, arguments))

    def _pace(self, now: int, i: int) -> None:
        """What was left to wait at the old rate is waited for at the new one."""
        rate_bps, left_ns = self._controls[i].rate_bps, self._next[i] - now
        if rate_bps != self._paced_bps[i] and left_ns > 0:
            self._next[i] = now + max(self._grid(left_ns * self._paced_bps[i] / rate_bps), self._net.grid_ns)
            self._at(self._next[i], self._send, i)
        self._paced_bps[i] = rate_bps

    def _send(self, now: int, i: int) -> None:
        control, net = self._controls[i], self._net
        if now < self._next[i]:
            return  # its rate has changed since
        if self._credit is not None:
            if self._credit[i] < net.frame_bytes:
                self._idle[i] = True
                return
            self._credit[i] -= net.frame_bytes
        self._out.sent[i] += 1
        if self._backlog + net.frame_bytes > net.limit_bytes:
            self._out.drops += 1
            self._out.drops_late += now >= self._warm_ns
            if net.trims:
                self._at(now + net.delay_ns, self._trimmed, i)
        else:
            marked = net.marker is not None and self._random.random() < net.marker.share(self._backlog)
            self._out.marks += marked
            self._backlog += net.frame_bytes
            self._free_ns = max(self._free_ns, now) + self._frame_ns
            self._at(self._free_ns, self._depart, i, now, marked, self._probes(i))
        control.on_sent(round(net.frame_bytes), now)
        self._paced_bps[i] = control.rate_bps
        self._next[i] = now + max(self._grid(net.frame_bytes * 8e9 / control.rate_bps), net.grid_ns)
        self._at(self._next[i], self._send, i)

    def _probes(self, i: int) -> bool:
        every = self._controls[i].probe_bytes
        self._unprobed[i] += self._net.frame_bytes
        due = every is not None and self._unprobed[i] >= every
        if due:
            self._unprobed[i] = 0
        return due

    def _depart(self, now: int, i: int, sent_ns: int, marked: int, probes: int) -> None:
        out, notifier = self._out, self._notifiers[i]
        self._backlog -= self._net.frame_bytes
        self._through += self._net.frame_bytes
        if probes:
            state = (i, sent_ns, round(self._through), round(self._backlog), now)
            self._at(now + self._net.delay_ns, self._echoed, *state)
        out.delivered[i] += 1
        if now >= self._warm_ns:
            out.delivered_late[i] += 1
            out.queue.append(self._backlog)
        if marked and notifier is not None:
            notifier.on_marked(now)
            due = notifier.next_ns()
            if due is not None:
                self._at(max(due, now), self._notify, i)
        if self._receiver is not None:
            tag, offset = self._under_way[i].popleft()
            self._receiver.on_received(i, tag, offset, round(self._net.frame_bytes))
            self._grant(now)
        self._at(now + self._net.delay_ns, self._acked, i, sent_ns, marked)

    def _notify(self, now: int, i: int) -> None:
        notifier = self._notifiers[i]
        if notifier is not None and notifier.on_timer(now):
            self._out.cnps_sent += 1
            self._at(now + self._net.delay_ns, self._cnp, i)

    def _cnp(self, now: int, i: int) -> None:
        self._out.cnps_handled += 1
        self._controls[i].on_cnp(now)
        self._note(now, i)

    def _trimmed(self, now: int, i: int) -> None:
        self._controls[i].on_trimmed(round(self._net.frame_bytes), now)
        self._note(now, i)

    def _acked(self, now: int, i: int, sent_ns: int, marked: int) -> None:
        control = self._controls[i]
        before = control.rate_bps
        if marked:
            control.on_marked(round(self._net.frame_bytes), now)
        control.on_acked(round(self._net.frame_bytes), now - sent_ns, now)
        if control.rate_bps != before:
            self._note(now, i)

    def _echoed(self, now: int, i: int, sent_ns: int, through: int, backlog: int, left_ns: int) -> None:
        hop = Hop(left_ns, through, backlog, round(self._net.rate_bps))
        self._controls[i].on_telemetry((hop,), now - sent_ns, now)
        self._note(now, i)

    def _timer(self, now: int, i: int) -> None:
        due = self._controls[i].next_ns()
        if due is not None and due <= now:
            self._controls[i].on_timer(now)
            self._note(now, i)

    def _note(self, now: int, i: int) -> None:
        control = self._controls[i]
        self._pace(now, i)
        self._out.trajectory.append((now // self._net.grid_ns, i, control.rate_bps / self._net.rate_bps))
        due = control.next_ns()
        if due is not None:
            self._at(max(due, now), self._timer, i)
