"""Envelopes of a queue pair's packets: an entropy value becomes the addresses and ports that choose a path. PURE."""

from __future__ import annotations

from hpn.traffic.flows.flow import requester_qpn, responder_qpn
from hpn.traffic.jobengine.setup import QueuePair
from hpn.traffic.transport.packets import DSCP_SHIFT, ECT_0, Envelope


def data_envelope(pair: QueuePair, sport: int, life: int, via: str = "") -> Envelope:
    """Return the envelope of a queue pair's data from a source port, by the route to ``via`` if there is one."""
    f = pair.flow
    return Envelope(f.src_ip, f.dst_ip, sport, responder_qpn(f.id, life), _tos(pair), via=via)


def reply_envelope(pair: QueuePair, sport: int, life: int, via: str = "") -> Envelope:
    """Return the same for a queue pair's acknowledgements."""
    f = pair.flow
    return Envelope(f.dst_ip, f.src_ip, sport, requester_qpn(f.id, life), _tos(pair), via=via)


def _tos(pair: QueuePair) -> int:
    """Return the TOS byte of all packets of a queue pair; switches may mark them."""
    return pair.dscp << DSCP_SHIFT | ECT_0
