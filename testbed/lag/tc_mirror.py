"""ARP to every port of a bond by traffic control, where nftables has no netdev family (the distribution's UML).

A clsact queue on the bond has an egress filter that copies each ARP to the ports (pkt_cls.h, tc_mirred.h).
The filter is replaced by delete and add in one batch: an ARP in between leaves by the driver's choice.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.rtnl import RTM_NEWQDISC

_RTM_NEWTFILTER, _RTM_DELTFILTER = 44, 45
_NLM_F_EXCL, _NLM_F_CREATE = 0x200, 0x400
_TCMSG = struct.Struct("=BxxxiIII")
_CLSACT_HANDLE, _CLSACT, _EGRESS = 0xFFFF0000, 0xFFFFFFF1, 0xFFFFFFF3
_PRIORITY = 1
_ETH_P_ARP = 0x0806
_KIND, _OPTIONS = 1, 2  # TCA_*, and TCA_ACT_* alike
_U32_SEL, _U32_ACT = 5, 7
_U32_TERMINAL = 1
_MIRRED_PARMS = 2
_PIPE, _STOLEN = 3, 4
_EGRESS_REDIR, _EGRESS_MIRROR = 1, 2


class TcMirror:
    """ARP mirror of the bond ``lag``; ``members`` are its ports' ifindexes by name. OSError when the kernel refuses."""

    def __init__(self, space: NetNs, lag: int, members: Mapping[str, int]) -> None:
        self._lag = lag
        self._members = members
        self._netlink = Netlink(space)
        self._netlink.run([queue(lag)])

    def set_active(self, ports: Sequence[str]) -> None:
        """Copy to these ports from now on; if there are none, leave ARP to the driver."""
        add = [copy_to(self._lag, [self._members[port] for port in ports])] if ports else []
        self._netlink.run([clear(self._lag), *add])

    def close(self) -> None:
        """Remove the mirror."""
        self._netlink.run([clear(self._lag)])
        self._netlink.close()


def queue(ifindex: int) -> bytes:
    """Return a request to add the clsact queue, which holds the filter."""
    body = _TCMSG.pack(0, ifindex, _CLSACT_HANDLE, _CLSACT, 0) + rtnl.attribute(_KIND, b"clsact\0")
    return rtnl.message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_EXCL, body)


def clear(ifindex: int) -> bytes:
    """Return a request to remove the filter, if there is one."""
    return rtnl.message(_RTM_DELTFILTER, 0, _TCMSG.pack(0, ifindex, 0, _EGRESS, 0))


def copy_to(ifindex: int, ports: Sequence[int]) -> bytes:
    """Return a request to send every ARP that leaves ``ifindex`` out of each of ``ports`` (at least one) instead."""
    actions = b"".join(
        rtnl.attribute(number, _mirred(port, last=number == len(ports))) for number, port in enumerate(ports, 1)
    )
    everything = struct.pack("=BBBxHHhhI", _U32_TERMINAL, 0, 1, 0, 0, 0, 0, 0) + bytes(16)  # one key of zeros
    options = rtnl.attribute(_U32_SEL, everything) + rtnl.attribute(_U32_ACT, actions)
    in_network_order = int.from_bytes(_ETH_P_ARP.to_bytes(2, "big"), "little")
    body = _TCMSG.pack(0, ifindex, 0, _EGRESS, _PRIORITY << 16 | in_network_order)
    body += rtnl.attribute(_KIND, b"u32\0") + rtnl.attribute(_OPTIONS, options)
    return rtnl.message(_RTM_NEWTFILTER, _NLM_F_CREATE | _NLM_F_EXCL, body)


def _mirred(port: int, *, last: bool) -> bytes:
    """Return an action that redirects the frame to the last port, or copies it to an earlier one."""
    verdict, how = (_STOLEN, _EGRESS_REDIR) if last else (_PIPE, _EGRESS_MIRROR)
    parameters = struct.pack("=IIiiiiI", 0, 0, verdict, 0, 0, how, port)
    return rtnl.attribute(_KIND, b"mirred\0") + rtnl.attribute(_OPTIONS, rtnl.attribute(_MIRRED_PARMS, parameters))
