"""Two ends of a reliable connection and a bad channel between them, in simulated time.

    post -> Requester --packets--> channel --> Responder -> Inbox -> memory
                      <--replies-- channel <--

What the channel does to the n-th packet that enters it is the n-th fate: how much later each of its copies arrives,
none for a packet lost. When fates are used up, packets arrive in order. All rules that hold always are checked here.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from hpn.traffic.streams.qp import AckPolicy, QpState
from hpn.traffic.transport.inbox import Arrived, Inbox, Packets
from hpn.traffic.transport.packets import Opcode, opcode_of
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.requester import Requester, Run
from hpn.traffic.transport.responder import Reply, Responder
from hpn.traffic.transport.work import Completion, Status, Transport, WorkRequest

MTU = 256
LATENCY_NS = 10_000
PACKET_NS = 1_000
ACKS = AckPolicy(packets=8, delay_ns=30_000)

Fate = tuple[int, ...]
FINE: Fate = (0,)
LOST: Fate = ()


@dataclass(frozen=True, slots=True)
class Wire:
    """A data packet under way."""

    psn24: int
    opcode: Opcode
    size: int
    word: int
    address: int
    immediate: int
    ack: bool


def word(id_: int, index: int) -> int:
    return (id_ << 32) + index + 1


def packets_of(run: Run, transport: Transport) -> Iterator[Wire]:
    request = run.request
    total = transport.packets(request.size_bytes)
    for i in range(run.count):
        index = run.first + i
        size = min(transport.path_mtu, request.size_bytes - index * transport.path_mtu)
        ack = (index + 1) % transport.ack_every == 0 or index == total - 1 or (run.ack_last and i == run.count - 1)
        opcode = opcode_of(index, total, request.immediate)
        psn24 = (run.psn + i) & PSN_MASK
        yield Wire(psn24, opcode, size, word(request.id, index), request.address, request.immediate or 0, ack)


def batch(packets: list[Wire]) -> Packets:
    return Packets(
        bytes(packet.opcode for packet in packets),
        [packet.size for packet in packets],
        np.array([packet.word for packet in packets], np.uint64),
        [packet.address for packet in packets],
        [packet.immediate for packet in packets],
    )


class Link:
    """A connection. ``first_psn`` is where a wrap is near; ``most_packets`` are taken at once, a microsecond each."""

    def __init__(
        self,
        transport: Transport,
        data: Iterable[Fate] = (),
        replies: Iterable[Fate] = (),
        first_psn: int = 0,
        most_packets: int = 16,
    ) -> None:
        self.transport = transport
        self.requester = Requester(transport, first_psn)
        self.responder = Responder(transport, ACKS, first_psn)
        self.inbox = Inbox(transport.path_mtu, first_psn)
        self.now_ns = 0
        self.progress_ns = 0  # when the requester made progress last
        self.posted: list[WorkRequest] = []
        self.completions: list[Completion] = []
        self.arrived: list[Arrived] = []
        self.memory: dict[int, int] = {}  # address -> word
        self.runs: list[Run] = []
        self.replied: list[Reply] = []
        self._data, self._replies = iter(data), iter(replies)
        self._most = most_packets
        self._free_ns = 0
        self._events: list[tuple[int, int, Wire | Reply]] = []
        self._serial = 0

    def post(self, *sizes: int) -> None:
        for size in sizes:
            id_ = len(self.posted)
            request = WorkRequest(id_, size, id_ << 40, id_ if id_ % 3 else None)
            self.posted.append(request)
            self.requester.post(request, self.now_ns)

    def run(self) -> None:
        """Until nothing is left to do at either end and nothing is under way."""
        for _ in range(20_000):
            self._send()
            times = [self.requester.deadline_ns(), self.responder.deadline_ns()]
            times += [self._events[0][0]] if self._events else []
            times += [self._free_ns] if self.requester.sendable else []
            due = [at for at in times if at is not None]
            if not due:
                return
            self.now_ns = max(self.now_ns, min(due))
            before = self.requester.progress()
            self._receive()
            self._timers()
            if self.requester.progress() != before:
                self.progress_ns = self.now_ns
            self._check()
        raise AssertionError("it never ends")

    def _send(self) -> None:
        if self.now_ns < self._free_ns:
            return
        sendable = self.requester.sendable
        runs = self.requester.take(self._most, self.now_ns)
        assert sendable == bool(runs), "it says whether something may be sent, and so it is"
        self.runs += runs
        for run in runs:
            for packet in packets_of(run, self.transport):
                self._free_ns = max(self._free_ns, self.now_ns) + PACKET_NS
                self.enter(packet, self._free_ns, next(self._data, FINE))

    def enter(self, what: Wire | Reply, at_ns: int, fate: Fate) -> None:
        for extra in fate:
            self._serial += 1
            heapq.heappush(self._events, (at_ns + LATENCY_NS + extra, self._serial, what))

    def _receive(self) -> None:
        """All that is there by now. Data packets with consecutive PSNs are one run, as an engine has them."""
        data: list[Wire] = []
        while self._events and self._events[0][0] <= self.now_ns:
            what = heapq.heappop(self._events)[2]
            if isinstance(what, Wire):
                data.append(what)
            else:
                on = self.requester.on_nak if what.nak else self.requester.on_ack
                self._complete(on(what.psn & PSN_MASK, self.now_ns))
        for _, numbered in groupby(enumerate(data), key=lambda pair: (pair[1].psn24 - pair[0]) & PSN_MASK):
            self._on_run([packet for _, packet in numbered])

    def _on_run(self, packets: list[Wire]) -> None:
        asked = any(packet.ack for packet in packets)
        taken = self.responder.on_run(packets[0].psn24, len(packets), asked, self.now_ns)
        for offset, count in taken.accepted:
            self.inbox.keep(taken.first_psn + offset, batch(packets[offset : offset + count]))
        delivery = self.inbox.deliver(taken.expected)
        assert not delivery.invalid
        for piece in delivery.written:
            for i, value in enumerate(piece.words.tolist()):
                address = piece.address + i * self.transport.path_mtu
                assert address not in self.memory, "written twice"
                self.memory[address] = value
        self.arrived += delivery.arrived
        for reply in taken.replies:
            self._reply(reply)

    def _reply(self, reply: Reply) -> None:
        self.replied.append(reply)
        self.enter(reply, self.now_ns, next(self._replies, FINE))

    def _timers(self) -> None:
        reply = self.responder.on_timer(self.now_ns)
        if reply is not None:
            self._reply(reply)
        self._complete(self.requester.on_timer(self.now_ns))

    def _complete(self, completions: list[Completion]) -> None:
        self.completions += completions
        for done in completions:
            assert done.completed_ns == self.now_ns
            assert done.status is not Status.SUCCESS or done.request.id < len(self.arrived), "complete, and not there"

    def _check(self) -> None:
        """What holds at every moment."""
        done, requester = len(self.completions), self.requester
        assert [end.request for end in self.completions] == self.posted[:done], "each once, in order"
        assert requester.outstanding_bytes == sum(request.size_bytes for request in self.posted[done:])
        if requester.state is QpState.READY:
            assert requester.progress() <= self.responder.expected, "acknowledged, and not there"
            highest = max((run.psn + run.count for run in self.runs), default=0)
            assert highest <= requester.progress() + self.transport.window_packets, "beyond the window"

    def check_delivered(self) -> None:
        """Every message is there once, in order, whole and unchanged; nothing else is."""
        assert self.arrived == [
            Arrived(request.immediate, request.address, request.size_bytes) for request in self.posted
        ]
        content = {
            request.address + index * self.transport.path_mtu: word(request.id, index)
            for request in self.posted
            for index in range(self.transport.packets(request.size_bytes))
        }
        assert self.memory == content
        assert self.inbox.bytes_ == sum(request.size_bytes for request in self.posted)
        assert self.inbox.messages == len(self.posted)
        assert {end.status for end in self.completions} <= {Status.SUCCESS}
        assert len(self.completions) == len(self.posted)
