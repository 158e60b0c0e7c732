"""ctypes structures of libibverbs: infiniband/verbs.h, ABI 1.1, which has been the same since 2006.

Changes when more of it is used. ``ibv_post_send`` and similar calls are no functions of the library: they go through a
table of calls in the open device.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int, c_size_t, c_uint, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p as Pointer


class Gid(Structure):
    """ibv_gid."""

    _fields_ = (("raw", c_uint64 * 2),)


class Route(Structure):
    """ibv_global_route."""

    _fields_ = (
        ("dgid", Gid),
        ("flow_label", c_uint32),
        ("sgid_index", c_uint8),
        ("hop_limit", c_uint8),
        ("traffic_class", c_uint8),
    )


class Address(Structure):
    """ibv_ah_attr."""

    _fields_ = (
        ("grh", Route),
        ("dlid", c_uint16),
        ("sl", c_uint8),
        ("src_path_bits", c_uint8),
        ("static_rate", c_uint8),
        ("is_global", c_uint8),
        ("port_num", c_uint8),
    )


class Capacity(Structure):
    """ibv_qp_cap."""

    _fields_ = tuple(
        (name, c_uint32) for name in ("max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data")
    )


class Attributes(Structure):
    """ibv_qp_attr."""

    _fields_ = (
        *((name, c_int) for name in ("qp_state", "cur_qp_state", "path_mtu", "path_mig_state")),
        *((name, c_uint32) for name in ("qkey", "rq_psn", "sq_psn", "dest_qp_num", "qp_access_flags")),
        ("cap", Capacity),
        ("ah_attr", Address),
        ("alt_ah_attr", Address),
        ("pkey_index", c_uint16),
        ("alt_pkey_index", c_uint16),
        *(
            (name, c_uint8)
            for name in (
                *("en_sqd_async_notify", "sq_draining", "max_rd_atomic", "max_dest_rd_atomic", "min_rnr_timer"),
                *("port_num", "timeout", "retry_cnt", "rnr_retry", "alt_port_num", "alt_timeout"),
            )
        ),
        ("rate_limit", c_uint32),
    )


class Wanted(Structure):
    """ibv_qp_init_attr."""

    _fields_ = (
        *((name, Pointer) for name in ("qp_context", "send_cq", "recv_cq", "srq")),
        ("cap", Capacity),
        ("qp_type", c_int),
        ("sq_sig_all", c_int),
    )


class Piece(Structure):
    """ibv_sge."""

    _fields_ = (("addr", c_uint64), ("length", c_uint32), ("lkey", c_uint32))


class Send(Structure):
    """ibv_send_wr, with the RDMA part of its union."""

    _fields_ = (
        ("wr_id", c_uint64),
        ("next", Pointer),
        ("sg_list", POINTER(Piece)),
        ("num_sge", c_int),
        ("opcode", c_int),
        ("send_flags", c_uint),
        ("imm_data", c_uint32),
        ("remote_addr", c_uint64),
        ("rkey", c_uint32),
        ("rest", c_uint8 * 72),
    )


class Receive(Structure):
    """ibv_recv_wr."""

    _fields_ = (("wr_id", c_uint64), ("next", Pointer), ("sg_list", Pointer), ("num_sge", c_int))


class Completion(Structure):
    """ibv_wc."""

    _fields_ = (
        ("wr_id", c_uint64),
        ("status", c_int),
        ("opcode", c_int),
        *((name, c_uint32) for name in ("vendor_err", "byte_len", "imm_data", "qp_num", "src_qp", "wc_flags")),
        ("pkey_index", c_uint16),
        ("slid", c_uint16),
        ("sl", c_uint8),
        ("dlid_path_bits", c_uint8),
    )


_POLL = ctypes.CFUNCTYPE(c_int, Pointer, c_int, POINTER(Completion))
_NOTIFY = ctypes.CFUNCTYPE(c_int, Pointer, c_int)
_POST_SEND = ctypes.CFUNCTYPE(c_int, Pointer, POINTER(Send), POINTER(Pointer))
_POST_RECEIVE = ctypes.CFUNCTYPE(c_int, Pointer, POINTER(Receive), POINTER(Pointer))


class Context(Structure):
    """ibv_context, up to the used part of its table of calls."""

    _fields_ = (
        ("device", Pointer),
        ("unused_1", Pointer * 11),
        ("poll_cq", _POLL),
        ("req_notify_cq", _NOTIFY),
        ("unused_2", Pointer * 12),
        ("post_send", _POST_SEND),
        ("post_recv", _POST_RECEIVE),
        ("unused_3", Pointer * 5),
        ("cmd_fd", c_int),
        ("async_fd", c_int),
    )


class Channel(Structure):
    """ibv_comp_channel."""

    _fields_ = (("context", Pointer), ("fd", c_int))


class RawQueuePair(Structure):
    """ibv_qp, up to its number."""

    _fields_ = (("unused", Pointer * 6), ("handle", c_uint32), ("qp_num", c_uint32))


class Memory(Structure):
    """ibv_mr."""

    _fields_ = (
        ("unused", Pointer * 2),
        ("addr", Pointer),
        ("length", c_size_t),
        ("handle", c_uint32),
        ("lkey", c_uint32),
        ("rkey", c_uint32),
    )
