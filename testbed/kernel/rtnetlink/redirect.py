"""Redirection of every frame that one interface receives: another of its namespace receives it instead.

A clsact queue with one u32 filter and the action mirred (pkt_cls.h, tc_mirred.h). Sockets for all ethertypes (tcpdump)
come before it and see the frame on both interfaces. Filters come before nftables' ingress hook.
"""

from __future__ import annotations

import struct

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.rtnl import RTM_NEWQDISC

_RTM_NEWTFILTER = 44
_NLM_F_EXCL, _NLM_F_CREATE = 0x200, 0x400
_TCMSG = struct.Struct("=BxxxiIII")
_CLSACT_HANDLE, _CLSACT, _INGRESS = 0xFFFF0000, 0xFFFFFFF1, 0xFFFFFFF2
_PRIORITY = 1
_ETH_P_ALL = 0x0003
_KIND, _OPTIONS = 1, 2  # TCA_*, and TCA_ACT_* alike
_U32_SEL, _U32_ACT = 5, 7
_U32_TERMINAL = 1
_MIRRED_PARMS = 2
_STOLEN, _INGRESS_REDIR = 4, 3


def received_by(ifindex: int, instead: int) -> tuple[bytes, ...]:
    """Return requests that have ``instead`` receive what ``ifindex`` receives; they end with that interface."""
    queue = _TCMSG.pack(0, ifindex, _CLSACT_HANDLE, _CLSACT, 0) + rtnl.attribute(_KIND, b"clsact\0")
    everything = struct.pack("=BBBxHHhhI", _U32_TERMINAL, 0, 1, 0, 0, 0, 0, 0) + bytes(16)  # one key of zeros
    parameters = struct.pack("=IIiiiiI", 0, 0, _STOLEN, 0, 0, _INGRESS_REDIR, instead)
    action = rtnl.attribute(_KIND, b"mirred\0") + rtnl.attribute(_OPTIONS, rtnl.attribute(_MIRRED_PARMS, parameters))
    options = rtnl.attribute(_U32_SEL, everything) + rtnl.attribute(_U32_ACT, rtnl.attribute(1, action))
    in_network_order = int.from_bytes(_ETH_P_ALL.to_bytes(2, "big"), "little")
    rule = _TCMSG.pack(0, ifindex, 0, _INGRESS, _PRIORITY << 16 | in_network_order)
    rule += rtnl.attribute(_KIND, b"u32\0") + rtnl.attribute(_OPTIONS, options)
    flags = _NLM_F_EXCL | _NLM_F_CREATE
    return rtnl.message(RTM_NEWQDISC, flags, queue), rtnl.message(_RTM_NEWTFILTER, flags, rule)
