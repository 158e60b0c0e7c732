"""What both ends of a queue pair count. PURE.

Names as ``rdma statistic show`` and /sys/class/infiniband/*/ports/1/hw_counters have them, for what an adapter counts
too (meanings: NVIDIA, "Understanding mlx5 Linux Counters and Status Parameters"; Linux
drivers/infiniband/hw/mlx5/counters.c). Counters of reads, atomics and receives without a buffer (implied_nak_seq_err,
rnr_nak_retry_err) have no counterpart: all here are WRITEs into memory that is there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequesterCounters:
    """Of the sending end, since it was made.

    ``packets`` sent in all, ``packets_again`` of them not for the first time. ``local_ack_timeout_err``: the timer
    expired and retries were left. ``packet_seq_err``: NAKs of a sequence error received. ``req_cqe_error``: completions
    in error, of these ``req_cqe_flush_error`` flushed.
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
    """Of the receiving end, since it was made.

    ``packets`` received in all; ``out_of_sequence`` of them came before one that was missing, ``duplicate_request`` had
    been there already. ``naks`` sent.
    """

    packets: int
    out_of_sequence: int
    duplicate_request: int
    naks: int
