"""Queue pairs and ranks of one worker, and the order in which they send. PURE: packets leave through a ``Wire``.

Changes when the reaction to arrivals, to time, or to a rank's posts changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hpn.traffic.collectives.rank import Post, Timed
from hpn.traffic.flows.flow import requester_qpn
from hpn.traffic.jobengine.clear_to_send import Granting
from hpn.traffic.jobengine.connection import TAG_SHIFT, Connection, connections, key
from hpn.traffic.jobengine.deadlines import Deadlines
from hpn.traffic.jobengine.multipath_sender import MultipathSender
from hpn.traffic.jobengine.nic_ports import NicPorts
from hpn.traffic.jobengine.ranks import Ranks
from hpn.traffic.jobengine.receiver import ReceivingEnd
from hpn.traffic.jobengine.recoveries import Recoveries
from hpn.traffic.jobengine.responders import Responders
from hpn.traffic.jobengine.sender import sending_end
from hpn.traffic.jobengine.sending_end import Part, SendingEnd, Words, earlier
from hpn.traffic.jobengine.setup import FIRST_LIFE, FailedOver, Incarnation, JobSetup, Leaves, QueuePair, Recovered
from hpn.traffic.jobengine.wire_interface import Wire
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.transport.inbox import Written
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.transport.work import Completion, Status
from hpn.traffic.workers.messages import QpError


class Carrier:
    """Everything of a worker but its sockets and its clock, for one incarnation of the job.

    ``completed`` receives work requests that succeeded, ``timed`` the spans of a rank. ``say`` receives the failure,
    the return, or a change of path of a queue pair.
    """

    def __init__(
        self,
        setup: JobSetup,
        wire: Wire,
        completed: Callable[[SendingEnd, Completion], None],
        timed: Callable[[int, Sequence[Timed]], None],
        say: Callable[[QpError | FailedOver | Leaves | Recovered], None],
        life: Incarnation = FIRST_LIFE,
    ) -> None:
        self._setup, self._life, self._wire = setup, life, wire
        self._completed = completed
        self._say = say
        self.senders = [sending_end(setup, pair, life) for pair in setup.senders]
        self._by_qpn = {requester_qpn(sender.pair.flow.id, life.number): sender for sender in self.senders}
        self._connections = connections(setup, self.senders)
        self._recoveries = Recoveries((setup.senders, setup.receivers), setup.recovery, life, wire, self._restore, say)
        self._granting = self._admits(setup)
        wanted = None if self._granting is None else self._granting.wanted
        self.ranks = Ranks(setup.programs, self._leave, timed, life.iteration, wanted)
        self._nic_ports = NicPorts(setup.port_rate_bps, setup.transport.path_mtu)
        self.responders = Responders(setup, life, wire, self._nic_ports, self._arm, self._written)
        self._stopped = False
        self._timers = Deadlines[SendingEnd | ReceivingEnd]()

    @property
    def busy(self) -> bool:
        """True while a queue pair waits for its turn to send."""
        return not self._stopped and self._nic_ports.busy

    def begin(self, now_ns: int) -> None:
        """Start the job."""
        self.ranks.start(now_ns)

    def stop(self) -> None:
        """Post and send nothing more; arriving packets are still received and answered."""
        self._stopped = True
        self.ranks.stop()

    def abort(self, now_ns: int) -> int:
        """End the job after a failure: its queue pairs are gone. Return the last iteration that was begun."""
        for sender in self.senders:
            self._nic_ports.rest(sender)
            sender.close(now_ns)
        self._by_qpn.clear()
        self.responders.end()
        self._timers.clear()
        self._recoveries.end()
        return self.ranks.abort()

    @property
    def ports(self) -> Mapping[int, int]:
        """Ports set by ``set_ports`` so far."""
        return self._nic_ports.of

    def set_ports(self, ports: Mapping[int, int], now_ns: int) -> None:
        """Send queue pairs by other ports of their NICs: 2 x flow for data, 2 x flow + 1 for acknowledgements."""
        self._nic_ports.move(ports, self.senders, now_ns)

    def set_values(self, values: Mapping[int, Sequence[EntropyValue]], now_ns: int) -> None:
        """Use these entropy values of multipath queue pairs: 2 x flow for data, 2 x flow + 1 for acknowledgements."""
        for sender in self.senders:
            if isinstance(sender, MultipathSender) and (ours := values.get(2 * sender.pair.flow.id)):
                sender.set_values(ours)  # what waits at a port without a path has nothing to send there
                self._nic_ports.wake(sender, now_ns)
        self.responders.set_values(values)

    def on_sack(self, qpn: int, sack: Sack, now_ns: int) -> None:
        """Handle a selective acknowledgement."""
        self._heard(qpn, lambda sender: sender.on_sack(sack, now_ns), now_ns)

    def on_ack(self, qpn: int, psn24: int, now_ns: int, becn: bool = False) -> None:
        """Handle an acknowledgement for a local requester; ``becn``: the packets carried congestion marks."""
        sender = self._by_qpn.get(qpn)
        if sender is not None:
            self._ended(sender, sender.on_ack(psn24, now_ns, becn), now_ns)

    def on_nak(self, qpn: int, psn24: int, now_ns: int) -> None:
        """Handle a NAK: ``psn24`` is missing."""
        self._heard(qpn, lambda sender: sender.on_nak(psn24, now_ns), now_ns)

    def on_refused(self, qpn: int, why: Status, now_ns: int) -> None:
        """Handle a NAK without retry: the request is invalid, or not allowed."""
        self._heard(qpn, lambda sender: sender.on_refused(why, now_ns), now_ns)

    def on_cnp(self, qpn: int, now_ns: int) -> None:
        """Handle a congestion notification for a local requester."""
        sender = self._by_qpn.get(qpn)
        if sender is not None:
            sender.on_cnp(now_ns)
            self._arm(sender)

    def on_echo(self, qpn: int, telemetry: Telemetry, now_ns: int) -> SendingEnd | None:
        """Handle the echo of a probe; return the local requester that sent the probe, None if there is none."""
        sender = self._by_qpn.get(qpn)
        if sender is not None:
            sender.on_telemetry(telemetry, now_ns)
            self._arm(sender)
        return sender

    def on_note(self, qpn: int, immediate: int, now_ns: int) -> bool:
        """Handle a note of a failed queue pair's recovery; return False if it matches no local queue pair."""
        return self._recoveries.on_note(qpn, immediate, now_ns)

    def tick(self, now_ns: int, until_ns: int) -> None:
        """Advance time, then send enough to keep the wires busy until ``until_ns``."""
        self._fire(now_ns)
        self.ranks.on_timer(now_ns)
        if self._stopped:
            return
        self._recoveries.tick(now_ns)
        for outlet, sender, runs in self._nic_ports.serve(now_ns, until_ns):
            for run in runs:
                self._wire.data(sender, run, now_ns)
            if sender.probes():
                outlet.charge(self._wire.probe(sender, now_ns), now_ns)
            self._arm(sender)

    def next_ns(self) -> int | None:
        """Return when ``tick`` is due if nothing arrives and nothing waits; None: never. May be too early."""
        return earlier(earlier(self._timers.next_ns(), self.ranks.deadline_ns()), self._recoveries.next_ns())

    def _leave(self, number: int, rank: int, post: Post, now_ns: int) -> int:
        """Post a message of a rank to its connection."""
        hand = partial(self._post, self._connections[rank, post.peer, post.rail, False])
        if self._granting is None:
            return hand(number, post.tag, post.size_bytes, post.words, now_ns, 0)
        self._granting.leave(number, rank, post, hand, now_ns)
        return 1

    def _post(
        self, to: Connection, number: int, tag: int, size_bytes: int, words: Words, now_ns: int, start: int
    ) -> int:
        """Post that part of a message, from byte ``start`` on; return the number of work requests."""
        if not to.usable:
            return 1  # the job is down or failing; it is never acknowledged
        used = to.post(number, tag, size_bytes, words, now_ns, start)
        for sender in used:
            self._nic_ports.wake(sender, now_ns)
        return len(used)

    def _admits(self, setup: JobSetup) -> Granting | None:
        """Return the clear-to-send logic, if the job's receivers use admission control."""
        if setup.control.admission(setup.scale, setup.transport.path_mtu) is None:
            return None
        grants = {
            (target, source): partial(self._post, connection)
            for (source, target, _, grants), connection in self._connections.items()
            if grants
        }
        return Granting(setup, grants)

    def _written(self, pair: QueuePair, written: Written, now_ns: int) -> None:
        """Handle packets that were written to memory here: part of a message, or a grant."""
        tag, offset = written.address >> TAG_SHIFT, written.address & ((1 << TAG_SHIFT) - 1)
        if pair.grants and self._granting is not None:
            self._granting.granted((pair.target, pair.source), tag, written.words, now_ns)
            return
        self.ranks.arrived(pair.target, pair.source, tag, offset, written.words, now_ns)
        if self._granting is not None:
            self._granting.arrived((pair.source, pair.target), tag, offset, written.size_bytes, now_ns)

    def _heard(self, qpn: int, hear: Callable[[SendingEnd], list[tuple[Part, Completion]]], now_ns: int) -> None:
        sender = self._by_qpn.get(qpn)
        if sender is not None:
            self._ended(sender, hear(sender), now_ns)

    def _ended(self, sender: SendingEnd, done: Sequence[tuple[Part, Completion]], now_ns: int) -> None:
        """Handle work requests that ended; more may be sent now."""
        for part, completion in done:
            if completion.status is Status.SUCCESS:
                granting = self._granting
                whole = completion if granting is None else granting.acknowledged(part.post, completion)
                if whole is not None:
                    self._completed(sender, whole)
                    self.ranks.acknowledged(part.post, now_ns)
        if sender.died_at_ns == now_ns and done and done[0][1].status is not Status.SUCCESS:
            self._gave_up(sender, done, now_ns)
        if sender.leaves is not None:
            self._say(Leaves(sender.pair.flow.id, now_ns, sender.leaves))
            sender.leaves = None
        for path in sender.paths_to_probe():
            port, bytes_ = self._wire.path_probe(sender, path, now_ns)
            self._nic_ports.charge(sender.pair.flow.src_nic, port, bytes_, now_ns)
        self._nic_ports.wake(sender, now_ns)
        self._arm(sender)

    def _gave_up(self, sender: SendingEnd, done: Sequence[tuple[Part, Completion]], now_ns: int) -> None:
        """Handle a failed queue pair: the others of its connection take over, or the job fails."""
        pair = sender.pair
        connection = self._connections[key(pair)]
        if connection.usable and done[0][1].status is Status.RETRY_EXCEEDED:
            self._say(FailedOver(pair.flow.id, now_ns, len(done)))
            self._recoveries.begin(pair, now_ns)
            for part, completion in done:
                self._nic_ports.wake(connection.take_over(part, completion.request, now_ns), now_ns)
        else:
            left = sum(completion.request.size_bytes for _, completion in done)
            self._say(QpError(pair.flow.id, now_ns, sender.requester.progress(), left))

    def _restore(self, pair: QueuePair, responder: bool) -> None:
        """Reset a failed queue pair's end: same number, new state."""
        if responder:
            self.responders.open(pair)
            return
        sender, qpn = sending_end(self._setup, pair, self._life), requester_qpn(pair.flow.id, self._life.number)
        self._connections[key(pair)].restore(self._by_qpn[qpn], sender)
        self.senders.append(sender)
        self._by_qpn[qpn] = sender

    def _fire(self, now_ns: int) -> None:
        while (end := self._timers.take(now_ns)) is not None:
            if isinstance(end, SendingEnd):
                if not self._stopped:
                    self._ended(end, end.on_timer(now_ns), now_ns)
            else:
                self.responders.on_timer(end, now_ns)

    def _arm(self, end: SendingEnd | ReceivingEnd) -> None:
        self._timers.arm(end, end.deadline_ns())
