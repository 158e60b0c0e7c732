"""The sending end of a reliable connection in a worker: transport, congestion control and packets in flight. PURE."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence

from hpn.traffic.congestion.control import CongestionControl
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.jobengine.multipath_sender import MultipathSender
from hpn.traffic.jobengine.rehash import Rounds
from hpn.traffic.jobengine.sending_end import Ended, SendingEnd, Turn, earlier
from hpn.traffic.jobengine.setup import Incarnation, JobSetup, QueuePair
from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.requester import Requester, Retry, Run
from hpn.traffic.transport.work import Completion, Transport


class Sender(SendingEnd):
    """Sending end of one queue pair that takes one path at a time.

    ``next_ns``: its congestion control lets no packet leave before.
    """

    requester: Requester

    def __init__(
        self, pair: QueuePair, transport: Transport, control: CongestionControl, rounds: Rounds | None = None
    ) -> None:
        """Create a requester; ``rounds`` decides when it leaves its path; None: never."""
        super().__init__(pair, transport, control)
        self.requester = Requester(transport)
        self.next_ns = 0
        self._probe_due = False
        self._unprobed_bytes: int | None = None  # sent since the last probe; None: there was none
        self._rounds = rounds
        self._sent = self._told = 0  # absolute PSNs: all below has left; all below was counted in rounds
        self._in_flight: deque[tuple[int, int]] = deque()  # PSN after a run, its send time; no retransmissions

    @property
    def sendable(self) -> bool:
        """True if a packet may be sent now."""
        return self.requester.sendable

    def outlets(self) -> Sequence[tuple[int | None, Turn]]:
        """Return this end, at the port of its queue pair."""
        return ((None, self),)

    def take(self, most_packets: int, now_ns: int) -> tuple[list[Run], int]:
        """Return the next packets, which leave now, and their bytes."""
        runs = self.requester.take(most_packets, now_ns)
        for run in runs:
            if run.again:
                self._in_flight.clear()  # an acknowledgement no longer identifies the copy (Karn)
            else:
                self._in_flight.append((run.psn + run.count, now_ns))
                self._sent = run.psn + run.count
        taken = self._charge(runs, now_ns)
        if runs and self.control.probe_bytes is not None:
            self._count_to_probe(taken, self.control.probe_bytes)
        self._pace(now_ns)
        if self._rounds is not None and runs:
            self._rounds.on_sent(self._sent)
        return runs, taken

    def probes(self) -> bool:
        """Return True, once, if a probe of the switches is to follow the packets just taken."""
        due, self._probe_due = self._probe_due, False
        return due

    def on_ack(self, psn24: int, now_ns: int, becn: bool = False) -> Ended:
        """Handle the acknowledgement of everything up to ``psn24``; ``becn``: with congestion marks."""
        ended = self._heard(self.requester.on_ack, psn24, now_ns)
        progress = self.requester.progress()
        if self._rounds is not None and progress > self._told:
            cause = self._rounds.on_acked(progress - self._told, becn, progress, self._sent, now_ns)
            self.leaves = cause or self.leaves
            self._told = progress
        return ended

    def on_nak(self, psn24: int, now_ns: int) -> Ended:
        """Handle a NAK: the other end misses ``psn24``."""
        return self._heard(self.requester.on_nak, psn24, now_ns)

    def retries(self) -> Sequence[Retry]:
        """Return when it began to retransmit."""
        return self.requester.retries

    def deadline_ns(self) -> int | None:
        """Return when ``on_timer`` is due: the earlier of retry timer and congestion control."""
        control_ns = self.control.next_ns()
        retry_ns = self.requester.deadline_ns()
        return retry_ns if control_ns is None else earlier(retry_ns, control_ns)

    def on_timer(self, now_ns: int) -> Ended:
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

    def _paced(self) -> Sequence[Turn]:
        return (self,)

    def _count_to_probe(self, sent_bytes: int, probe_bytes: int) -> None:
        unprobed = probe_bytes if self._unprobed_bytes is None else self._unprobed_bytes + sent_bytes
        self._probe_due = unprobed >= probe_bytes
        self._unprobed_bytes = 0 if self._probe_due else unprobed

    def _heard(self, hear: Callable[[int, int], list[Completion]], psn24: int, now_ns: int) -> Ended:
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
        self.control.on_acked(packets * self.packet_bytes, rtt_ns, now_ns)
        self._pace(now_ns)


def port_rate_bps(setup: JobSetup, nic: str) -> int:
    """Return the highest rate of a queue pair of that NIC: the rate of one port."""
    return max(setup.port_rate_bps[nic])


def _slack_ns(setup: JobSetup, rate_bps: int) -> int:
    """Return how much later than usual an acknowledgement may come, at ports of that rate.

    Its receiver delays it, both ends look once a tick, and a full packet may be in front, there and back.
    """
    packet_ns = wire_bytes(setup.transport.path_mtu) * 8 * 10**9 // rate_bps
    return setup.acks.delay_ns + 2 * setup.tick_ns + 2 * packet_ns


def sending_end(setup: JobSetup, pair: QueuePair, life: Incarnation) -> SendingEnd:
    """Return the sending end of a job's queue pair."""
    policy, transport = setup.rehash, setup.transport
    if transport.multipath is not None:
        rates_bps = setup.port_rate_bps[pair.flow.src_nic]
        control = setup.control.control(sum(rates_bps), setup.scale)
        slack_ns = _slack_ns(setup, min(rates_bps))
        if pair.wire_ns:
            control.on_path(pair.wire_ns + 2 * setup.tick_ns)  # both ends look once a tick
        return MultipathSender(pair, transport, control, transport.multipath, len(rates_bps), slack_ns)
    control = setup.control.control(port_rate_bps(setup, pair.flow.src_nic), setup.scale)
    if policy is None:
        return Sender(pair, transport, control)
    draw = random.Random(f"{policy.seed} {pair.flow.id} {life.number} suspended")
    return Sender(pair, transport, control, Rounds(policy, draw))
