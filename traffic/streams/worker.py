"""One worker process of the traffic engine: ``python -m hpn.traffic.streams.worker CONTROL_FD``.

It sleeps until the next tick, sends what is due, receives what has arrived, and answers the engine. All measurements go
into two record files. It dies with its parent.
"""

from __future__ import annotations

import os
import select
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.timerfd import Ticker
from hpn.traffic.flows.flow import requester_qpn
from hpn.traffic.io.sockets import raise_file_limit
from hpn.traffic.io.uring import open_ring
from hpn.traffic.streams.gaps import send_gaps
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.streams.receiver import Receiver
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.streams.records import RECEIVED, SENT
from hpn.traffic.streams.sender import Sender
from hpn.traffic.streams.wire import SYNDROME_ACK, Ack
from hpn.traffic.workers.messages import (
    Begin,
    Finish,
    Message,
    Move,
    Moved,
    MovedAll,
    Moves,
    Progress,
    QpError,
    Ready,
    Replace,
    Replaced,
    Setup,
    Stop,
    Stopped,
    WorkerReport,
)
from hpn.traffic.workers.worker_main import Engine, collect_no_more, drain, serve

_PROGRESS_NS = 100_000_000
_RING_ENTRIES = 512  # bursts of a tick; there are no more at a time
_EXPIRY_NS = 10_000_000  # period of checking retry timers


@dataclass(frozen=True, slots=True)
class _Place:
    """Location of a requester: its sender and local index."""

    sender: Sender
    flow: int


class Worker:
    """The state of one worker between set-up and report."""

    def __init__(self, setup: Setup, engine: Engine) -> None:
        self._setup = setup
        self._engine = engine
        self._realtime = setup.realtime and _be_realtime()
        raise_file_limit(len(setup.senders) + len(setup.receivers) + len(setup.nics))
        namespaces = {nic.name: NetNs(nic.name, nic.namespace_fd) for nic in setup.nics}
        self._sent = RecordFile(_record_path(setup, "sent"), SENT)
        self._records = RecordFile(_record_path(setup, "received"), RECEIVED)
        ring = open_ring(_RING_ENTRIES) if setup.clock_stands else None
        mtus = sorted({f.path_mtu for f in (*setup.senders, *setup.receivers)})
        self._senders = [
            Sender([f for f in setup.senders if f.path_mtu == mtu], namespaces, self._sent, setup.tick_ns, ring)
            for mtu in sorted({f.path_mtu for f in setup.senders})
        ]
        self._receiver = Receiver(
            setup.receivers,
            {nic.name: nic.ip for nic in setup.nics},
            mtus,
            namespaces,
            self._records,
            AckPolicy(setup.ack_packets, setup.ack_delay_ns),
            ring,
        )
        self._requesters = {f.id: _Place(s, i) for s in self._senders for i, f in enumerate(s.flows)}
        self._by_qpn = {requester_qpn(flow): place for flow, place in self._requesters.items()}
        self._ticker = Ticker()
        self._late_ticks = 0
        # Receive for acknowledgements, and before a buffer is half full: an unprivileged user's buffers are small.
        receive_ns = min(max(setup.ack_delay_ns, setup.tick_ns), self._receiver.room_ns() // 2)
        self._receive_every = receive_ns // setup.tick_ns  # ticks; 0: whenever something arrives
        self._ticks_to_receive = 0
        self._next_progress_ns = self._next_expiry_ns = 0
        self._stopped = False

    def run(self) -> None:
        """Serve the engine until it sends Finish or disconnects."""
        poll = select.epoll()
        poll.register(self._engine.fileno(), select.EPOLLIN)
        poll.register(self._ticker.fileno(), select.EPOLLIN)
        if not self._receive_every:
            poll.register(self._receiver.fileno(), select.EPOLLIN)
        self._engine.say(Ready(self._setup.index, self._realtime, self._receiver.buffer_bytes()))
        collect_no_more()
        while True:
            for fd, _ in poll.poll():
                if fd == self._ticker.fileno():
                    ticks = self._ticker.take()
                    self._late_ticks += max(ticks - 1, 0)
                    self._tick(ticks)
                elif fd == self._receiver.fileno():
                    self._receive()
                elif not self._engine.serve(self._obey, self._finish):
                    return

    def _obey(self, message: Message) -> None:
        match message:
            case Begin(at_ns):
                for sender in self._senders:
                    sender.begin(at_ns)
                self._ticker.start(at_ns + self._setup.offset_ns, self._setup.tick_ns)
            case Moves(moves):
                self._engine.say(MovedAll(tuple(self._move(move) for move in moves)))
            case Replace():
                self._replace(message)
                self._engine.say(Replaced())
            case Stop():
                self._stopped = True
                for sender in self._senders:
                    sender.schedule.stop()
                self._engine.say(Stopped())

    def _move(self, move: Move) -> Moved:
        try:
            if move.ack:
                at = self._receiver.move_ack(move.flow, move.sport)
            else:
                place = self._requesters[move.flow]
                at = place.sender.move(place.flow, move.sport)
        except OSError as error:
            return Moved(move.flow, move.ack, now_ns(), error.strerror or str(error))
        return Moved(move.flow, move.ack, at)

    def _replace(self, change: Replace) -> None:
        """Apply the local part of a replacement; the responder of a replacement flow is always ready."""
        self._receiver.give_up(change.closes)
        for flow in sorted(self._requesters.keys() & {*change.closes, *change.starts}):
            place = self._requesters[flow]
            (place.sender.give_up if flow in change.closes else place.sender.start)(place.flow)

    def _tick(self, ticks: int) -> None:
        """Send, and receive when that is due; ``ticks`` have passed since the last call."""
        for sender in self._senders:
            sender.tick()
        self._ticks_to_receive -= ticks
        if self._ticks_to_receive <= 0:
            self._ticks_to_receive = self._receive_every
            self._receive()
        at = now_ns()
        if at >= self._next_expiry_ns and not self._stopped:
            self._next_expiry_ns = at + _EXPIRY_NS
            self._expire(at)
        if at >= self._next_progress_ns:
            self._next_progress_ns = at + _PROGRESS_NS
            self._engine.say(self._progress(at))

    def _receive(self) -> None:
        acks = self._receiver.tick(self._receive_every * self._setup.tick_ns)
        at = now_ns()
        for ack in acks:
            self._acknowledged(ack, at)

    def _acknowledged(self, ack: Ack, at_ns: int) -> None:
        place = self._by_qpn.get(ack.qpn)
        if place is None:
            return
        requester = place.sender.requesters[place.flow]
        (requester.on_ack if ack.syndrome == SYNDROME_ACK else requester.on_nak)(ack.psn, at_ns)

    def _expire(self, at_ns: int) -> None:
        for sender in self._senders:
            for flow in sender.expire(at_ns):
                requester = sender.requesters[flow]
                self._engine.say(QpError(sender.flows[flow].id, at_ns, requester.acknowledged, requester.outstanding))

    def _progress(self, at_ns: int) -> Progress:
        sent: dict[int, int] = {}
        for sender in self._senders:
            sent.update(zip((f.id for f in sender.flows), sender.schedule.next_seq.tolist(), strict=True))
        if not self._setup.tells_highest:
            return Progress(at_ns, sent, self._receiver.counts())
        return Progress(at_ns, sent, self._receiver.counts(), self._receiver.highest(), self._receiver.drops())

    def _finish(self, finish: Finish) -> None:
        drain(self._ticker, self._setup.tick_ns, finish, self._drained)
        self._sent.close()
        self._records.close()
        report = self._report()
        self._receiver.close()
        for sender in self._senders:
            sender.close()
        self._engine.say(report)

    def _drained(self, ticks: int) -> int | None:
        """Keep receiving; return the time if anything arrived, else None."""
        packets = self._receiver.received.packets
        self._tick(ticks)
        return now_ns() if packets != self._receiver.received.packets else None

    def _report(self) -> WorkerReport:
        gaps = send_gaps(np.fromfile(self._sent.path, SENT))
        received = self._receiver.received
        return WorkerReport(
            index=self._setup.index,
            senders=tuple(report for sender in self._senders for report in sender.reports(gaps)),
            received=self._receiver.counts(),
            socket_drops=self._receiver.drops(),
            icrc_bad=received.icrc_bad,
            foreign=received.foreign,
            acks_sent=self._receiver.responders.acks_sent,
            errors=dict(received.socket_errors + self._receiver.responders.errors),
            receive_buffer_bytes=self._receiver.buffer_bytes(),
            realtime=self._realtime,
            late_ticks=self._late_ticks,
            cpu_s=time.process_time(),
        )


def _record_path(setup: Setup, name: str) -> Path:
    return Path(setup.out, f"{name}-{setup.index}.bin") if setup.keeps_records else Path(os.devnull)


def _be_realtime() -> bool:
    """Request SCHED_RR; return False where that is not allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:], Setup, Worker))
