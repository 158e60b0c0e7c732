"""Counters of a worker's NICs, named as in ``rdma statistic show``. PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hpn.traffic.jobengine.receiver import ReceivingEnd
from hpn.traffic.jobengine.sending_end import SendingEnd
from hpn.traffic.jobengine.setup import NicCounters


def nic_counters(senders: Iterable[SendingEnd], receivers: Iterable[ReceivingEnd]) -> tuple[NicCounters, ...]:
    """Return the counters of each NIC, by name of NIC: sums over its local queue pair ends.

    Names as in mlx5 and the rxe driver (Linux, drivers/infiniband/hw/mlx5/counters.c). ``np_`` counters belong to
    DCQCN's notification point, ``rp_`` to its reaction point. Those of paths are ours.
    """
    found: dict[str, Counter[str]] = {}
    for sender in senders:
        of = found.setdefault(sender.pair.flow.src_nic, Counter())
        counted = sender.requester.counters
        of["local_ack_timeout_err"] += counted.local_ack_timeout_err
        of["packet_seq_err"] += counted.packet_seq_err
        of["req_transport_retries_exceeded"] += counted.req_transport_retries_exceeded
        of["req_remote_invalid_request"] += counted.req_remote_invalid_request
        of["req_cqe_error"] += counted.req_cqe_error
        of["req_cqe_flush_error"] += counted.req_cqe_flush_error
        of["rp_cnp_handled"] += sender.cnps
        of.update(sender.path_counters())
    for receiver in receivers:
        of = found.setdefault(receiver.pair.flow.dst_nic, Counter())
        heard = receiver.responder.counters
        of["out_of_sequence"] += heard.out_of_sequence
        of["duplicate_request"] += heard.duplicate_request
        of["rx_write_requests"] += receiver.inbox.messages
        of["np_ecn_marked_roce_packets"] += receiver.marked
        of["np_cnp_sent"] += receiver.notices
    return tuple(NicCounters(nic, dict(sorted(counted.items()))) for nic, counted in sorted(found.items()))
