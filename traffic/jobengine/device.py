"""NICs of a worker: raw sockets for sending and the paths of its queue pairs.

Changes when packet output of a job changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import recovery_qpns
from hpn.traffic.flows.framing import ACK_BYTES, ETHERNET_BYTES, IP_UDP_BYTES
from hpn.traffic.io.sockets import open_raw_sender
from hpn.traffic.io.uring import Ring
from hpn.traffic.jobengine.envelopes import data_envelope, reply_envelope
from hpn.traffic.jobengine.many_paths import PATH_PROBE_WIRE_BYTES, ManyPaths
from hpn.traffic.jobengine.nic_inputs import NicInputs
from hpn.traffic.jobengine.receiver import ReceivingEnd
from hpn.traffic.jobengine.sending_end import SendingEnd
from hpn.traffic.jobengine.setup import QueuePair
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.multipath.settings import EntropyValue, Multipath
from hpn.traffic.streams.wire import PSN_MASK
from hpn.traffic.transport.incoming import FrameReader
from hpn.traffic.transport.many_paths_reader import ManyPathsReader
from hpn.traffic.transport.outgoing import Outgoing
from hpn.traffic.transport.packets import CNP_BYTES, PROBE_BYTES
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.responder import Reply
from hpn.traffic.transport.syndromes import SYNDROME_ACK, SYNDROME_NAK_INVALID, SYNDROME_NAK_PSN
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.workers.messages import NicSpec

NO_ROOM = "no room to send"
_ROOM = 2048
_ACK_WIRE_BYTES = ETHERNET_BYTES + IP_UDP_BYTES + ACK_BYTES
_CNP_WIRE_BYTES = ETHERNET_BYTES + IP_UDP_BYTES + 12 + CNP_BYTES + 4
_PROBE_WIRE_BYTES = ETHERNET_BYTES + IP_UDP_BYTES + PROBE_BYTES


class Device:
    """NICs of a worker; implements ``wire_interface.Wire``. OSError when a socket is not available."""

    def __init__(
        self,
        nics: Sequence[NicSpec],
        namespaces: Mapping[str, NetNs],
        path_mtu: int,
        ack_every: int,
        ring: Ring | None = None,
        *,
        multipath: Multipath | None = None,
    ) -> None:
        """Open all NICs; with a ``ring`` one system call serves all of them. ``multipath``: packets take many paths."""
        self._ack_every = ack_every
        ips = [nic.ip for nic in nics]
        reader = (
            FrameReader(path_mtu, ips) if multipath is None else ManyPathsReader(path_mtu, ips, multipath.trimmed_dscp)
        )
        self.inputs = NicInputs(nics, namespaces, reader, ring)
        self._no_room = 0
        self._ip = reader.ip
        self._outgoing = Outgoing(_ROOM, path_mtu, ring, self._ip)
        self._namespaces = namespaces
        self._senders = {(nic.name, 0): open_raw_sender(namespaces[nic.name], layer=self._ip) for nic in nics}
        self.many = ManyPaths(self._outgoing, self._fd, ack_every)
        self._data_paths: dict[int, list[int]] = {}  # by flow; the first ``_used`` of them are in use
        self._used: dict[int, int] = {}
        self._turns: Counter[int] = Counter()  # by flow: packets of flows that use several paths
        self._ack_paths: dict[int, int] = {}
        self._sports: dict[tuple[int, bool], tuple[int, ...]] = {}  # by flow, data or reply: ports moved to
        self._ends: dict[tuple[int, bool], tuple[str, str]] = {}  # likewise: the NICs that the path was opened for
        self._life = 0

    def open_sender(self, pair: QueuePair) -> None:
        """Prepare to send a queue pair's data."""
        f = pair.flow
        self._ends[f.id, False] = (f.src_nic, f.dst_nic)
        self._data_paths[f.id] = []
        self._lead(pair, (f.sport,))

    def open_receiver(self, pair: QueuePair) -> None:
        """Prepare to send a queue pair's acknowledgements."""
        f = pair.flow
        self._ends[f.id, True] = (f.src_nic, f.dst_nic)
        envelope = reply_envelope(pair, f.ack_sport, self._life)
        self._ack_paths[f.id] = self._outgoing.open_path(self._fd(f.dst_nic), envelope)

    def sends(self, flow: int, *, ack: bool) -> bool:
        """Return True if a queue pair's data, or its acknowledgements, leave from here."""
        return flow in (self._ack_paths if ack else self._data_paths)

    def move(self, pair: QueuePair, sport: int, ack: bool) -> None:
        """Send a queue pair's data, or its acknowledgements, from another source port from now on."""
        f = pair.flow
        if not ack:
            self.spray(pair, (sport,))
            return
        self._sports[f.id, True] = (sport,)
        self._outgoing.move_path(self._ack_paths[f.id], reply_envelope(pair, sport, self._life))

    def spray(self, pair: QueuePair, sports: tuple[int, ...]) -> None:
        """Send each data packet of a queue pair from the next of these source ports from now on."""
        self._sports[pair.flow.id, False] = sports
        self._lead(pair, sports)

    def lead(self, pair: QueuePair, values: Sequence[EntropyValue], *, ack: bool) -> None:
        """Send a multipath queue pair's data, or its acknowledgements, by these entropy values from now on."""
        self.many.lead(pair, values, self._life, ack=ack)

    def _lead(self, pair: QueuePair, sports: tuple[int, ...]) -> None:
        f = pair.flow
        opened = self._data_paths[f.id]
        for at, sport in enumerate(sports):
            envelope = data_envelope(pair, sport, self._life)
            if at < len(opened):
                self._outgoing.move_path(opened[at], envelope)
            else:
                opened.append(self._outgoing.open_path(self._fd(f.src_nic), envelope, self._ack_every))
        self._used[f.id] = len(sports)

    def renew(self, senders: Iterable[QueuePair], receivers: Iterable[QueuePair], life: int) -> None:
        """Send to the queue pairs of a new incarnation of the job; source ports stay the same between the same NICs."""
        self._life = life
        for pair in senders:
            if self._is_open(pair, ack=False):
                self._lead(pair, self._sports.get((pair.flow.id, False), (pair.flow.sport,)))
            else:
                self.open_sender(pair)
            self.many.renew(pair, life, ack=False)
        for pair in receivers:
            self.many.renew(pair, life, ack=True)
            if self._is_open(pair, ack=True):
                (sport,) = self._sports.get((pair.flow.id, True), (pair.flow.ack_sport,))
                self.move(pair, sport, ack=True)
            else:
                self.open_receiver(pair)

    def _is_open(self, pair: QueuePair, ack: bool) -> bool:
        """Return True if its path is open. A path between other NICs is dropped, with its moves."""
        key = (pair.flow.id, ack)
        same = self._ends.get(key) == (pair.flow.src_nic, pair.flow.dst_nic)
        if not same:
            self._sports.pop(key, None)
        return same

    def data(self, sender: SendingEnd, run: Run, now_ns: int) -> None:
        """Send a run of data packets."""
        flow, words = sender.pair.flow.id, sender.words(run)
        if run.paths:
            self.many.data(flow, run, words, now_ns, self._has_room)
            return
        paths, used = self._data_paths[flow], self._used[flow]
        if used == 1 and run.count <= self._outgoing.room:
            self._outgoing.add(paths[0], run, words, now_ns)
            return
        path, most, at = paths[0], run.count if used == 1 else 1, 0
        while at < run.count and self._has_room(run.count - at):
            if used > 1:
                path = paths[self._turns[flow] % used]
                self._turns[flow] += 1
            stop = min(run.count, at + min(self._outgoing.room, most))
            self._outgoing.add(path, run.part(at, stop), words[at:stop], now_ns)
            at = stop

    def reply(self, receiver: ReceivingEnd, reply: Reply) -> int:
        """Send an acknowledgement, or a NAK."""
        if reply.nak:
            return self._reply(receiver, reply.psn, SYNDROME_NAK_PSN)
        return self._reply(receiver, reply.psn, SYNDROME_ACK, becn=receiver.echo())

    def sack(self, receiver: ReceivingEnd, sack: Sack) -> int:
        """Send a selective acknowledgement, back by the port that its newest packet left by."""
        if not self._has_room(1):
            return 0
        return self.many.sack(receiver.pair.flow.id, receiver.reply_path(sack.value), sack, receiver.msn)

    def path_probe(self, sender: SendingEnd, path: int, _now_ns: int) -> tuple[int, int]:
        """Send a probe by one path of many."""
        flow = sender.pair.flow.id
        if self._has_room(1):
            self._outgoing.add_path_probe(self.many.paths(flow)[path], sender.requester.progress() - 1 & PSN_MASK)
        return self.many.port(flow, path), PATH_PROBE_WIRE_BYTES

    def invalid(self, receiver: ReceivingEnd, psn: int) -> int:
        """Send a NAK for an invalid request."""
        return self._reply(receiver, psn, SYNDROME_NAK_INVALID)

    def notify(self, receiver: ReceivingEnd) -> int:
        """Send a congestion notification."""
        if self._has_room(1):
            self._outgoing.add_cnp(self._reply_path(receiver))
        return _CNP_WIRE_BYTES

    def probe(self, sender: SendingEnd, now_ns: int) -> int:
        """Send a probe by the first path of a queue pair's data."""
        if self._has_room(1):
            self._outgoing.add_probe(self._data_paths[sender.pair.flow.id][0], now_ns)
        return _PROBE_WIRE_BYTES

    def echo(self, receiver: ReceivingEnd, telemetry: Telemetry) -> int:
        """Send what a probe has brought back to its sender."""
        if self._has_room(1):
            self._outgoing.add_echo(self._reply_path(receiver), telemetry)
        return _PROBE_WIRE_BYTES

    def flush(self) -> None:
        """Hand all packets to the kernel. Refused packets are lost; those without room stay and go first."""
        self._outgoing.send()

    @property
    def holds(self) -> bool:
        """True if the kernel had no room for packets; ``flush`` tries again."""
        return self._outgoing.room < _ROOM

    def note(self, pair: QueuePair, immediate: int, to_responder: bool, datagram: bool) -> None:
        """Send a note of a failed queue pair's recovery by its present path."""
        path = self._data_paths[pair.flow.id][0] if to_responder else self._ack_paths[pair.flow.id]
        if self._has_room(1):
            qpns = recovery_qpns(pair.flow.id)
            source_qpn = qpns[not to_responder] if datagram else None
            self._outgoing.add_note(path, qpns[to_responder], immediate, source_qpn)

    def refused(self) -> Counter[str]:
        """Return the packets that were not sent, by errno name or ``NO_ROOM``: lost, as on a failed link."""
        return sum(self._outgoing.refused.values(), Counter({NO_ROOM: self._no_room}))

    def close(self) -> None:
        """Close every socket."""
        self.inputs.close()
        for sock in self._senders.values():
            sock.close()

    def _fd(self, nic: str, mark: int = 0) -> int:
        if (nic, mark) not in self._senders:
            self._senders[nic, mark] = open_raw_sender(self._namespaces[nic], mark, self._ip)
        return self._senders[nic, mark].fileno()

    def _reply(self, receiver: ReceivingEnd, psn: int, syndrome: int, *, becn: bool = False) -> int:
        if self._has_room(1):
            path = self._reply_path(receiver)
            self._outgoing.add_ack(path, psn & PSN_MASK, syndrome, receiver.msn & PSN_MASK, becn=becn)
        return _ACK_WIRE_BYTES

    def _reply_path(self, receiver: ReceivingEnd) -> int:
        flow = receiver.pair.flow.id
        many = self.many.replies(flow)
        return many[receiver.reply_path()] if many else self._ack_paths[flow]

    def _has_room(self, packets: int) -> bool:
        """Return True if more may be added. If the kernel takes nothing, ``packets`` are lost: waiting would spin."""
        if not self._outgoing.room:
            self.flush()
        if self._outgoing.room:
            return True
        self._no_room += packets
        return False
