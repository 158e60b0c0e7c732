"""Two ends of a multipath queue pair and bad paths between them, in simulated time.

What the channel does to the n-th data packet is the n-th fate, as in ``tests.traffic.transport.link``. Besides, a dark
path loses everything, a full one delivers headers early, and each path has its own latency. All rules that hold always
are checked here.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hpn.traffic.multipath.memory import Memory
from hpn.traffic.multipath.paths import Paths
from hpn.traffic.multipath.requester import MultipathRequester
from hpn.traffic.multipath.responder import MultipathResponder
from hpn.traffic.multipath.round_trips import RoundTrips
from hpn.traffic.multipath.sack import Sack, pack_sack, read_sack
from hpn.traffic.multipath.settings import EntropyValue, Multipath
from hpn.traffic.streams.qp import AckPolicy, QpState
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import Opcode
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.timers import RETRY_TIMERS
from hpn.traffic.transport.work import Completion, Status, Transport, WorkRequest
from tests.traffic.transport.link import FINE, LATENCY_NS, MTU, PACKET_NS, Fate, word

ACKS = AckPolicy(packets=8, delay_ns=30_000)
MOST_PACKETS, MOST_LATE_NS = 40, 9_000
SLACK_NS = ACKS.delay_ns + MOST_PACKETS * PACKET_NS + MOST_LATE_NS
"""Packets handed over at once leave one after the other, and paths differ in latency: both are no loss."""
FIRST_SPORT = 50_000
TRANSPORT = Transport(
    path_mtu=MTU, timer=RETRY_TIMERS["ib"].make(9), retry_count=7, window_packets=32, ack_every=8
)  # a try takes 2.1 ms, a round trip some 30 us
SETTINGS = Multipath(paths=8, probe_interval_ns=200_000, skip_for_ns=100_000)


@dataclass(frozen=True, slots=True)
class Wire:
    """A data packet under way, or a probe."""

    psn24: int
    path: int
    size: int
    word: int = 0
    address: int = 0
    immediate: int = -1  # the last of its message has one
    ack: bool = False
    marked: bool = False
    trimmed: bool = False


class Link:
    """A connection over ``SETTINGS.paths`` paths, by its ports in turn. ``dark``: paths that lose everything."""

    def __init__(
        self,
        data: Iterable[Fate] = (),
        replies: Iterable[Fate] = (),
        first_psn: int = 0,
        most_packets: int = 16,
        settings: Multipath = SETTINGS,
        transport: Transport = TRANSPORT,
        ports: int = 2,
    ) -> None:
        self.transport, self.settings = transport, settings
        self.values = [EntropyValue(FIRST_SPORT + path, path % ports) for path in range(settings.paths)]
        paths = Paths(settings, [value.port for value in self.values])
        trips = RoundTrips(SLACK_NS, transport.timer.wait_ns(0))
        self.requester = MultipathRequester(transport, paths, trips, first_psn)
        self.requester.set_values(self.values)
        self.responder = MultipathResponder(transport, ACKS, first_psn)
        self.inbox = Memory(transport.path_mtu)
        self.now_ns = 0
        self.dark: set[int] = set()
        self.late_ns = [0] * settings.paths
        self.marks: set[int] = set()  # paths whose packets are marked
        self.full: set[int] = set()  # paths whose packets are trimmed; what is left overtakes
        self.trims = 0  # that the sender has heard of
        self.posted: list[WorkRequest] = []
        self.completions: list[Completion] = []
        self.memory: dict[int, int] = {}  # address -> word
        self.sent: list[tuple[int, Wire]] = []  # when, what
        self._data, self._replies = iter(data), iter(replies)
        self._most = most_packets
        self._free_ns = 0
        self._ports, self._port = ports, 0
        self._events: list[tuple[int, int, Wire | Sack]] = []
        self._serial = 0

    @property
    def paths(self) -> Paths:
        return self.requester.paths

    def post(self, *sizes: int) -> None:
        for size in sizes:
            id_ = len(self.posted)
            request = WorkRequest(id_, size, id_ << 40, id_)
            self.posted.append(request)
            self.requester.post(request, self.now_ns)

    def run(self, until_ns: int | None = None) -> None:
        """Until nothing is left to deliver or acknowledge, or until a moment."""
        for _ in range(40_000):
            self._send()
            times = [self.requester.deadline_ns(), self.responder.deadline_ns()]
            times += [self._events[0][0]] if self._events else []
            times += [self._free_ns] if self._may_send() else []
            due = [at for at in times if at is not None]
            done = self.requester.outstanding_bytes == 0 and not self._events and self.responder.deadline_ns() is None
            if not due or (until_ns is None and done) or (until_ns is not None and min(due) > until_ns):
                self.now_ns = self.now_ns if until_ns is None else until_ns
                return
            self.now_ns = max(self.now_ns, min(due))
            self._receive()
            self._timers()
            self._check()
        raise AssertionError("it never ends")

    def under_way(self, port: int) -> int:
        """Packets that the sender takes for under way, by the port that they last left by."""
        last: dict[int, Wire] = {packet.psn24: packet for _, packet in self.sent}
        window = self.requester._window
        copies = map(window.copy, range(self.requester._acknowledged, self.requester._sent))
        psns = [copy.psn & PSN_MASK for copy in copies if window.flies(copy)]
        return sum(self.paths.port(last[psn].path) == port for psn in psns)

    def _may_send(self) -> bool:
        return self.requester.sendable and any(map(self._open, range(self._ports)))

    def _open(self, port: int) -> bool:
        return self.paths.carries(port) and self.requester.room(port) > 0

    def _send(self) -> None:
        """Send by the port whose turn it is, as one that is free would."""
        if self.now_ns < self._free_ns or not self.requester.sendable:
            return
        turns = [(self._port + turn) % self._ports for turn in range(1, self._ports + 1)]
        self._port = turns[0]
        port = next(filter(self._open, turns), turns[-1])
        runs = self.requester.take(port, self._most, self.now_ns)
        if not runs:  # what was lost by this port waits for another one
            self._free_ns = self.now_ns + PACKET_NS
        for run in runs:
            for packet in self._packets(run):
                assert self.paths.port(packet.path) == port
                self._free_ns = max(self._free_ns, self.now_ns) + PACKET_NS
                self.sent.append((self.now_ns, packet))
                self._enter(packet, self._free_ns, next(self._data, FINE))

    def _packets(self, run: Run) -> Iterable[Wire]:
        request = run.request
        total = self.transport.packets(request.size_bytes)
        for i in range(run.count):
            index = run.first + i
            size = min(MTU, request.size_bytes - index * MTU)
            last = index == total - 1
            ack = last or (index + 1) % self.transport.ack_every == 0 or (run.ack_last and i == run.count - 1)
            path, address = run.paths[i], request.address + index * MTU
            immediate = request.id if last else -1
            yield Wire(
                (run.psn + i) & PSN_MASK,
                path,
                size,
                word(request.id, index),
                address,
                immediate,
                ack,
                path in self.marks,
                path in self.full,
            )

    def _enter(self, what: Wire | Sack, at_ns: int, fate: Fate) -> None:
        if isinstance(what, Wire):
            late_ns = -LATENCY_NS // 2 if what.trimmed else self.late_ns[what.path]
            fate = () if what.path in self.dark else tuple(extra + late_ns for extra in fate)
        for extra in fate:
            self._serial += 1
            heapq.heappush(self._events, (at_ns + LATENCY_NS + extra, self._serial, what))

    def _receive(self) -> None:
        """All that is there by now. Data packets are in the order of their PSNs, as a batch's reader sorts them."""
        data: list[Wire] = []
        while self._events and self._events[0][0] <= self.now_ns:
            what = heapq.heappop(self._events)[2]
            if isinstance(what, Wire):
                data.append(what)
                continue
            heard = self.requester.on_sack(what, self.now_ns)
            self.trims += heard.trimmed
            self._complete(heard.completions)
        for packet in [packet for packet in data if packet.trimmed]:
            self._reply(self.responder.on_trimmed(packet.psn24, self.values[packet.path].sport))
        data = [packet for packet in data if not packet.trimmed]
        for packet in [packet for packet in data if packet.size == 0]:
            self._reply(self.responder.answer(packet.psn24, self.values[packet.path].sport))
        full = [packet for packet in data if packet.size]
        first = full[0].psn24 if full else 0
        full.sort(key=lambda packet: (packet.psn24 - first + (1 << 23)) & PSN_MASK)
        while full:
            count = 1
            while count < len(full) and full[count].psn24 == (full[0].psn24 + count) & PSN_MASK:
                count += 1
            self._on_run(full[:count])
            full = full[count:]

    def _on_run(self, packets: Sequence[Wire]) -> None:
        self.responder.on_marked(self.values[packet.path].sport for packet in packets if packet.marked)
        value = self.values[packets[-1].path].sport
        new = self.responder.on_run(packets[0].psn24, len(packets), value, self.now_ns)
        start = self.responder.newest + 1 - len(packets)
        for low, high in new:
            for piece in self.inbox.write(low, _batch(packets[low - start : high - start])):
                for i, value_ in enumerate(piece.words.tolist()):
                    address = piece.address + i * MTU
                    assert address not in self.memory, "written twice"
                    self.memory[address] = value_
        assert not self.inbox.invalid
        self.inbox.on_expected(self.responder.expected)
        if self.responder.due(any(packet.ack for packet in packets)):
            self._reply(self.responder.acknowledge())

    def _reply(self, sack: Sack) -> None:
        read = read_sack(sack.psn & PSN_MASK, pack_sack(sack))
        assert read is not None
        assert read._replace(bitmap=read.bitmap[: len(sack.bitmap)], psn=sack.psn) == sack._replace(
            newest=sack.newest & PSN_MASK
        )
        self._enter(read, self.now_ns, next(self._replies, FINE))

    def _timers(self) -> None:
        due_ns = self.responder.deadline_ns()
        if due_ns is not None and due_ns <= self.now_ns:
            self._reply(self.responder.acknowledge())
        completions, probes = self.requester.on_timer(self.now_ns)
        self._complete(completions)
        for path in probes:
            probe = Wire((self.requester.progress() - 1) & PSN_MASK, path, 0)
            self._enter(probe, self.now_ns, FINE)

    def _complete(self, completions: Iterable[Completion]) -> None:
        for done in completions:
            self.completions.append(done)
            if done.status is Status.SUCCESS:
                assert done.request.id < self.inbox.messages, "complete, and not there"

    def _check(self) -> None:
        """What holds at every moment."""
        done, requester = len(self.completions), self.requester
        assert [end.request for end in self.completions] == self.posted[:done], "each once, in order"
        assert requester.outstanding_bytes == sum(request.size_bytes for request in self.posted[done:])
        if requester.state is QpState.READY:
            assert requester.progress() <= self.responder.expected, "acknowledged, and not there"

    def check_delivered(self) -> None:
        """Every message is there once, whole and unchanged; nothing else is."""
        content = {
            request.address + index * MTU: word(request.id, index)
            for request in self.posted
            for index in range(self.transport.packets(request.size_bytes))
        }
        assert self.memory == content
        assert self.inbox.bytes_ == sum(request.size_bytes for request in self.posted)
        assert self.inbox.messages == len(self.posted)
        assert {end.status for end in self.completions} <= {Status.SUCCESS}
        assert len(self.completions) == len(self.posted)


def _batch(packets: Sequence[Wire]) -> Packets:
    return Packets(
        bytes(Opcode.WRITE_ONLY if packet.immediate < 0 else Opcode.WRITE_ONLY_IMMEDIATE for packet in packets),
        [packet.size for packet in packets],
        np.array([packet.word for packet in packets], np.uint64),
        [packet.address for packet in packets],
        [max(packet.immediate, 0) for packet in packets],
    )
