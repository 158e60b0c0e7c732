"""Requests of traffic control that give every frame of an interface, or of one ethertype, to other interfaces.

A clsact queue with one u32 filter and actions mirred (pkt_cls.h, tc_mirred.h).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.rtnl import RTM_NEWQDISC

_RTM_NEWTFILTER, _RTM_DELTFILTER = 44, 45
_NLM_F_EXCL, _NLM_F_CREATE = 0x200, 0x400
_TCMSG = struct.Struct("=BxxxiIII")
_CLSACT_HANDLE, _CLSACT = 0xFFFF0000, 0xFFFFFFF1
INGRESS, EGRESS = 0xFFFFFFF2, 0xFFFFFFF3
"""Where a filter of the queue looks."""
_PRIORITY = 1
_KIND, _OPTIONS = 1, 2  # TCA_*, and TCA_ACT_* alike
_U32_SEL, _U32_ACT = 5, 7
_U32_TERMINAL = 1
_MIRRED_PARMS = 2
_PIPE, _STOLEN = 3, 4
EGRESS_REDIR, _EGRESS_MIRROR, INGRESS_REDIR = 1, 2, 3
"""How the last interface gets the frame: it sends it, or it receives it."""


def queue(ifindex: int) -> bytes:
    """Return a request to add the clsact queue, which holds the filter."""
    body = _TCMSG.pack(0, ifindex, _CLSACT_HANDLE, _CLSACT, 0) + rtnl.attribute(_KIND, b"clsact\0")
    return rtnl.message(RTM_NEWQDISC, _NLM_F_CREATE | _NLM_F_EXCL, body)


def clear(ifindex: int, hook: int) -> bytes:
    """Return a request to remove the filter, if there is one."""
    return rtnl.message(_RTM_DELTFILTER, 0, _TCMSG.pack(0, ifindex, 0, hook, 0))


def give(ifindex: int, hook: int, ethertype: int, to: Sequence[int], how: int) -> bytes:
    """Return a request to copy the frames at a hook to each of ``to`` but the last, which gets them as ``how``."""
    actions = b"".join(
        rtnl.attribute(number, _mirred(port, how if number == len(to) else _EGRESS_MIRROR))
        for number, port in enumerate(to, 1)
    )
    everything = struct.pack("=BBBxHHhhI", _U32_TERMINAL, 0, 1, 0, 0, 0, 0, 0) + bytes(16)  # one key of zeros
    options = rtnl.attribute(_U32_SEL, everything) + rtnl.attribute(_U32_ACT, actions)
    in_network_order = int.from_bytes(ethertype.to_bytes(2, "big"), "little")
    body = _TCMSG.pack(0, ifindex, 0, hook, _PRIORITY << 16 | in_network_order)
    body += rtnl.attribute(_KIND, b"u32\0") + rtnl.attribute(_OPTIONS, options)
    return rtnl.message(_RTM_NEWTFILTER, _NLM_F_CREATE | _NLM_F_EXCL, body)


def _mirred(port: int, how: int) -> bytes:
    """Return an action that copies the frame and goes on, or gives it away."""
    verdict = _PIPE if how == _EGRESS_MIRROR else _STOLEN
    parameters = struct.pack("=IIiiiiI", 0, 0, verdict, 0, 0, how, port)
    return rtnl.attribute(_KIND, b"mirred\0") + rtnl.attribute(_OPTIONS, rtnl.attribute(_MIRRED_PARMS, parameters))
