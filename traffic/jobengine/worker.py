"""One worker process of a job: ``python -m hpn.traffic.jobengine.worker CONTROL_FD``.

It sleeps until the next tick, receives what has arrived, advances time, and sends. While it is idle it does not tick:
it sleeps until something arrives or is due. It dies with its parent.
"""

from __future__ import annotations

import select
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.timerfd import Ticker
from hpn.traffic.io.ringmsg import Sleeper
from hpn.traffic.io.sockets import raise_file_limit
from hpn.traffic.io.uring import open_ring
from hpn.traffic.jobengine.carrier import Carrier
from hpn.traffic.jobengine.counters import nic_counters
from hpn.traffic.jobengine.device import Device
from hpn.traffic.jobengine.jobrecords import JobRecords
from hpn.traffic.jobengine.setup import (
    FIRST_LIFE,
    Abort,
    Aborted,
    Incarnation,
    JobSetup,
    JobWorkerReport,
    Ports,
    Restart,
    Restarted,
    Spray,
    Values,
    WorkerPart,
)
from hpn.traffic.multipath.sack import read_sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.transport.packets import Opcode, Packet
from hpn.traffic.transport.syndromes import REFUSALS, Says, says
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.workers.messages import (
    Begin,
    Finish,
    Message,
    Move,
    Moved,
    MovedAll,
    Moves,
    Progress,
    Ready,
    Stop,
    Stopped,
)
from hpn.traffic.workers.worker_main import Engine, collect_no_more, drain, serve

_PROGRESS_NS = 100_000_000
_RING_ENTRIES = 4096  # never exceeded by one send or receive
_STALL_NS = 5_000_000
"""Lateness from which on a worker counts as stalled; below that, its ports' queues still hold packets."""


class Worker:
    """The state of one worker between set-up and report."""

    def __init__(self, setup: JobSetup, engine: Engine) -> None:
        self._setup = setup
        self._engine = engine
        raise_file_limit(2 * len(setup.nics))
        namespaces = {nic.name: NetNs(nic.name, nic.namespace_fd) for nic in setup.nics}
        transport, ring = setup.transport, open_ring(_RING_ENTRIES)
        self._device = Device(
            setup.nics, namespaces, transport.path_mtu, transport.ack_every, ring, multipath=transport.multipath
        )
        self._values: dict[int, tuple[EntropyValue, ...]] = {}
        self._sleeper = None if ring is None else Sleeper(engine.fileno())
        self._records = JobRecords(Path(setup.out), setup.index)
        self._carrier = self._start_life(FIRST_LIFE)
        self._carriers = [self._carrier]  # of all incarnations of the job
        for sender in self._carrier.senders:
            self._device.open_sender(sender.pair)
        for receiver in self._carrier.responders.ends:
            self._device.open_receiver(receiver.pair)
        self._pairs = {pair.flow.id: pair for pair in (*setup.senders, *setup.receivers)}
        self._ticker = Ticker()
        self._begin_ns: int | None = None
        self._ticking = False
        self._next_tick_ns = 0  # while the sleeper drives the ticks
        self._late_ticks = 0
        self._stalled_ticks = _STALL_NS // setup.tick_ns
        self._next_progress_ns = 0

    def run(self) -> None:
        """Serve the engine until it sends Finish or disconnects."""
        self._poll = select.epoll()
        self._poll.register(self._engine.fileno(), select.EPOLLIN)
        self._poll.register(self._ticker.fileno(), select.EPOLLIN)
        self._poll.register(self._device.inputs.fileno(), select.EPOLLIN)
        self._engine.say(Ready(self._setup.index, False, 0))
        collect_no_more()
        while True:
            for fd, _ in self._wait():
                if fd == self._ticker.fileno():
                    self._note_late(self._ticker.take())
                elif fd == self._engine.fileno() and not self._engine.serve(self._obey, self._finish):
                    return
            self._tick()

    def _wait(self) -> list[tuple[int, int]]:
        """Sleep until the next tick or until something happens; return the events."""
        if not self._ticking or self._sleeper is None:
            return self._poll.poll()
        while self._sleeper.until(self._next_tick_ns):
            if events := self._poll.poll(0):
                return events
        return []

    def _note_late(self, ticks: int) -> None:
        """Count late ticks; ``ticks`` have passed since the last one that was seen."""
        self._late_ticks += ticks - 1 if self._ticking and ticks > self._stalled_ticks else 0

    def _obey(self, message: Message) -> None:
        match message:
            case Begin(at_ns):
                self._begin_ns = at_ns
                self._ticker.start(at_ns + self._setup.offset_ns, 0)
            case Moves(moves):
                self._engine.say(MovedAll(tuple(self._move(move) for move in moves)))
            case Ports(ports):
                self._carrier.set_ports(ports, now_ns())
            case Spray(sports):
                for flow, taken in sports.items():
                    if flow in self._pairs and self._device.sends(flow, ack=False):
                        self._device.spray(self._pairs[flow], taken)
            case Values(values):
                self._lead(values)
            case Abort():
                self._engine.say(Aborted(self._carrier.abort(now_ns())))
            case Restart(life, part):
                self._restart(life, part)
                self._engine.say(Restarted())
            case Stop():
                self._carrier.stop()
                self._engine.say(Stopped())

    def _start_life(self, life: Incarnation) -> Carrier:
        return Carrier(self._setup, self._device, self._records.completed, self._records.timed, self._engine.say, life)

    def _restart(self, life: Incarnation, part: WorkerPart | None) -> None:
        """Recreate everything but the paths, which belong to the network; ``part``: ranks have moved."""
        ports = self._carrier.ports
        if part is not None:
            self._setup = replace(self._setup, programs=part.programs, senders=part.senders, receivers=part.receivers)
            self._pairs = {pair.flow.id: pair for pair in (*part.senders, *part.receivers)}
        self._carrier = self._start_life(life)
        self._carrier.set_ports(ports, now_ns())
        self._carrier.set_values(self._values, now_ns())
        self._carriers.append(self._carrier)
        self._device.renew(self._setup.senders, self._setup.receivers, life.number)

    def _lead(self, values: Mapping[int, tuple[EntropyValue, ...]]) -> None:
        """Send multipath queue pairs by these entropy values from now on."""
        self._values.update(values)
        for connection, taken in values.items():
            flow, ack = divmod(connection, 2)
            if self._device.sends(flow, ack=bool(ack)):
                self._device.lead(self._pairs[flow], taken, ack=bool(ack))
        self._carrier.set_values(self._values, now_ns())

    def _move(self, move: Move) -> Moved:
        """Move a queue pair to another source port; refuse if a spare takes over its end, so that it is not here."""
        if move.flow not in self._pairs or not self._device.sends(move.flow, ack=move.ack):
            return Moved(move.flow, move.ack, now_ns(), "its end is on another host")
        self._device.move(self._pairs[move.flow], move.sport, move.ack)
        return Moved(move.flow, move.ack, now_ns())

    def _tick(self) -> None:
        """Receive, advance time, send; then sleep until the next tick, or until something happens."""
        now = now_ns()
        packets = self._device.inputs.packets
        if self._ticking and self._sleeper is not None and now >= self._next_tick_ns:
            ticks = (now - self._next_tick_ns) // self._setup.tick_ns + 1
            self._next_tick_ns += ticks * self._setup.tick_ns
            self._note_late(ticks)
        if self._begin_ns is not None and now >= self._begin_ns:
            self._begin_ns = None
            self._carrier.begin(now)
        self._receive(now)
        self._carrier.tick(now, now + self._setup.tick_ns)
        self._device.flush()
        if now >= self._next_progress_ns:
            self._next_progress_ns = now + _PROGRESS_NS
            self._engine.say(self._progress(now))
        self._sleep(now, busy=self._carrier.busy or self._device.holds or self._device.inputs.packets > packets)

    def _receive(self, now: int) -> None:
        for arrivals in self._device.inputs.arrivals():
            for run in arrivals.runs:
                if not self._carrier.responders.on_data(run, now):
                    self._device.inputs.foreign += len(run.packets)
            for cut in arrivals.trimmed:
                self._device.inputs.foreign += not self._carrier.responders.on_trimmed(cut, now)
            for _, packet in arrivals.replies:
                self._reply(packet, now)

    def _reply(self, packet: Packet, now: int) -> None:
        """Handle an acknowledgement, a NAK, a congestion notification, a probe or its echo."""
        carrier, aeth = self._carrier, packet.aeth
        if packet.immediate is not None:
            self._device.inputs.foreign += not carrier.on_note(packet.qpn, packet.immediate, now)
        elif packet.telemetry is not None:
            self._telemetry(packet, packet.telemetry, now)
        elif packet.opcode is Opcode.READ_RESPONSE_ONLY:
            self._sack(packet, now)
        elif aeth is None:
            carrier.on_cnp(packet.qpn, now)
        elif (meaning := says(aeth.syndrome)) is Says.ARRIVED:
            carrier.on_ack(packet.qpn, packet.psn, now, packet.becn)
        elif meaning is Says.MISSING:
            carrier.on_nak(packet.qpn, packet.psn, now)
        elif meaning is Says.REFUSED:
            carrier.on_refused(packet.qpn, REFUSALS[aeth.syndrome], now)

    def _sack(self, packet: Packet, now: int) -> None:
        sack = read_sack(packet.psn, packet.payload)
        if sack is None:
            self._device.inputs.foreign += 1
        else:
            self._carrier.on_sack(packet.qpn, sack, now)

    def _telemetry(self, packet: Packet, telemetry: Telemetry, now: int) -> None:
        if packet.opcode is Opcode.ECHO:
            sender = self._carrier.on_echo(packet.qpn, telemetry, now)
            if sender is not None:
                self._records.stamped(sender, telemetry, now)
        else:
            self._device.inputs.foreign += not self._carrier.responders.on_probe(packet.qpn, telemetry, now)

    def _sleep(self, now: int, busy: bool) -> None:
        """Tick while packets come and go, without waking in between; else wake for arrivals and deadlines."""
        if busy != self._ticking:
            self._ticking = busy
            tick = self._setup.tick_ns
            self._next_tick_ns = (now // tick + 1) * tick + self._setup.offset_ns
            if self._sleeper is None:
                self._poll.modify(self._device.inputs.fileno(), 0 if busy else select.EPOLLIN)
                if busy:
                    self._ticker.start(self._next_tick_ns, tick)
        if not busy:
            due = [at for at in (self._carrier.next_ns(), self._begin_ns, self._next_progress_ns) if at is not None]
            self._ticker.start(max(min(due), now + 1), 0)

    def _progress(self, at_ns: int) -> Progress:
        sent: Counter[int] = Counter()
        received: Counter[int] = Counter()
        for carrier in self._carriers:
            for sender in carrier.senders:
                sent[sender.pair.flow.id] += sender.requester.counters.packets
            for receiver in carrier.responders.ends:
                received[receiver.pair.flow.id] += receiver.inbox.bytes_ // self._setup.transport.path_mtu
        return Progress(at_ns, sent, received)

    def _finish(self, finish: Finish) -> None:
        drain(self._ticker, self._setup.tick_ns, finish, self._drained)
        self._records.close([sender for carrier in self._carriers for sender in carrier.senders])
        report = self._report()
        self._device.close()
        self._engine.say(report)

    def _drained(self, _ticks: int) -> int | None:
        """Receive and answer packets still in flight; return the time if there were any, else None."""
        packets, now = self._device.inputs.packets, now_ns()
        self._receive(now)
        self._carrier.tick(now, now + self._setup.tick_ns)
        self._device.flush()
        return now if packets != self._device.inputs.packets or self._carrier.busy else None

    def _report(self) -> JobWorkerReport:
        device = self._device
        senders = [sender for carrier in self._carriers for sender in carrier.senders]
        receivers = [receiver for carrier in self._carriers for receiver in carrier.responders.ends]
        return JobWorkerReport(
            index=self._setup.index,
            queue_pairs=tuple(sender.report() for sender in senders),
            nics=nic_counters(senders, receivers),
            socket_drops=device.inputs.drops(),
            icrc_bad=device.inputs.damaged,
            foreign=device.inputs.foreign,
            errors=dict(device.inputs.errors + device.refused()),
            late_ticks=self._late_ticks,
            cpu_s=time.process_time(),
        )


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:], JobSetup, Worker))
