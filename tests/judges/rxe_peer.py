"""A real queue pair of the kernel's Soft-RoCE, told what to do line by line: /usr/bin/python3 rxe_peer.py DEVICE IP.

Imports nothing of ours: it runs under the Python that Debian's python3-pyverbs is built for. A line of JSON on standard
input, ``[verb, arguments]``, has one on standard output as its answer. Completions are looked for every millisecond: a
busy loop never ends in virtual time, and pyverbs waits at a completion channel for ever, as it hides the descriptor.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from socket import htonl, ntohl

from pyverbs import enums
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

_ACCESS = enums.IBV_ACCESS_LOCAL_WRITE | enums.IBV_ACCESS_REMOTE_WRITE
_MTUS = {1024: enums.IBV_MTU_1024, 2048: enums.IBV_MTU_2048, 4096: enums.IBV_MTU_4096}
_MEMORY_BYTES = 8 << 20
_PORT = 1
_AT_ONCE = 512  # work requests that a queue holds
_RECEIVES = 1 << 20  # ids of receives begin here

Answer = object


class Peer:
    """One device, one memory region, one queue pair at a time."""

    def __init__(self, device: str, ip: str) -> None:
        self._context = Context(name=device)
        self._pd = PD(self._context)
        self._cq = CQ(self._context, 2 * _AT_ONCE)
        self._memory = MR(self._pd, _MEMORY_BYTES, _ACCESS)
        self._gid = self._index_of(ip)
        self._qp: QP | None = None

    def _index_of(self, ip: str) -> int:
        """Which entry of the GID table is this address, as RoCEv2 over IPv4 has it."""
        for index in range(16):
            if self._context.query_gid(_PORT, index).gid == _gid(ip):
                return index
        raise SystemExit(f"no GID of {ip}")

    def memory(self) -> Answer:
        """Address and remote key of the memory."""
        return [self._memory.buf, self._memory.rkey]

    def create(self) -> Answer:
        """Another queue pair; its number. Nothing is left of the one before."""
        if self._qp is not None:
            self._qp.close()
            self._cq.poll(2 * _AT_ONCE)
        capacity = QPCap(max_send_wr=_AT_ONCE, max_recv_wr=_AT_ONCE)
        self._qp = QP(self._pd, QPInitAttr(enums.IBV_QPT_RC, scq=self._cq, rcq=self._cq, cap=capacity, sq_sig_all=1))
        attributes = QPAttr(port_num=_PORT)
        attributes.qp_access_flags = _ACCESS
        self._qp.to_init(attributes)
        return self._qp.qp_num

    def connect(self, ip: str, qpn: int, rq_psn: int, sq_psn: int, path_mtu: int, timeout: int, retries: int) -> Answer:
        """Get ready to receive from, and to send to, the queue pair ``qpn`` of an address."""
        attributes = QPAttr(port_num=_PORT)
        attributes.qp_access_flags = _ACCESS
        attributes.path_mtu = _MTUS[path_mtu]
        attributes.dest_qp_num, attributes.rq_psn, attributes.sq_psn = qpn, rq_psn, sq_psn
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = timeout, retries, 7
        attributes.min_rnr_timer = 12
        route = GlobalRoute(dgid=GID(_gid(ip)), sgid_index=self._gid, hop_limit=64)
        attributes.ah_attr = AHAttr(port_num=_PORT, is_global=1, gr=route)
        self._queue_pair.to_rts(attributes)
        return None

    def receive(self, count: int) -> Answer:
        """Be ready for that many messages with an immediate."""
        nowhere = SGE(self._memory.buf, 0, self._memory.lkey)  # a WRITE brings its own address
        for number in range(count):
            self._queue_pair.post_recv(RecvWR(wr_id=_RECEIVES + number, num_sge=1, sg=[nowhere]))
        return None

    def write(self, number: int, offset: int, size: int, address: int, rkey: int, immediate: int) -> Answer:
        """Post a WRITE with immediate of ``size`` bytes at ``offset`` of the memory."""
        piece = SGE(self._memory.buf + offset, size, self._memory.lkey)
        request = SendWR(wr_id=number, opcode=enums.IBV_WR_RDMA_WRITE_WITH_IMM, num_sge=1, sg=[piece])
        request.imm_data = htonl(immediate)
        request.set_wr_rdma(rkey, address)
        self._queue_pair.post_send(request)
        return None

    def completions(self, at_least: int, within_ms: int) -> Answer:
        """What has come to an end: id, status, opcode, bytes, immediate; waits until there are so many or it is time.

        Bytes and immediate are those of a received message.
        """
        found: list[list[int]] = []
        deadline = time.monotonic_ns() + within_ms * 1_000_000
        while True:
            count, ended = self._cq.poll(_AT_ONCE)
            found += [[one.wr_id, one.status, one.opcode, one.byte_len, ntohl(one.imm_data)] for one in ended[:count]]
            if len(found) >= at_least or time.monotonic_ns() >= deadline:
                return found
            time.sleep(0.001)

    def dump(self, offset: int, size: int) -> Answer:
        """Bytes of the memory, in hexadecimal digits."""
        return ctypes.string_at(self._memory.buf + offset, size).hex()

    def fill(self, offset: int, content: str) -> Answer:
        """Put bytes, in hexadecimal digits, into the memory."""
        raw = bytes.fromhex(content)
        ctypes.memmove(self._memory.buf + offset, raw, len(raw))
        return None

    @property
    def _queue_pair(self) -> QP:
        if self._qp is None:
            raise SystemExit("no queue pair was created")
        return self._qp


def _gid(ip: str) -> str:
    """The address as RoCEv2 over IPv4 has it in its GID table."""
    raw = bytes(10) + b"\xff\xff" + bytes(int(part) for part in ip.split("."))
    return raw.hex(":", 2)


def main(device: str, ip: str) -> None:
    """Answer until standard input ends."""
    peer = Peer(device, ip)
    verbs: dict[str, Callable[..., Answer]] = {
        verb.__name__: verb
        for verb in (
            *(peer.memory, peer.create, peer.connect, peer.receive),
            *(peer.write, peer.completions, peer.dump, peer.fill),
        )
    }
    for line in sys.stdin:
        verb, arguments = json.loads(line)
        print(json.dumps(verbs[verb](*arguments)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
