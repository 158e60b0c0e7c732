"""ARP to every port of a bond by traffic control, where nftables has no netdev family (the distribution's UML).

A clsact queue on the bond has an egress filter that copies each ARP to the ports (``kernel.rtnetlink.mirred``).
The filter is replaced by delete and add in one batch: an ARP in between leaves by the driver's choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import mirred
from hpn.testbed.kernel.rtnetlink.netlink import Netlink

_ETH_P_ARP = 0x0806


class TcMirror:
    """ARP mirror of the bond ``lag``; ``members`` are its ports' ifindexes by name. OSError when the kernel refuses."""

    def __init__(self, space: NetNs, lag: int, members: Mapping[str, int]) -> None:
        self._lag = lag
        self._members = members
        self._netlink = Netlink(space)
        self._netlink.run([mirred.queue(lag)])

    def set_active(self, ports: Sequence[str]) -> None:
        """Copy to these ports from now on; if there are none, leave ARP to the driver."""
        add = [copy_to(self._lag, [self._members[port] for port in ports])] if ports else []
        self._netlink.run([clear(self._lag), *add])

    def close(self) -> None:
        """Remove the mirror."""
        self._netlink.run([clear(self._lag)])
        self._netlink.close()


def clear(ifindex: int) -> bytes:
    """Return a request to remove the filter, if there is one."""
    return mirred.clear(ifindex, mirred.EGRESS)


def copy_to(ifindex: int, ports: Sequence[int]) -> bytes:
    """Return a request to send every ARP that leaves ``ifindex`` out of each of ``ports`` (at least one) instead."""
    return mirred.give(ifindex, mirred.EGRESS, _ETH_P_ARP, ports, mirred.EGRESS_REDIR)
