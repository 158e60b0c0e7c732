"""Envelopes of a queue pair's packets: an entropy value becomes the addresses and ports that choose a path. PURE.

A value is a UDP source port, which ECMP hashes. A carrier address (SRv6) would take its place here alone.
"""

from __future__ import annotations

from hpn.traffic.flows.flow import requester_qpn, responder_qpn
from hpn.traffic.jobengine.setup import QueuePair
from hpn.traffic.transport.packets import DSCP_SHIFT, ECT_0, Envelope


def data_envelope(pair: QueuePair, value: int, life: int) -> Envelope:
    """Return the envelope of a queue pair's data on the path of that value."""
    f = pair.flow
    return Envelope(f.src_ip, f.dst_ip, value, responder_qpn(f.id, life), _tos(pair))


def reply_envelope(pair: QueuePair, value: int, life: int) -> Envelope:
    """Return the envelope of a queue pair's acknowledgements on the path of that value."""
    f = pair.flow
    return Envelope(f.dst_ip, f.src_ip, value, requester_qpn(f.id, life), _tos(pair))


def _tos(pair: QueuePair) -> int:
    """Return the TOS byte of all packets of a queue pair; switches may mark them."""
    return pair.dscp << DSCP_SHIFT | ECT_0
