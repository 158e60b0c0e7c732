"""The receiving end of a multipath queue pair in a worker: memory, acknowledgements, and their way back. PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hpn.traffic.congestion.notifier import Notifier
from hpn.traffic.jobengine.receiver_answer import Answer
from hpn.traffic.jobengine.sending_end import earlier
from hpn.traffic.jobengine.setup import QueuePair
from hpn.traffic.multipath.memory import Memory
from hpn.traffic.multipath.responder import MultipathResponder
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.arrivals import ArrivedRun
from hpn.traffic.transport.work import Transport


class MultipathReceiver:
    """Receiving end of one queue pair. Give it both directions' entropy values before anything arrives.

    An acknowledgement goes back over the links that the newest packet came by, if they are known. Otherwise it leaves
    by the port that this left its sender by: where planes are apart, that is the plane which it came by.
    """

    def __init__(self, pair: QueuePair, transport: Transport, acks: AckPolicy, notifier: Notifier | None) -> None:
        self.pair = pair
        self.responder = MultipathResponder(transport, acks)
        self.inbox = Memory(transport.path_mtu)
        self.marked = 0  # packets that came with a congestion mark
        self.notices = 0  # congestion notifications sent
        self._notifier = notifier
        self._port_of: dict[int, int] = {}  # of the sender's NIC, by its values
        self._back: dict[int, int] = {}  # own path over the same links, by the sender's values
        self._replies: dict[int, list[int]] = {}  # by port of this NIC: own paths
        self._ports: Sequence[int] = (0,)  # of this NIC, by own path
        self._turns: Counter[int] = Counter()
        self._path = 0  # of the last acknowledgement

    @property
    def msn(self) -> int:
        """Messages completed, as an acknowledgement carries it."""
        return self.inbox.messages

    def set_values(self, theirs: Sequence[EntropyValue], ours: Sequence[EntropyValue]) -> None:
        """Use the entropy values of the data, and of the acknowledgements, from now on."""
        self._port_of = {value.sport: value.port for value in theirs}
        self._back = {value.sport: value.back for value in theirs if value.back >= 0}
        self._ports = [value.port for value in ours]
        self._replies = {}
        for path, value in enumerate(ours):
            self._replies.setdefault(value.port, []).append(path)

    def port(self, _ports: Mapping[int, int]) -> int:
        """Return the port of this NIC that the last reply left by."""
        return self._ports[self._path]

    def reply_path(self, value: int | None = None) -> int:
        """Return the path for a reply to a packet that came by ``value``, or to the newest one.

        Those of a port take turns where none leads back over the same links.
        """
        came_by = self.responder.value if value is None else value
        if came_by in self._back:
            self._path = self._back[came_by]
            return self._path
        port = self._port_of.get(came_by, 0)
        if port not in self._replies and self._replies:
            port = min(self._replies)
        paths = self._replies.get(port, [0])
        self._path = paths[self._turns[port] % len(paths)]
        self._turns[port] += 1
        return self._path

    def echo(self) -> bool:
        """Return False: acknowledgements name the paths of marked packets instead."""
        return False

    def on_arrived(self, run: ArrivedRun, now_ns: int) -> Answer:
        """Receive consecutive packets; those without payload are probes."""
        if run.marked:
            self.marked += run.marked
            self.responder.on_marked(run.marks)
            if self._notifier is not None:
                self._notifier.on_marked(now_ns)
        if self.inbox.invalid:
            return Answer(())
        packets, count = run.packets, len(run.packets)
        if 0 in packets.sizes:
            return self._probed(run)
        new = self.responder.on_run(run.psn, count, run.values[-1], now_ns)
        start = self.responder.newest + 1 - count
        written = [
            piece for low, high in new for piece in self.inbox.write(low, packets.part(low - start, high - start))
        ]
        if self.inbox.invalid:
            return Answer((), written, start)
        self.inbox.on_expected(self.responder.expected)
        due = self.responder.due(run.ack_requested)
        return Answer((), written, sacks=(self.responder.acknowledge(),) if due else ())

    def on_trimmed(self, psn24: int, value: int, now_ns: int) -> Answer:
        """Ask for a packet whose payload a switch cut off, and notify its sender as of a marked one."""
        if self._notifier is not None:
            self._notifier.on_marked(now_ns)
        return Answer((), sacks=(self.responder.on_trimmed(psn24, value),))

    def _probed(self, run: ArrivedRun) -> Answer:
        """Answer probes, each by itself."""
        probes = (at for at, size in enumerate(run.packets.sizes) if size == 0)
        sacks: list[Sack] = [self.responder.answer(run.psn + at, run.values[at]) for at in probes]
        return Answer((), sacks=sacks)

    def on_timer(self, now_ns: int) -> Answer:
        """Return the acknowledgement whose delay is over, if there is one."""
        due_ns = self.responder.deadline_ns()
        over = due_ns is not None and due_ns <= now_ns
        return Answer((), sacks=(self.responder.acknowledge(now_ns),) if over else ())

    def on_notice_timer(self, now_ns: int) -> bool:
        """Return True if a congestion notification is to be sent now."""
        due = self._notifier is not None and self._notifier.on_timer(now_ns)
        self.notices += due
        return due

    def deadline_ns(self) -> int | None:
        """Return the time at which the earlier of both timers is due."""
        own_ns = self.responder.deadline_ns()
        return own_ns if self._notifier is None else earlier(own_ns, self._notifier.next_ns())
