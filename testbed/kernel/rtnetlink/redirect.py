"""Redirection of every frame that one interface receives: another of its namespace receives it instead.

Sockets for all ethertypes (tcpdump) come before it and see the frame on both interfaces. Filters come before nftables'
ingress hook.
"""

from __future__ import annotations

from hpn.testbed.kernel.rtnetlink.mirred import INGRESS, INGRESS_REDIR, give, queue

_ETH_P_ALL = 0x0003


def received_by(ifindex: int, instead: int) -> tuple[bytes, ...]:
    """Return requests that have ``instead`` receive what ``ifindex`` receives; they end with that interface."""
    return queue(ifindex), give(ifindex, INGRESS, _ETH_P_ALL, [instead], INGRESS_REDIR)
