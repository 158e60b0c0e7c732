"""Values of nftables' named counters, read by one nfnetlink dump; the library would list them as text.

Layouts: linux/netfilter/nfnetlink.h (nfgenmsg), linux/netfilter/nf_tables.h (NFTA_OBJ_*, NFTA_COUNTER_*).
"""

from __future__ import annotations

import os
import socket
import struct

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import nlmsg, rtnl

_NETFILTER = 12  # NETLINK_NETFILTER
_NEW, _GET = 10 << 8 | 18, 10 << 8 | 19  # of nf_tables: NFT_MSG_NEWOBJ, NFT_MSG_GETOBJ
_NETDEV, _COUNTER = 5, 1  # NFPROTO_NETDEV, NFT_OBJECT_COUNTER
_FAMILY = struct.Struct("=BBH")  # nfgenmsg
_TABLE, _NAME, _TYPE, _DATA = 1, 2, 3, 4  # NFTA_OBJ_*
_PACKETS = 2  # NFTA_COUNTER_*
_RECEIVE = 1 << 18


class NftCounters:
    """The named counters of a netdev table in one namespace. OSError when the kernel has no nftables."""

    def __init__(self, ns: NetNs, table: str) -> None:
        self._name = ns.name
        self._socket = ns.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER)
        self._socket.bind((0, 0))
        body = _FAMILY.pack(_NETDEV, 0, 0) + rtnl.attribute(_TABLE, table.encode() + b"\0")
        body += rtnl.attribute(_TYPE, _COUNTER.to_bytes(4, "big"))
        flags = rtnl.NLM_F_REQUEST | rtnl.NLM_F_DUMP
        self._request = struct.pack("=IHHII", 16 + len(body), _GET, flags, 1, 0) + body

    def packets(self) -> dict[str, int]:
        """Return the packets that each counter has counted, by its name. OSError when the kernel refuses."""
        self._socket.send(self._request)
        found: dict[str, int] = {}
        while True:
            for kind, _, _, body in nlmsg.split(self._socket.recv(_RECEIVE)):
                if kind == rtnl.NLMSG_DONE:
                    return found
                if kind == rtnl.NLMSG_ERROR:
                    number = -struct.unpack_from("=i", body)[0]
                    raise OSError(number, f"{self._name}: nftables counters: {os.strerror(number)}")
                if kind == _NEW:
                    told = nlmsg.attributes(body[_FAMILY.size :])
                    counted = nlmsg.attributes(told[_DATA])
                    found[told[_NAME].rstrip(b"\0").decode()] = int.from_bytes(counted[_PACKETS], "big")

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
