"""Our end of a reliable connection whose other end is a queue pair of the kernel's Soft-RoCE.

Machines, writer and reader of packets are the product's. A UDP socket does not tell the IP identification, which the
ICRC covers: it is 0 in all packets of ours, while rxe numbers its packets. So packets are taken with their IP headers
here, the ICRC is checked with the identification that they came with, and they are handed on with that of
identification 0.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.packets.buffers import enlarge_receive
from hpn.traffic.flows.flow import ROCE_PORT
from hpn.traffic.flows.framing import ICRC_BYTES, IP_UDP_BYTES
from hpn.traffic.io.recvmmsg import Batch
from hpn.traffic.io.sockets import open_raw_sender
from hpn.traffic.streams import wire
from hpn.traffic.streams.qp import AckPolicy
from hpn.traffic.transport.inbox import Arrived, Inbox
from hpn.traffic.transport.incoming import FrameReader
from hpn.traffic.transport.outgoing import Outgoing
from hpn.traffic.transport.packets import Envelope, Packet, pack_payload, parse
from hpn.traffic.transport.requester import Requester
from hpn.traffic.transport.responder import Reply, Responder
from hpn.traffic.transport.syndromes import REFUSALS, SYNDROME_ACK, SYNDROME_NAK_PSN, Says, says
from hpn.traffic.transport.work import Completion, Transport, WorkRequest
from tests.judges.rxe import OUR_IP, PEER_IP, QPN

SENT_NS = 0x1122334455667788
"""What all our packets say about when they left: so their content is known beforehand."""

SPORT = 0xC0DE
_BATCH = 256
_IP_BYTES = 20


def words_of(size_bytes: int, path_mtu: int, seed: int) -> NDArray[np.uint64]:
    """A word for each packet of a message; all differ."""
    count = -(-size_bytes // path_mtu)
    return (np.arange(1, count + 1, dtype=np.uint64) << np.uint64(20)) + np.uint64(seed)


def content_of(size_bytes: int, path_mtu: int, seed: int) -> bytes:
    """The message that those words stand for, byte by byte."""
    sizes = [min(path_mtu, size_bytes - at) for at in range(0, size_bytes, path_mtu)]
    words = words_of(size_bytes, path_mtu, seed).tolist()
    return b"".join(pack_payload(word, SENT_NS, size) for word, size in zip(words, sizes, strict=True))


class Ours:
    """Both ends of a connection on our side, its packets, and what they brought."""

    def __init__(self, namespace: ns.NetNs, to_qpn: int, r_key: int, transport: Transport, first_psn: int) -> None:
        self.to_qpn = to_qpn
        self.requester = Requester(transport, first_psn)
        self.responder = Responder(transport, AckPolicy(16, 2_000_000), first_psn)
        self.inbox = Inbox(transport.path_mtu, first_psn)
        self.completions: list[Completion] = []
        self.arrived: list[Arrived] = []
        self.memory: dict[int, int] = {}  # address: word
        self.payloads: dict[int, bytes] = {}  # of the packets of the peer's messages, by PSN (24 bits)
        self.taken = self.damaged = self.replies = 0
        self.completed: list[tuple[int, int]] = []  # PSN of an acknowledgement of the peer, and its MSN
        self.deaf = False  # take what comes, and say nothing
        self._path_mtu = transport.path_mtu
        self._reader = FrameReader(transport.path_mtu, [OUR_IP])
        self._outgoing = Outgoing(2048, transport.path_mtu)
        self._sender = open_raw_sender(namespace)
        self._receiver = namespace.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_UDP)
        enlarge_receive(self._receiver, 64 << 20)
        self._port = namespace.socket(socket.AF_INET, socket.SOCK_DGRAM)  # nobody reads it; without it, ICMP answers
        self._port.bind((OUR_IP, ROCE_PORT))
        to = Envelope(OUR_IP, PEER_IP, SPORT, to_qpn, r_key=r_key)
        self._path = self._outgoing.open_path(self._sender.fileno(), to, transport.ack_every)
        self._words: dict[int, NDArray[np.uint64]] = {}

    def post(self, request: WorkRequest, seed: int) -> None:
        """Take a work request whose content is that of ``seed``."""
        self._words[request.id] = words_of(request.size_bytes, self._path_mtu, seed)
        self.requester.post(request, time.monotonic_ns())

    def run(self, until: Callable[[], bool], within_s: float = 20.0) -> bool:
        """Send, receive and wait until something holds; whether it came to that."""
        deadline = time.monotonic_ns() + round(within_s * 1e9)
        while not until() and time.monotonic_ns() < deadline:
            self._turn()
            due = [
                at for at in (self.requester.deadline_ns(), self.responder.deadline_ns(), deadline) if at is not None
            ]
            wait_s = max(min(due) - time.monotonic_ns(), 0) / 1e9
            select.select([self._receiver], [], [], 0.0 if self.requester.sendable else min(wait_s + 1e-6, 0.1))
        return until()

    def close(self) -> None:
        """Close the sockets."""
        for each in (self._sender, self._receiver, self._port):
            each.close()

    def _turn(self) -> None:
        self._receive()
        now = time.monotonic_ns()
        self.completions += self.requester.on_timer(now)
        late = self.responder.on_timer(now)
        if late is not None:
            self._reply(late)
        if self.requester.sendable:
            for run in self.requester.take(1024, now):
                words = self._words[run.request.id][run.first : run.first + run.count]
                self._outgoing.add(self._path, run, words, SENT_NS)
        self._outgoing.send()

    def _receive(self) -> None:
        datagrams = list(self._datagrams())
        if not datagrams or self.deaf:
            return
        now = time.monotonic_ns()
        found = self._reader.read(_batch(datagrams, self._reader.row_bytes))
        self.damaged += found.damaged
        for run in found.runs:
            taken = self.responder.on_run(run.psn, len(run.packets), run.ack_requested, now)
            for offset, count in taken.accepted:
                self.inbox.keep(taken.first_psn + offset, run.packets.part(offset, offset + count))
            delivery = self.inbox.deliver(taken.expected)
            assert not delivery.invalid
            for piece in delivery.written:
                places = range(piece.address, piece.address + piece.size_bytes, self._path_mtu)
                self.memory.update(zip(places, piece.words.tolist(), strict=True))
            self.arrived += delivery.arrived
            for reply in taken.replies:
                self._reply(reply)
        for _, packet in found.replies:
            self._hear(packet, now)

    def _hear(self, packet: Packet, now: int) -> None:
        assert packet.aeth is not None
        self.replies += 1
        assert packet.qpn == QPN
        meaning = says(packet.aeth.syndrome)
        if meaning is Says.ARRIVED:
            self.completed.append((packet.psn, packet.aeth.msn))
            self.completions += self.requester.on_ack(packet.psn, now)
        elif meaning is Says.MISSING:
            self.completions += self.requester.on_nak(packet.psn, now)
        elif meaning is Says.REFUSED:
            self.completions += self.requester.on_refused(REFUSALS[packet.aeth.syndrome], now)

    def _reply(self, reply: Reply) -> None:
        syndrome = SYNDROME_NAK_PSN if reply.nak else SYNDROME_ACK
        self._outgoing.add_ack(self._path, reply.psn & wire.PSN_MASK, syndrome, self.inbox.messages)

    def _datagrams(self) -> Iterator[tuple[bytes, bytes]]:
        """Source (port, address) and UDP payload of what has come, with the ICRC of IP identification 0."""
        for _ in range(_BATCH):
            try:
                whole = self._receiver.recv(65_536)
            except BlockingIOError:
                return
            head, udp_payload = whole[:IP_UDP_BYTES], whole[IP_UDP_BYTES:]
            if int.from_bytes(head[_IP_BYTES + 2 : _IP_BYTES + 4], "big") != ROCE_PORT:
                continue
            self.taken += 1
            source = head[_IP_BYTES : _IP_BYTES + 2] + head[12:16]
            udp_payload = _of_identification_0(head, udp_payload)
            packet = parse(udp_payload, source, OUR_IP)
            if packet is not None and packet.intact and packet.aeth is None:
                self.payloads[packet.psn] = packet.payload
            yield source, udp_payload


def _of_identification_0(head: bytes, udp_payload: bytes) -> bytes:
    """The same packet as one that left with identification 0; a wrong ICRC stays one."""
    body, ours = udp_payload[:-ICRC_BYTES], int.from_bytes(udp_payload[-ICRC_BYTES:], "little")
    place = (PEER_IP, OUR_IP, int.from_bytes(head[_IP_BYTES : _IP_BYTES + 2], "big"))
    wrong = ours ^ wire.icrc(*place, int.from_bytes(head[4:6], "big"), body)
    return body + (wire.icrc(*place, 0, body) ^ wrong).to_bytes(ICRC_BYTES, "little")


def _batch(datagrams: Sequence[tuple[bytes, bytes]], row_bytes: int) -> Batch:
    """What a receiver of many would have made of them."""
    count, stride = len(datagrams), -(-(row_bytes + 4) // 64) * 64
    rows = np.zeros((count, stride), np.uint8)[:, 4 : 4 + row_bytes]
    for row, (_, udp_payload) in zip(rows, datagrams, strict=True):
        row[: min(len(udp_payload), row_bytes)] = np.frombuffer(udp_payload[:row_bytes], np.uint8)
    return Batch(
        rows,
        np.array([min(len(udp_payload), row_bytes) for _, udp_payload in datagrams], np.uint32),
        np.frombuffer(b"".join(source for source, _ in datagrams), np.uint8).reshape(count, 6),
        np.zeros(count, np.int64),
        np.zeros(count, np.intp),
        np.zeros(count, np.uint8),
    )
