"""libibverbs by ctypes: a device by its name, reliable-connected queue pairs on it, completions by events.

It needs no binding, so any Python works. Waiting for completions uses poll(2), never a busy loop, so that virtual time
advances. Constants are those of infiniband/verbs.h.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint8
from ctypes import c_void_p as Pointer
from dataclasses import dataclass
from typing import TypeVar

from hpn.traffic.client.programs.libibverbs_abi import (
    Address,
    Attributes,
    Capacity,
    Channel,
    Completion,
    Context,
    Gid,
    Memory,
    Piece,
    RawQueuePair,
    Receive,
    Route,
    Send,
    Wanted,
)

T = TypeVar("T")

LIBRARY = "libibverbs.so.1"
_PORT, _GIDS = 1, 16
_RC, _INIT, _RTR, _RTS = 2, 1, 2, 3
_WRITE_WITH_IMM, _SIGNALED = 1, 1 << 1
_LOCAL_WRITE, _REMOTE_WRITE = 1, 1 << 1
_STATE, _ACCESS, _PKEY, _AT_PORT, _AV, _MTU, _TIMEOUT, _RETRY, _RNR_RETRY, _RQ_PSN, _MAX_RD, _MIN_RNR, _SQ_PSN = (
    1 << bit for bit in (0, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 15, 16)
)
_MAX_DEST_RD, _DEST_QPN = 1 << 17, 1 << 20
_MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
_RNR_TIMER, _RNR_FOREVER = 12, 7  # 0.64 ms; no end
_HOPS = 64
_RECEIVED = 1 << 7  # of a completion's opcode


@dataclass(frozen=True, slots=True)
class Done:
    """A finished work request: ``received`` for a receive, else a send. ``trouble`` is '' on success."""

    queue_pair: int
    received: bool
    immediate: int
    trouble: str


@dataclass(frozen=True, slots=True)
class Peer:
    """Connection data for the other end of a queue pair: number and first PSN, address, and memory."""

    qpn: int
    psn: int
    gid: str  # 32 hexadecimal digits
    address: int
    key: int


@dataclass(frozen=True, slots=True)
class Way:
    """Send parameters of a queue pair: MTU in bytes; timer as the exponent of 4.096 us; retries."""

    mtu: int
    timeout: int
    retries: int


class Device:
    """An open RDMA device: one protection domain, one completion queue, one memory region that peers may write.

    ``ip`` is its source address, ``depth`` the most pending completions. OSError with the failed step.
    """

    def __init__(self, name: str, ip: str, size: int, depth: int) -> None:
        self._lib = _library()
        self._context = _opened(self._lib, name)
        self._gid_index, self.gid = self._found_gid(ip)
        self._domain = _there(self._lib.ibv_alloc_pd(self._context), "a protection domain")
        memory = ctypes.create_string_buffer(size)
        self._address, self.view = ctypes.addressof(memory), memoryview(memory).cast("B")
        access = _LOCAL_WRITE | _REMOTE_WRITE
        self._region = _there(
            self._lib.ibv_reg_mr(self._domain, memory, c_size_t(size), access), f"memory of {size} bytes"
        )
        self._channel = _there(self._lib.ibv_create_comp_channel(self._context), "a completion channel")
        self._queue = _there(
            self._lib.ibv_create_cq(self._context, depth, None, self._channel, 0), f"a completion queue of {depth}"
        )
        self._depth = depth
        self._completion = Completion()
        self._notify()

    @property
    def address(self) -> int:
        """Start address of its memory."""
        return self._address

    @property
    def key(self) -> int:
        """Remote key of its memory, which a peer needs for writes."""
        return int(self._region.contents.rkey)

    def fileno(self) -> int:
        """Return a descriptor that is readable when there is a completion."""
        return int(self._channel.contents.fd)

    def queue_pair(self) -> QueuePair:
        """Create a queue pair, not connected."""
        wanted = Wanted(send_cq=self._queue, recv_cq=self._queue, qp_type=_RC)
        wanted.cap = Capacity(self._depth, self._depth, 1, 1, 0)
        made = _there(self._lib.ibv_create_qp(self._domain, byref(wanted)), "a queue pair")
        return QueuePair(self._lib, self._context, made, self._gid_index, int(self._region.contents.lkey))

    def completions(self) -> Iterator[Done]:
        """Yield the pending completions, once ``fileno`` is readable."""
        queue, context = Pointer(), Pointer()
        _zero(self._lib.ibv_get_cq_event(self._channel, byref(queue), byref(context)), "the completion event")
        self._lib.ibv_ack_cq_events(queue, 1)
        self._notify()
        poll, found = self._context.contents.poll_cq, self._completion
        while poll(self._queue, 1, byref(found)) > 0:
            trouble = "" if not found.status else self._lib.ibv_wc_status_str(found.status).decode()
            immediate = int.from_bytes(int(found.imm_data).to_bytes(4, "little"), "big")
            yield Done(found.qp_num, bool(found.opcode & _RECEIVED), immediate, trouble)

    def _notify(self) -> None:
        _zero(self._context.contents.req_notify_cq(self._queue, 0), "notifying of completions")

    def _found_gid(self, ip: str) -> tuple[int, str]:
        """Return index and value of the GID that is the IPv4 address, RoCEv2's source (annex A17)."""
        wanted = bytes(10) + b"\xff\xff" + bytes(int(part) for part in ip.split("."))
        found = Gid()
        for index in range(_GIDS):
            if self._lib.ibv_query_gid(self._context, _PORT, index, byref(found)) == 0 and bytes(found) == wanted:
                return index, wanted.hex()
        raise OSError(f"the device has no GID for {ip}")


class QueuePair:
    """A reliable connection of a device."""

    def __init__(
        self,
        lib: ctypes.CDLL,
        context: ctypes._Pointer[Context],
        made: ctypes._Pointer[RawQueuePair],
        gid: int,
        key: int,
    ) -> None:
        self._lib, self._context, self._made, self._gid_index, self._key = lib, context, made, gid, key
        self.number = int(made.contents.qp_num)

    def connect(self, peer: Peer, psn: int, path: Way) -> None:
        """Get ready to receive from a peer and to send to it, ``psn`` first. OSError when the kernel refuses."""
        self._modify(
            Attributes(qp_state=_INIT, port_num=_PORT, qp_access_flags=_REMOTE_WRITE),
            _STATE | _PKEY | _AT_PORT | _ACCESS,
            "initialised",
        )
        to = Address(is_global=1, port_num=_PORT)
        to.grh = Route(Gid.from_buffer_copy(bytes.fromhex(peer.gid)), 0, self._gid_index, _HOPS, 0)
        ready = Attributes(qp_state=_RTR, path_mtu=_MTUS[path.mtu], rq_psn=peer.psn, dest_qp_num=peer.qpn)
        ready.ah_attr, ready.max_dest_rd_atomic, ready.min_rnr_timer = to, 1, _RNR_TIMER
        self._modify(
            ready, _STATE | _AV | _MTU | _DEST_QPN | _RQ_PSN | _MAX_DEST_RD | _MIN_RNR, "connected to its peer"
        )
        sends = Attributes(qp_state=_RTS, sq_psn=psn, timeout=path.timeout, retry_cnt=path.retries)
        sends.rnr_retry, sends.max_rd_atomic = _RNR_FOREVER, 1
        self._modify(sends, _STATE | _TIMEOUT | _RETRY | _RNR_RETRY | _SQ_PSN | _MAX_RD, "made to send")

    def expect(self) -> None:
        """Post a receive for the immediate value of one more write."""
        wanted, refused = Receive(), Pointer()
        _zero(self._context.contents.post_recv(self._made, byref(wanted), byref(refused)), "expecting a write")

    def write(self, source: int, size: int, target: int, key: int, immediate: int) -> None:
        """Write ``size`` bytes of local memory to the peer's, and signal the end with ``immediate``."""
        piece, refused = Piece(source, size, self._key), Pointer()
        wanted = Send(sg_list=ctypes.pointer(piece), num_sge=1, opcode=_WRITE_WITH_IMM, send_flags=_SIGNALED)
        wanted.imm_data = int.from_bytes(immediate.to_bytes(4, "big"), "little")
        wanted.remote_addr, wanted.rkey = target, key
        _zero(self._context.contents.post_send(self._made, byref(wanted), byref(refused)), "posting a write")

    def _modify(self, attributes: Attributes, mask: int, what: str) -> None:
        refused = self._lib.ibv_modify_qp(self._made, byref(attributes), mask)
        if refused:
            raise OSError(refused, f"queue pair {self.number} cannot be {what}: {os.strerror(refused)}")


def _library() -> ctypes.CDLL:
    lib = ctypes.CDLL(LIBRARY, use_errno=True)
    lib.ibv_get_device_list.restype = POINTER(Pointer)
    lib.ibv_free_device_list.argtypes = (POINTER(Pointer),)
    lib.ibv_get_device_name.restype, lib.ibv_get_device_name.argtypes = c_char_p, (Pointer,)
    lib.ibv_open_device.restype, lib.ibv_open_device.argtypes = POINTER(Context), (Pointer,)
    lib.ibv_query_gid.argtypes = (Pointer, c_uint8, c_int, Pointer)
    lib.ibv_alloc_pd.restype, lib.ibv_alloc_pd.argtypes = Pointer, (Pointer,)
    lib.ibv_reg_mr.restype, lib.ibv_reg_mr.argtypes = POINTER(Memory), (Pointer, Pointer, c_size_t, c_int)
    lib.ibv_create_comp_channel.restype, lib.ibv_create_comp_channel.argtypes = POINTER(Channel), (Pointer,)
    lib.ibv_create_cq.restype = Pointer
    lib.ibv_create_cq.argtypes = (Pointer, c_int, Pointer, POINTER(Channel), c_int)
    lib.ibv_create_qp.restype, lib.ibv_create_qp.argtypes = POINTER(RawQueuePair), (Pointer, Pointer)
    lib.ibv_modify_qp.argtypes = (Pointer, Pointer, c_int)
    lib.ibv_get_cq_event.argtypes = (POINTER(Channel), Pointer, Pointer)
    lib.ibv_ack_cq_events.restype, lib.ibv_ack_cq_events.argtypes = None, (Pointer, c_uint)
    lib.ibv_wc_status_str.restype, lib.ibv_wc_status_str.argtypes = c_char_p, (c_int,)
    return lib


def _opened(lib: ctypes.CDLL, name: str) -> ctypes._Pointer[Context]:
    count = c_int()
    devices = lib.ibv_get_device_list(byref(count))
    try:
        for device in (devices[at] for at in range(count.value)):
            if lib.ibv_get_device_name(device) == name.encode():
                return _there(lib.ibv_open_device(device), f"RDMA device {name}")
    finally:
        if devices:
            lib.ibv_free_device_list(devices)
    raise OSError(f"libibverbs finds no RDMA device {name} among {count.value}")


def _there(found: T, what: str) -> T:
    if not found:
        errno = ctypes.get_errno()
        raise OSError(errno, f"cannot have {what}: {os.strerror(errno)}")
    return found


def _zero(result: int, what: str) -> None:
    if result:
        raise OSError(abs(result), f"{what} failed: {os.strerror(abs(result))}")
