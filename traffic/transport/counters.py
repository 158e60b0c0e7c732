"""Counters of both ends of a queue pair. PURE.

Counters that an adapter has too are named as in ``rdma statistic show`` and
/sys/class/infiniband/*/ports/1/hw_counters. Meanings: NVIDIA, "Understanding mlx5 Linux Counters and Status
Parameters"; Linux drivers/infiniband/hw/mlx5/counters.c. Counters of reads, atomics and receives without a buffer
(implied_nak_seq_err, rnr_nak_retry_err) have no counterpart: all requests here are WRITEs into existing memory.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequesterCounters:
    """Counters of the sending end, since it was created.

    ``packets``: sent in all; ``packets_again``: retransmissions among them. ``local_ack_timeout_err``: the timer
    expired and retries were left. ``packet_seq_err``: NAKs of a sequence error received. ``req_cqe_error``: completions
    in error, of which ``req_cqe_flush_error`` were flushed.
    """

    packets: int
    packets_again: int
    local_ack_timeout_err: int
    packet_seq_err: int
    req_transport_retries_exceeded: int
    req_remote_invalid_request: int
    req_cqe_error: int
    req_cqe_flush_error: int


@dataclass(frozen=True, slots=True)
class ResponderCounters:
    """Counters of the receiving end, since it was created.

    ``packets``: received in all. ``out_of_sequence``: packets that arrived before a missing one. ``duplicate_request``:
    packets received before. ``naks``: NAKs sent.
    """

    packets: int
    out_of_sequence: int
    duplicate_request: int
    naks: int
