"""The sending half of a worker: fills bursts of due packets with numpy.

Each burst is stamped and handed over on its own. Where the clock stands while a worker computes all have one stamp, and
one system call sends them: in a guest a call costs more than a packet.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hpn.testbed.errors import MachineError
from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec, responder_qpn
from hpn.traffic.flows.framing import ICRC_BYTES, data_bytes, ip_bytes
from hpn.traffic.flows.ip_layer import IPV4
from hpn.traffic.io.bursts import Bursts
from hpn.traffic.io.sockets import MAX_BURST_BYTES, MAX_BURST_PACKETS, open_sender
from hpn.traffic.io.uring import Ring
from hpn.traffic.streams import wire
from hpn.traffic.streams.gaps import SendGaps
from hpn.traffic.streams.pacing import I64, Schedule
from hpn.traffic.streams.qp import Requester, RetryPolicy
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.streams.records import SENT
from hpn.traffic.workers.messages import SendReport

_ROWS = 512
"""Packets prepared at once: 2 MB at path MTU 4096; an ordinary tick touches a fraction of it."""

_SENT_NS, _ICRC = struct.Struct(">q"), struct.Struct("<I")
_TOO_LARGE = frozenset({errno.EMSGSIZE, errno.EINVAL})


class Sender:
    """The requesters of ``flows``, all of one path MTU, with their sockets, schedule and records."""

    def __init__(
        self,
        flows: Sequence[FlowSpec],
        namespaces: Mapping[str, NetNs],
        records: RecordFile,
        tick_ns: int,
        ring: Ring | None = None,
    ) -> None:
        """Open all sockets; with a ``ring`` one system call serves all of them. OSError."""
        self.flows = tuple(flows)
        self.requesters = [Requester(RetryPolicy.of(f)) for f in flows]
        self.errors: list[Counter[str]] = [Counter() for _ in flows]
        self.schedule = Schedule([f.rate_pps for f in flows], tick_ns, [f.transfers for f in flows])
        self._namespaces = namespaces
        self._records = records
        self._path_mtu = flows[0].path_mtu
        self._size = data_bytes(self._path_mtu)
        self._burst = min(MAX_BURST_PACKETS, MAX_BURST_BYTES // self._size)
        self._icrc = wire.DataIcrc(self._path_mtu)
        self._sports = [f.sport for f in flows]
        self._sockets = [self._open(i) for i in range(len(flows))]
        self._to = [(f.dst_ip, ROCE_PORT) for f in flows]
        self._path_icrc = np.array([self._icrc.of_path(f.src_ip, f.dst_ip, f.sport) for f in flows], np.uint32)
        self._templates = wire.data_templates([responder_qpn(f.id) for f in flows])
        self._ids = np.array([f.id for f in flows], np.uint32)
        self._room()
        names = [IPV4.sockaddr(f.dst_ip, ROCE_PORT) for f in flows]
        self._bursts = None if ring is None else Bursts(ring, self._memory, names)

    def _room(self) -> None:
        """Allocate memory for the packets of a tick, with views of their parts."""
        memory = self._memory = np.full((_ROWS, self._size), wire.FILL, np.uint8)
        self._headers = memory[:, : wire.DATA_HEADER.itemsize]
        self._bytes = memory.reshape(-1).data
        self._counting = np.arange(_ROWS)

    def _open(self, flow: int) -> socket.socket:
        spec = self.flows[flow]
        return open_sender(self._namespaces[spec.src_nic], spec.src_ip, self._sports[flow], self._size)

    def begin(self, at_ns: int) -> None:
        """Send from ``at_ns`` on; replacement flows wait for ``start``."""
        self.schedule.start(at_ns, [i for i, flow in enumerate(self.flows) if flow.replaces is None])

    def start(self, flow: int) -> None:
        """Start sending ``flow`` (local index), a replacement flow."""
        self.schedule.start(now_ns(), [flow])

    def give_up(self, flow: int) -> None:
        """Stop sending ``flow`` (local index); its queue pair is closed, which is no error."""
        self.schedule.stop(flow)
        self.requesters[flow].close()

    def tick(self) -> None:
        """Send what is due now. MachineError if the path MTU does not fit the interface."""
        due = self.schedule.due(now_ns())
        while True:
            flows = np.flatnonzero(due)
            if not len(flows):
                return
            counts = np.minimum(due[flows], self._burst)
            fits = np.searchsorted(np.cumsum(counts), _ROWS, side="right")
            flows, counts = flows[:fits], counts[:fits]
            taken = self._send(flows, counts)
            due[flows] = np.where(taken, due[flows] - counts, 0)

    def _send(self, flows: I64, counts: I64) -> npt.NDArray[np.bool_]:
        """Send one burst for each of ``flows``; return False for those the kernel had no room for, which stay due."""
        seqs = self.schedule.next_seq[flows]
        first = np.cumsum(counts) - counts
        timeless = self._fill(flows, counts, seqs, first)
        owners, rows, sizes = flows.tolist(), first.tolist(), counts.tolist()
        if self._bursts is None:
            sent_at, refused = self._one_by_one(owners, rows, sizes, timeless)
        else:
            sent_at, refused = self._at_once(self._bursts, owners, rows, sizes, timeless)
        taken = np.ones(len(flows), bool)
        for k, (flow, code) in enumerate(zip(owners, refused, strict=True)):
            if code:
                taken[k] = code != errno.EAGAIN
                self._refused(flow, code)
        self._account(flows, counts, seqs, taken, sent_at)
        return taken

    def _one_by_one(
        self, flows: Sequence[int], rows: Sequence[int], counts: Sequence[int], timeless: wire.U32
    ) -> tuple[list[int], list[int]]:
        """Stamp and send a burst for each of ``flows``; return the stamps, and the errno of each or 0."""
        sent_at: list[int] = []
        refused: list[int] = []
        icrcs = timeless.tolist()
        for flow, row, count in zip(flows, rows, counts, strict=True):
            at = now_ns()
            end = row + count
            icrc = self._icrc.of_time(at)
            for packet in range(row, end):  # few: faster than numpy
                start = packet * self._size
                _SENT_NS.pack_into(self._bytes, start + wire.SENT_AT, at)
                _ICRC.pack_into(self._bytes, start + self._size - ICRC_BYTES, icrcs[packet] ^ icrc)
            code = 0
            try:
                self._sockets[flow].sendto(self._bytes[row * self._size : end * self._size], self._to[flow])
            except OSError as error:
                code = error.errno or errno.EIO
            sent_at.append(at)
            refused.append(code)
        return sent_at, refused

    def _at_once(
        self, bursts: Bursts, flows: Sequence[int], rows: Sequence[int], counts: Sequence[int], timeless: wire.U32
    ) -> tuple[list[int], list[int]]:
        """Do the same with one stamp and one system call."""
        at = now_ns()
        packets = self._memory[: len(timeless)]
        packets[:, wire.SENT_AT : wire.SENT_AT + _SENT_NS.size] = np.frombuffer(_SENT_NS.pack(at), np.uint8)
        icrcs = (timeless ^ np.uint32(self._icrc.of_time(at))).astype("<u4")
        fds = [self._sockets[flow].fileno() for flow in flows]
        packets[:, -ICRC_BYTES:] = icrcs.view(np.uint8).reshape(-1, ICRC_BYTES)
        return [at] * len(flows), bursts.send(fds, flows, rows, counts)

    def _fill(self, flows: I64, counts: I64, seqs: I64, first: I64) -> wire.U32:
        """Write the headers of all packets, as if sent at time 0; return the ICRC of each."""
        total = int(counts.sum())
        owner = np.repeat(flows, counts)
        index = self._counting[:total] - np.repeat(first, counts)
        seq = np.repeat(seqs, counts) + index
        headers = self._templates[owner]
        headers["psn"] |= (seq & wire.PSN_MASK).astype(np.uint32)
        headers["index"], headers["seq"] = index, seq
        raw = headers.view(np.uint8).reshape(total, -1)
        self._headers[:total] = raw
        icrcs: wire.U32 = self._path_icrc[owner] ^ self._icrc.of_headers(raw)
        return icrcs

    def _account(
        self,
        flows: I64,
        counts: I64,
        seqs: I64,
        taken: npt.NDArray[np.bool_],
        sent_at: Sequence[int],
    ) -> None:
        rows = np.zeros(len(flows), SENT)
        rows["flow"], rows["count"], rows["seq"] = self._ids[flows], counts, seqs
        rows["sent_ns"], rows["sport"] = sent_at, [self._sports[flow] for flow in flows.tolist()]
        rows["given_up"] = self.schedule.given_up(flows)
        self._records.append(rows if taken.all() else rows[taken])
        self.schedule.advance(flows[taken], counts[taken])
        self.schedule.hold_up(flows[~taken])
        for flow, count, at, ok in zip(flows.tolist(), counts.tolist(), sent_at, taken.tolist(), strict=True):
            if ok:
                self.requesters[flow].on_sent(count, at)

    def _refused(self, flow: int, code: int) -> None:
        """Note a refused send: but for EAGAIN its packets count as sent (and will be missing), as on a failed link."""
        name = self.flows[flow].name
        if code in _TOO_LARGE:
            raise MachineError(
                f"{name}: cannot send packets of path MTU {self._path_mtu} ({os.strerror(code)});"
                f" every interface on the way needs an MTU of {ip_bytes(self._path_mtu)} or more"
            )
        if code == errno.EIO:
            raise MachineError(
                f"{name}: the kernel cannot split bursts on an interface without checksum offload; ethtool -K DEV tx on"
            )
        self.errors[flow][errno.errorcode.get(code, str(code))] += 1

    def move(self, flow: int, sport: int) -> int:
        """Send ``flow`` (local index) from another source port from now on; return the time of the change. OSError."""
        old, old_sport = self._sockets[flow], self._sports[flow]
        self._sports[flow] = sport
        try:
            self._sockets[flow] = self._open(flow)
        except OSError:
            self._sports[flow] = old_sport
            raise
        spec = self.flows[flow]
        self._path_icrc[flow] = self._icrc.of_path(spec.src_ip, spec.dst_ip, sport)
        at = now_ns()
        old.close()
        return at

    def expire(self, at_ns: int) -> list[int]:
        """Stop the queue pairs whose retries are used up; return their local indexes."""
        dead = [i for i, requester in enumerate(self.requesters) if requester.on_timer(at_ns)]
        for flow in dead:
            self.schedule.stop(flow)
        return dead

    def reports(self, gaps: Mapping[int, SendGaps]) -> Iterator[SendReport]:
        """Yield the report of each flow; ``gaps`` from the send records."""
        for i, (flow, requester) in enumerate(zip(self.flows, self.requesters, strict=True)):
            gap = gaps.get(flow.id, SendGaps(0, 0, 0))
            yield SendReport(
                flow=flow.id,
                sent=int(self.schedule.next_seq[i]),
                bursts=gap.bursts,
                acknowledged=requester.acknowledged,
                naks=requester.naks,
                timeouts=requester.timeouts,
                slips=int(self.schedule.slips[i]),
                send_gap_max_ns=gap.largest_ns,
                send_gap_p99_ns=gap.p99_ns,
                send_errors=dict(self.errors[i]),
            )

    def close(self) -> None:
        """Close every socket."""
        for sock in self._sockets:
            sock.close()
