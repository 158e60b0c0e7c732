"""The receiving half of a worker: drains its NICs' sockets in batches, checks, records, acknowledges."""

from __future__ import annotations

import errno
import select
import socket
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec, responder_qpn
from hpn.traffic.flows.framing import ACK_BYTES, ICRC_BYTES, data_bytes
from hpn.traffic.flows.ip_layer import IPV4
from hpn.traffic.io.bursts import Bursts
from hpn.traffic.io.recvmmsg import Batch, BatchReceiver
from hpn.traffic.io.sockets import buffer_bytes, drops, open_receiver, open_sender
from hpn.traffic.io.uring import Ring
from hpn.traffic.streams import wire
from hpn.traffic.streams.pacing import I64
from hpn.traffic.streams.qp import AckPolicy, Reply, Responder
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.streams.records import FLAG_BAD_ICRC, RECEIVED


class Responders:
    """The receiving ends of ``flows`` (local indexes). A lost acknowledgement is harmless: the next one covers it.

    With a ``ring`` one system call sends the replies of a tick.
    """

    def __init__(
        self, flows: Sequence[FlowSpec], namespaces: Mapping[str, NetNs], policy: AckPolicy, ring: Ring | None = None
    ) -> None:
        self.errors: Counter[str] = Counter()
        self.acks_sent = 0
        self._flows = tuple(flows)
        self._namespaces = namespaces
        self._responders = [Responder(policy) for _ in flows]
        self._waiting: set[int] = set()
        self._sports = [f.ack_sport for f in flows]
        self._sockets = [open_sender(namespaces[f.dst_nic], f.dst_ip, f.ack_sport) for f in flows]
        self._due: list[tuple[int, bytes]] = []
        self._bursts = None
        if ring is not None:
            self._replies = np.zeros((ring.entries, ACK_BYTES), np.uint8)
            self._bursts = Bursts(ring, self._replies, [IPV4.sockaddr(f.src_ip, ROCE_PORT) for f in flows])

    def on_data(self, flow: int, lowest: int, highest: int, count: int, at_ns: int) -> None:
        """Handle packets of ``flow``: send the replies that are due, and remember that an acknowledgement is owed."""
        for reply in self._responders[flow].on_data(lowest, highest, count, at_ns):
            self._send(flow, reply)
        self._waiting.add(flow)

    def tick(self, next_ns: int) -> None:
        """Send what is due, with the acknowledgements whose delay will be over at the next call, at ``next_ns``."""
        for flow in tuple(self._waiting):
            responder = self._responders[flow]
            reply = responder.on_timer(next_ns)
            if reply is not None:
                self._send(flow, reply)
            if not responder.waiting:
                self._waiting.discard(flow)
        if self._bursts is not None:
            self._flush(self._bursts)

    def _send(self, flow: int, reply: Reply) -> None:
        spec = self._flows[flow]
        syndrome = wire.SYNDROME_NAK_PSN if reply.nak else wire.SYNDROME_ACK
        payload = wire.pack_ack(spec.dst_ip, spec.src_ip, self._sports[flow], spec.id, reply.psn, syndrome)
        if self._bursts is not None:
            self._due.append((flow, payload))
            return
        code = 0
        try:
            self._sockets[flow].sendto(payload, (spec.src_ip, ROCE_PORT))
        except OSError as error:
            code = error.errno or errno.EIO
        self._sent(code)

    def _flush(self, bursts: Bursts) -> None:
        """Send all that is due."""
        most = len(self._replies)
        for begin in range(0, len(self._due), most):
            flows, payloads = zip(*self._due[begin : begin + most], strict=True)
            count = len(flows)
            self._replies[:count] = np.frombuffer(b"".join(payloads), np.uint8).reshape(count, -1)
            fds = [self._sockets[flow].fileno() for flow in flows]
            for code in bursts.send(fds, flows, range(count), [1] * count):
                self._sent(code)
        self._due.clear()

    def _sent(self, code: int) -> None:
        """Count a reply, or the error with which it was refused."""
        if code:
            self.errors[errno.errorcode.get(code, str(code))] += 1
        else:
            self.acks_sent += 1

    def move(self, flow: int, sport: int) -> int:
        """Acknowledge ``flow`` from another source port from now on; return the time of the change. OSError."""
        spec = self._flows[flow]
        old = self._sockets[flow]
        self._sockets[flow] = open_sender(self._namespaces[spec.dst_nic], spec.dst_ip, sport)
        self._sports[flow] = sport
        at = now_ns()
        old.close()
        return at

    def close(self) -> None:
        """Close every socket."""
        for sock in self._sockets:
            sock.close()


_FILL_WORD = np.uint64(int.from_bytes(bytes([wire.FILL] * 8), "little"))
_BATCH = 512
_MOST_A_TICK = 2048  # of one NIC; then the sender runs, and the rest is received at the next tick


@dataclass(slots=True)
class Received:
    """Receive counts for the report."""

    per_flow: I64
    highest: I64  # sequence number of each flow; -1: nothing intact
    packets: int = 0  # of any kind
    icrc_bad: int = 0
    foreign: int = 0  # not ours, or for a flow that is not received here or closed
    socket_errors: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Inlet:
    """Receive socket of one NIC."""

    sock: socket.socket
    index: int
    load: float  # bytes per second of its buffer that its flows fill


class Receiver:
    """The responders of ``flows``, and the receive sockets of ``nics`` (name to IP), which also receive ACKs."""

    def __init__(
        self,
        flows: Sequence[FlowSpec],
        nics: Mapping[str, str],
        path_mtus: Sequence[int],
        namespaces: Mapping[str, NetNs],
        records: RecordFile,
        policy: AckPolicy,
        ring: Ring | None = None,
    ) -> None:
        self.flows = tuple(sorted(flows, key=lambda f: f.id))
        self.received = Received(np.zeros(len(flows), np.int64), np.full(len(flows), -1, np.int64))
        self.responders = Responders(self.flows, namespaces, policy, ring)
        self._records = records
        self._icrc = {data_bytes(mtu): wire.DataIcrc(mtu) for mtu in sorted(set(path_mtus))}
        self._qpns = np.array([*(responder_qpn(f.id) for f in self.flows), wire.QPN_MASK + 1], np.int64)
        self._ids = np.array([*(f.id for f in self.flows), 0], np.uint32)
        self._open = np.ones(len(self._ids), bool)
        # 4 extra bytes, so that a longer datagram is not mistaken for one of ours.
        self._batches = BatchReceiver(_BATCH, max(self._icrc) + 4)
        self._poll = select.epoll()
        self._inlets: dict[int, _Inlet] = {}
        self._ips = tuple(nics.values())
        self._destinations = {  # by packet size: the part of the ICRC that each NIC's address decides
            size: np.array([icrc.of_destination(ip) for ip in self._ips], np.uint32)
            for size, icrc in self._icrc.items()
        }
        for index, (nic, ip) in enumerate(nics.items()):
            sock = open_receiver(namespaces[nic], ip)
            load = sum(f.rate_pps * _buffered_bytes(f.path_mtu) for f in self.flows if f.dst_nic == nic)
            self._inlets[sock.fileno()] = _Inlet(sock, index, load)
            self._poll.register(sock.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Return a descriptor that is readable when something has arrived at any NIC."""
        return self._poll.fileno()

    def tick(self, every_ns: int) -> list[wire.Ack]:
        """Receive what has arrived; acknowledge what is due until the next call, ``every_ns`` from now (0: unknown).

        Return the acknowledgements for our own requesters.
        """
        acks: list[wire.Ack] = []
        for fd, _ in self._poll.poll(0):
            self._drain(self._inlets[fd], acks)
        self._sort(acks)
        self.responders.tick(now_ns() + every_ns)
        return acks

    def _drain(self, inlet: _Inlet, acks: list[wire.Ack]) -> None:
        taken = 0
        while taken < _MOST_A_TICK:
            room = self._batches.room
            try:
                count = self._batches.receive(inlet.sock.fileno(), inlet.index)
            except OSError as error:
                self.received.socket_errors[str(error.strerror)] += 1
                return
            taken += count
            if count < room:
                return
            self._sort(acks)

    def _sort(self, acks: list[wire.Ack]) -> None:
        """Separate data of each path MTU, acknowledgements and everything else, by size."""
        batch = self._batches.take()
        if batch is None:
            return
        left = len(batch.lengths)
        self.received.packets += left
        for size, icrc in self._icrc.items():
            mask = batch.lengths == size
            count = int(np.count_nonzero(mask))
            if count:
                self._data(icrc, size, batch if count == left else _select(batch, mask))
            left -= count
        if left:
            for i in np.flatnonzero(batch.lengths == ACK_BYTES).tolist():
                to = self._ips[batch.owners[i]]
                ack = wire.parse_ack(batch.rows[i, :ACK_BYTES].tobytes(), batch.sources[i].tobytes(), to)
                if ack is None:
                    self.received.icrc_bad += 1
                else:
                    acks.append(ack)
                left -= 1
            self.received.foreign += left

    def _data(self, icrc: wire.DataIcrc, size: int, batch: Batch) -> None:
        raw = np.ascontiguousarray(batch.rows[:, : wire.DATA_HEADER.itemsize])
        header = raw.view(wire.DATA_HEADER).reshape(-1)
        good = self._intact(icrc, size, batch, raw)
        qpn = header["qpn"].astype(np.int64) & wire.QPN_MASK
        local = np.searchsorted(self._qpns, qpn)
        ours = (header["magic"] == wire.MAGIC) & (header["opcode"] == wire.RC_SEND_ONLY) & (self._qpns[local] == qpn)
        ours &= self._open[local]
        self.received.icrc_bad += len(good) - int(np.count_nonzero(good))
        self.received.foreign += int(np.count_nonzero(good & ~ours))
        records = np.zeros(len(raw), RECEIVED)
        records["flow"], records["flags"] = self._ids[local], np.where(good, 0, FLAG_BAD_ICRC)
        records["seq"], records["sent_ns"], records["received_ns"] = header["seq"], header["sent_ns"], batch.received_ns
        self._records.append(records if ours.all() else records[ours])
        harmless = ours & good
        self._acknowledge(local[harmless], records["seq"][harmless].astype(np.int64))

    def _intact(self, icrc: wire.DataIcrc, size: int, batch: Batch, raw: wire.U8) -> npt.NDArray[np.bool_]:
        """Return, for each packet, True if its ICRC is right. The fill is compared and the rest computed: same as a CRC
        over all."""
        expected = icrc.of_headers(raw) ^ icrc.of_sources(batch.sources) ^ self._destinations[size][batch.owners]
        end = size - ICRC_BYTES
        carried = np.ascontiguousarray(batch.rows[:, end:size]).view("<u4")[:, 0]
        fill = batch.rows[:, wire.DATA_HEADER.itemsize : end].view(np.uint64)
        good: npt.NDArray[np.bool_] = (expected == carried) & (fill == _FILL_WORD).all(axis=1)
        return good

    def _acknowledge(self, local: I64, seq: I64) -> None:
        count = len(self.flows)
        arrived = np.bincount(local, minlength=count)
        highest = np.full(count, -1)
        lowest = np.full(count, np.iinfo(np.int64).max)
        np.maximum.at(highest, local, seq)
        np.minimum.at(lowest, local, seq)
        self.received.per_flow += arrived
        np.maximum(self.received.highest, highest, out=self.received.highest)
        at = now_ns()
        for flow in np.flatnonzero(arrived).tolist():
            self.responders.on_data(flow, int(lowest[flow]), int(highest[flow]), int(arrived[flow]), at)

    def counts(self) -> dict[int, int]:
        """Return the number of intact packets recorded, by flow id."""
        return dict(zip((f.id for f in self.flows), self.received.per_flow.tolist(), strict=True))

    def highest(self) -> dict[int, int]:
        """Return the highest sequence number received intact, by flow id; -1 if none was."""
        return dict(zip((f.id for f in self.flows), self.received.highest.tolist(), strict=True))

    def move_ack(self, flow: int, sport: int) -> int:
        """Acknowledge the flow with id ``flow`` from another source port; return the time of the change. OSError."""
        return self.responders.move(int(np.searchsorted(self._qpns, responder_qpn(flow))), sport)

    def give_up(self, flows: Collection[int]) -> None:
        """Close the local responders of ``flows`` (ids); packets that still arrive for them are dropped."""
        self._open[np.isin(self._ids, list(flows))] = False

    def drops(self) -> int:
        """Return the number of datagrams lost because this worker did not read in time."""
        return sum(drops(inlet.sock) for inlet in self._inlets.values())

    def room_ns(self) -> int:
        """Return how long every NIC's buffer can hold unread arriving packets, if flows keep to their rates."""
        return min(
            (int(buffer_bytes(inlet.sock) * 1e9 / max(inlet.load, 1)) for inlet in self._inlets.values()), default=0
        )

    def buffer_bytes(self) -> int:
        """Return the smallest receive buffer granted."""
        return min((buffer_bytes(inlet.sock) for inlet in self._inlets.values()), default=0)

    def close(self) -> None:
        """Close every socket."""
        self.responders.close()
        self._poll.close()
        for inlet in self._inlets.values():
            inlet.sock.close()


def _buffered_bytes(path_mtu: int) -> int:
    """Return the most that a packet takes of a receive buffer: the kernel rounds up to a power of two and adds
    overhead."""
    return 2 * data_bytes(path_mtu) + 1024


def _select(batch: Batch, mask: npt.NDArray[np.bool_]) -> Batch:
    b, m = batch, mask
    return Batch(b.rows[m], b.lengths[m], b.sources[m], b.received_ns[m], b.owners[m], b.tos[m])
