"""The receiving end of a queue pair as a worker holds it: transport, memory, and the notifier of congestion. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpn.traffic.congestion.notifier import Notifier
from hpn.traffic.jobengine.rehash import ECHO_SHARE
from hpn.traffic.jobengine.sender import earlier
from hpn.traffic.jobengine.setup import JobSetup, QueuePair
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.inbox import Inbox, Packets, Written
from hpn.traffic.transport.responder import Reply, Responder
from hpn.traffic.transport.work import Transport


class Arriving(NamedTuple):
    """Consecutive packets that came together, the first with ``psn24``."""

    psn24: int
    packets: Packets
    ack_requested: bool  # by any of them
    marked: int  # how many came with a congestion mark (IP ECN 11)


class Answer(NamedTuple):
    """What follows: replies due at once, what was written, the PSN of a packet that makes no sense."""

    replies: Sequence[Reply]
    written: Sequence[Written] = ()
    invalid: int | None = None


class Receiver:
    """One responder."""

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
        """``echoes``: acknowledgements say what came marked. ``whole``: messages are told of, not their packets."""
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
        """Messages completed, as an acknowledgement says it (IBTA vol. 1, 9.7.5.1.6)."""
        return self.inbox.messages

    def on_run(self, arriving: Arriving, now_ns: int) -> Answer:
        """Take packets. Nothing is kept once one made no sense: the other end gives up when it hears of it."""
        self._since += len(arriving.packets)
        if arriving.marked:
            self._marked_since += arriving.marked
            self.marked += arriving.marked
            if self._notifier is not None:
                self._notifier.on_marked(now_ns)
        if self.inbox.invalid:
            return Answer(())
        taken = self.responder.on_run(arriving.psn24, len(arriving.packets), arriving.ack_requested, now_ns)
        for offset, count in taken.accepted:
            self.inbox.keep(taken.first_psn + offset, arriving.packets.part(offset, offset + count))
        delivery = self.inbox.deliver(taken.expected)
        return Answer(taken.replies, delivery.written, taken.first_psn if delivery.invalid else None)

    def echo(self) -> bool:
        """Whether the acknowledgement that leaves now says that what it stands for came marked."""
        marked = self._echoes and 0 < self._marked_since >= ECHO_SHARE * self._since
        self._since = self._marked_since = 0
        return marked

    def on_ack_timer(self, now_ns: int) -> Reply | None:
        """The acknowledgement whose delay is over, if any."""
        return self.responder.on_timer(now_ns)

    def on_notice_timer(self, now_ns: int) -> bool:
        """Whether a congestion notification is to be sent now."""
        due = self._notifier is not None and self._notifier.on_timer(now_ns)
        self.notices += due
        return due

    def deadline_ns(self) -> int | None:
        """When one of both timers is due."""
        if self._notifier is None:
            return self.responder.deadline_ns()
        return earlier(self.responder.deadline_ns(), self._notifier.next_ns())


def receiving_end(setup: JobSetup, pair: QueuePair) -> Receiver:
    """The receiving end of a job's queue pair."""
    notifier = setup.control.notifier(setup.scale)
    # Who grants goes by what has arrived; a rank by messages alone.
    whole = setup.control.admission(setup.scale, setup.transport.path_mtu) is None
    return Receiver(pair, setup.transport, setup.acks, notifier, echoes=setup.rehash is not None, whole=whole)
