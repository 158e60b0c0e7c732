"""Receiving ends of a worker's queue pairs, and the replies that they owe. PURE: packets leave through a ``Wire``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hpn.traffic.flows.flow import responder_qpn
from hpn.traffic.jobengine.multipath_receiver import MultipathReceiver
from hpn.traffic.jobengine.nic_ports import NicPorts
from hpn.traffic.jobengine.receiver import ReceivingEnd, receiving_end
from hpn.traffic.jobengine.receiver_answer import Answer
from hpn.traffic.jobengine.setup import Incarnation, JobSetup, QueuePair
from hpn.traffic.jobengine.wire_interface import Wire
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.transport.arrivals import ArrivedRun, Trimmed
from hpn.traffic.transport.inbox import Written
from hpn.traffic.transport.telemetry import Telemetry


class Responders:
    """Receiving ends for one incarnation of the job.

    ``arm`` sets the timer of one anew. ``written`` receives what was written to memory here.
    """

    def __init__(
        self,
        setup: JobSetup,
        life: Incarnation,
        wire: Wire,
        nic_ports: NicPorts,
        arm: Callable[[ReceivingEnd], None],
        written: Callable[[QueuePair, Written, int], None],
    ) -> None:
        self._setup, self._life, self._wire, self._nic_ports = setup, life, wire, nic_ports
        self._arm, self._written = arm, written
        self.ends: list[ReceivingEnd] = []
        self._by_qpn: dict[int, ReceivingEnd] = {}
        for pair in setup.receivers:
            self.open(pair)

    def open(self, pair: QueuePair) -> None:
        """Create the end of a queue pair; if it has failed: the same number, new state."""
        receiver = receiving_end(self._setup, pair)
        self.ends.append(receiver)
        self._by_qpn[responder_qpn(pair.flow.id, self._life.number)] = receiver

    def end(self) -> None:
        """Take no packet any more: the job has failed."""
        self._by_qpn.clear()

    def set_values(self, values: Mapping[int, Sequence[EntropyValue]]) -> None:
        """Use these entropy values of multipath queue pairs: 2 x flow for data, 2 x flow + 1 for acknowledgements."""
        for receiver in self.ends:
            if isinstance(receiver, MultipathReceiver) and 2 * receiver.pair.flow.id in values:
                flow = receiver.pair.flow.id
                receiver.set_values(values[2 * flow], values[2 * flow + 1])

    def on_data(self, run: ArrivedRun, now_ns: int) -> bool:
        """Handle consecutive packets; return False if no responder has their number."""
        receiver = self._by_qpn.get(run.qpn)
        if receiver is None:
            return False
        answer = receiver.on_arrived(run, now_ns)
        self._answer(receiver, answer, now_ns)
        self._arm(receiver)
        for written in answer.written:
            self._written(receiver.pair, written, now_ns)
        return True

    def on_trimmed(self, cut: Trimmed, now_ns: int) -> bool:
        """Handle a packet without its payload; return False if no multipath responder has that number."""
        receiver = self._by_qpn.get(cut.qpn)
        if not isinstance(receiver, MultipathReceiver):
            return False
        self._answer(receiver, receiver.on_trimmed(cut.psn, cut.value, now_ns), now_ns)
        self._arm(receiver)
        return True

    def on_probe(self, qpn: int, telemetry: Telemetry, now_ns: int) -> bool:
        """Answer a probe of a path; return False if no responder has that number."""
        receiver = self._by_qpn.get(qpn)
        if receiver is None:
            return False
        self._nic_ports.charge_reply(receiver, self._wire.echo(receiver, telemetry), now_ns)
        return True

    def on_timer(self, receiver: ReceivingEnd, now_ns: int) -> None:
        """Send what is due of one end."""
        self._answer(receiver, receiver.on_timer(now_ns), now_ns)
        if receiver.on_notice_timer(now_ns):
            self._nic_ports.charge_reply(receiver, self._wire.notify(receiver), now_ns)
        self._arm(receiver)

    def _answer(self, receiver: ReceivingEnd, answer: Answer, now_ns: int) -> None:
        """Send the replies that are due."""
        for reply in answer.replies:
            self._nic_ports.charge_reply(receiver, self._wire.reply(receiver, reply), now_ns)
        for sack in answer.sacks:
            self._nic_ports.charge_reply(receiver, self._wire.sack(receiver, sack), now_ns)
        if answer.invalid is not None:
            self._nic_ports.charge_reply(receiver, self._wire.invalid(receiver, answer.invalid), now_ns)
