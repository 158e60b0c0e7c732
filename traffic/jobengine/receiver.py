"""The receiving end of a queue pair in a worker: transport, memory, and the notifier of congestion. PURE."""

from __future__ import annotations

from collections.abc import Mapping

from hpn.traffic.congestion.notifier import Notifier
from hpn.traffic.jobengine.multipath_receiver import MultipathReceiver
from hpn.traffic.jobengine.receiver_answer import Answer
from hpn.traffic.jobengine.rehash import ECHO_SHARE
from hpn.traffic.jobengine.sending_end import earlier
from hpn.traffic.jobengine.setup import JobSetup, QueuePair
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.arrivals import ArrivedRun
from hpn.traffic.transport.inbox import Inbox, Packets
from hpn.traffic.transport.responder import Responder
from hpn.traffic.transport.work import Transport


class Receiver:
    """Receiving end of one queue pair."""

    def __init__(
        self,
        pair: QueuePair,
        transport: Transport,
        acks: AckPolicy,
        notifier: Notifier | None,
        *,
        echoes: bool = False,
        whole: bool = False,
    ) -> None:
        """Create a responder. ``echoes``: ACKs report marks. ``whole``: complete messages are reported, not their
        packets."""
        self.pair = pair
        self.responder = Responder(transport, acks)
        self.inbox = Inbox(transport.path_mtu, whole=whole)
        self.marked = 0  # packets that came with a congestion mark
        self.notices = 0  # congestion notifications sent
        self._notifier = notifier
        self._echoes = echoes
        self._since = self._marked_since = 0  # packets since the last acknowledgement, and of them marked

    @property
    def msn(self) -> int:
        """Messages completed, as an acknowledgement carries it (IBTA vol. 1, 9.7.5.1.6)."""
        return self.inbox.messages

    def port(self, ports: Mapping[int, int]) -> int:
        """Return the port of its NIC that replies leave by; ``ports`` as of ``Carrier.set_ports``."""
        return ports.get(2 * self.pair.flow.id + 1, 0)

    def reply_path(self, value: int | None = None) -> int:
        """Return 0: there is one path back."""
        return 0

    def on_arrived(self, run: ArrivedRun, now_ns: int) -> Answer:
        """Receive consecutive packets."""
        return self.on_run(run.psn, run.packets, run.ack_requested, run.marked, now_ns)

    def on_run(self, psn24: int, packets: Packets, ack_requested: bool, marked: int, now_ns: int) -> Answer:
        """Receive consecutive packets, the first with ``psn24``, of which ``marked`` carry a congestion mark (ECN 11).

        After an invalid packet nothing is stored: the NAK makes the other end give up.
        """
        count = len(packets.opcodes)
        self._since += count
        if marked:
            self._marked_since += marked
            self.marked += marked
            if self._notifier is not None:
                self._notifier.on_marked(now_ns)
        if self.inbox.invalid:
            return Answer(())
        taken = self.responder.on_run(psn24, count, ack_requested, now_ns)
        for offset, new in taken.accepted:
            self.inbox.keep(taken.first_psn + offset, packets.part(offset, offset + new))
        delivery = self.inbox.deliver(taken.expected)
        return Answer(taken.replies, delivery.written, taken.first_psn if delivery.invalid else None)

    def echo(self) -> bool:
        """Return True if the acknowledgement that leaves now reports marks on the packets it covers."""
        marked = self._echoes and 0 < self._marked_since >= ECHO_SHARE * self._since
        self._since = self._marked_since = 0
        return marked

    def on_timer(self, now_ns: int) -> Answer:
        """Return the acknowledgement whose delay is over, if there is one."""
        reply = self.responder.on_timer(now_ns)
        return Answer(() if reply is None else (reply,))

    def on_notice_timer(self, now_ns: int) -> bool:
        """Return True if a congestion notification is to be sent now."""
        due = self._notifier is not None and self._notifier.on_timer(now_ns)
        self.notices += due
        return due

    def deadline_ns(self) -> int | None:
        """Return the time at which the earlier of both timers is due."""
        if self._notifier is None:
            return self.responder.deadline_ns()
        return earlier(self.responder.deadline_ns(), self._notifier.next_ns())


ReceivingEnd = Receiver | MultipathReceiver


def receiving_end(setup: JobSetup, pair: QueuePair) -> ReceivingEnd:
    """Return the receiving end of a job's queue pair."""
    notifier = setup.control.notifier(setup.scale)
    if setup.transport.multipath is not None:
        return MultipathReceiver(pair, setup.transport, setup.acks, notifier)
    # Grants depend on the bytes that have arrived; ranks on complete messages only.
    whole = setup.control.admission(setup.scale, setup.transport.path_mtu) is None
    return Receiver(pair, setup.transport, setup.acks, notifier, echoes=setup.rehash is not None, whole=whole)
