"""The sending end of a queue pair in a worker: transport, congestion control and packets in flight. PURE."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hpn.traffic.congestion.control import CongestionControl
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.jobengine.egress import run_bytes
from hpn.traffic.jobengine.rehash import Cause, Rounds
from hpn.traffic.jobengine.setup import Incarnation, JobSetup, QueuePair, QueuePairReport
from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.requester import Requester, Run
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.transport.work import Completion, Status, Transport, WorkRequest

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Part:
    """Content of one work request: a message or a part of it. ``post`` identifies it to the rank that posted it."""

    post: int
    words: Words


def earlier(one_ns: int | None, other_ns: int | None) -> int | None:
    """Return the earlier of two moments; None is never."""
    if one_ns is None or other_ns is None:
        return other_ns if one_ns is None else one_ns
    return min(one_ns, other_ns)


class Sender:
    """Sending end of one queue pair. ``next_ns``: its congestion control lets no packet leave before."""

    def __init__(
        self, pair: QueuePair, transport: Transport, control: CongestionControl, rounds: Rounds | None = None
    ) -> None:
        """Create a requester; ``rounds`` decides when it leaves its path; None: never."""
        self.pair = pair
        self.requester = Requester(transport)
        self.control = control
        self.next_ns = 0
        self._paced_bps = control.rate_bps  # that ``next_ns`` was worked out with
        self.died_at_ns: int | None = None
        self.cnps = 0  # congestion notifications handled
        self.leaves: Cause | None = None  # why it is to take another path; reset when handled
        self._probe_due = False
        self._unprobed_bytes: int | None = None  # sent since the last probe; None: there was none
        self._rounds = rounds
        self._sent = self._told = 0  # absolute PSNs: all below has left; all below was counted in rounds
        self._path_mtu = transport.path_mtu
        self._packet_bytes = wire_bytes(transport.path_mtu)
        self._parts: dict[int, Part] = {}  # by work request
        self._requests = 0
        self._in_flight: deque[tuple[int, int]] = deque()  # PSN after a run, its send time; no retransmissions
        self._bytes_acknowledged = 0

    @property
    def rate_bps(self) -> float:
        """Rate that congestion control allows, on the wire."""
        return self.control.rate_bps

    @property
    def sendable(self) -> bool:
        """True if a packet may be sent now."""
        return self.requester.sendable

    def post(self, part: Part, size_bytes: int, address: int, immediate: int | None, now_ns: int) -> None:
        """Post a work request. ValueError when the queue pair is not ready."""
        request = WorkRequest(self._requests, size_bytes, address, immediate)
        self.requester.post(request, now_ns)
        self._parts[request.id] = part
        self._requests += 1

    def take(self, most_packets: int, now_ns: int) -> tuple[list[Run], int]:
        """Return the next packets, which leave now, and their bytes."""
        runs, taken = self.requester.take(most_packets, now_ns), 0
        for run in runs:
            if run.again:
                self._in_flight.clear()  # an acknowledgement no longer identifies the copy (Karn)
            else:
                self._in_flight.append((run.psn + run.count, now_ns))
                self._sent = run.psn + run.count
            bytes_ = run_bytes(run, self._path_mtu)
            self.control.on_sent(bytes_, now_ns)
            taken += bytes_
        if runs and self.control.probe_bytes is not None:
            self._count_to_probe(taken, self.control.probe_bytes)
        self._pace(now_ns)
        if self._rounds is not None and runs:
            self._rounds.on_sent(self._sent)
        return runs, taken

    def probes(self) -> bool:
        """Return True, once, if a probe is to follow the packets just taken."""
        due, self._probe_due = self._probe_due, False
        return due

    def words(self, run: Run) -> Words:
        """Return the words of a run's packets."""
        return self._parts[run.request.id].words[run.first : run.first + run.count]

    def on_ack(self, psn24: int, now_ns: int, becn: bool = False) -> list[tuple[Part, Completion]]:
        """Handle the acknowledgement of everything up to ``psn24``; ``becn``: with congestion marks."""
        ended = self._heard(self.requester.on_ack, psn24, now_ns)
        progress = self.requester.progress()
        if self._rounds is not None and progress > self._told:
            cause = self._rounds.on_acked(progress - self._told, becn, progress, self._sent, now_ns)
            self.leaves = cause or self.leaves
            self._told = progress
        return ended

    def on_nak(self, psn24: int, now_ns: int) -> list[tuple[Part, Completion]]:
        """Handle a NAK: the other end misses ``psn24``."""
        return self._heard(self.requester.on_nak, psn24, now_ns)

    def on_refused(self, why: Status, now_ns: int) -> list[tuple[Part, Completion]]:
        """Handle a permanent refusal of a request by the other end."""
        return self._ended(self.requester.on_refused(why, now_ns), now_ns)

    def on_cnp(self, now_ns: int) -> None:
        """Handle a congestion notification: marked packets have reached the other end."""
        self.cnps += 1
        self.control.on_cnp(now_ns)
        self._pace(now_ns)

    def on_telemetry(self, telemetry: Telemetry, now_ns: int) -> None:
        """Handle the echo of a probe."""
        self.control.on_telemetry(telemetry.hops, now_ns - telemetry.sent_ns, now_ns)
        self._pace(now_ns)

    def deadline_ns(self) -> int | None:
        """Return when ``on_timer`` is due: the earlier of retry timer and congestion control."""
        control_ns = self.control.next_ns()
        retry_ns = self.requester.deadline_ns()
        return retry_ns if control_ns is None else earlier(retry_ns, control_ns)

    def on_timer(self, now_ns: int) -> list[tuple[Part, Completion]]:
        """Advance time."""
        control_ns = self.control.next_ns()
        if control_ns is not None and control_ns <= now_ns:
            self.control.on_timer(now_ns)
            self._pace(now_ns)
        retry_ns = self.requester.deadline_ns()
        if retry_ns is None or retry_ns > now_ns:
            return []
        self.control.on_timeout(now_ns)
        self._pace(now_ns)
        ended = self._ended(self.requester.on_timer(now_ns), now_ns)
        if self._rounds is not None and self.requester.state is QpState.READY:
            self.leaves = self._rounds.on_timeout(now_ns)
        return ended

    def close(self, now_ns: int) -> None:
        """Close for its owner: nothing is sent or retried any more."""
        self.requester.close(now_ns)
        self._parts.clear()

    def report(self) -> QueuePairReport:
        """Return the report of this queue pair."""
        counted = self.requester.counters
        return QueuePairReport(
            self.pair.flow.id, counted.packets, counted.packets_again, self._bytes_acknowledged, self.died_at_ns
        )

    def _count_to_probe(self, sent_bytes: int, probe_bytes: int) -> None:
        unprobed = probe_bytes if self._unprobed_bytes is None else self._unprobed_bytes + sent_bytes
        self._probe_due = unprobed >= probe_bytes
        self._unprobed_bytes = 0 if self._probe_due else unprobed

    def _heard(
        self, hear: Callable[[int, int], list[Completion]], psn24: int, now_ns: int
    ) -> list[tuple[Part, Completion]]:
        before = self.requester.progress()
        done = hear(psn24, now_ns)
        self._acknowledged(before, now_ns)
        return self._ended(done, now_ns)

    def _acknowledged(self, before: int, now_ns: int) -> None:
        packets = self.requester.progress() - before
        if packets <= 0 or self.requester.state is not QpState.READY:
            return
        left_ns = None
        while self._in_flight and self._in_flight[0][0] <= self.requester.progress():
            left_ns = self._in_flight.popleft()[1]
        rtt_ns = None if left_ns is None else now_ns - left_ns
        self.control.on_acked(packets * self._packet_bytes, rtt_ns, now_ns)
        self._pace(now_ns)

    def _pace(self, now_ns: int) -> None:
        """Apply a rate change at once: the remaining wait at the old rate is scaled to the new one.

        Otherwise a queue pair at its minimum waits for its one packet although it may send a thousand times as fast.
        Adapters' token buckets do so, and simulators of DCQCN (High-Precision-Congestion-Control, rdma-hw.cc,
        ``ChangeRate``).
        """
        rate_bps, paced_bps = self.control.rate_bps, self._paced_bps
        if rate_bps != paced_bps:
            self._paced_bps = rate_bps
            if self.next_ns > now_ns:
                self.next_ns = now_ns + round((self.next_ns - now_ns) * paced_bps / max(rate_bps, 1.0))

    def _ended(self, done: list[Completion], now_ns: int) -> list[tuple[Part, Completion]]:
        if self.requester.state is QpState.ERROR and self.died_at_ns is None:
            self.died_at_ns = now_ns
        if not done:
            return []
        ended = [(self._parts.pop(each.request.id), each) for each in done]
        self._bytes_acknowledged += sum(e.request.size_bytes for _, e in ended if e.status is Status.SUCCESS)
        return ended


def port_rate_bps(setup: JobSetup, nic: str) -> int:
    """Return the highest rate of a queue pair of that NIC: the rate of one port."""
    return max(setup.port_rate_bps[nic])


def sending_end(setup: JobSetup, pair: QueuePair, life: Incarnation) -> Sender:
    """Return the sending end of a job's queue pair."""
    control = setup.control.control(port_rate_bps(setup, pair.flow.src_nic), setup.scale)
    policy = setup.rehash
    if policy is None:
        return Sender(pair, setup.transport, control)
    draw = random.Random(f"{policy.seed} {pair.flow.id} {life.number} suspended")
    return Sender(pair, setup.transport, control, Rounds(policy, draw))
