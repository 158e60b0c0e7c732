"""Check of a kernel's SRv6: whether it takes each kind of entry that forwards by uSIDs."""

from __future__ import annotations

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl, seg6
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.seg6 import Seg6Local

LOOPBACK = 1
REMEDY = "a kernel with CONFIG_IPV6_SEG6_LWTUNNEL, Linux 6.6 or newer"
_PORT, _BITS = 900, (32, 16)
_MAC, _PEER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def seg6_problem(space: NetNs) -> str | None:
    """Return why a kernel cannot forward by uSIDs, None if it can; tested in ``space``, where two interfaces stay."""
    pair = rtnl.add_veth("usid0", _PORT, space, "usid1", _PORT + 1, space, mac=_MAC, peer_mac=_PEER, mtu=1500)
    link = Netlink(space)
    try:
        link.run([rtnl.set_link(LOOPBACK, up=True), pair])
        link.run(
            [
                seg6.add_neighbour6(_PORT, "fe80::1", _PEER),
                seg6.add_route6("fc00:0:2::/48", _PORT, gateway="fe80::1"),
                seg6.add_route6("fc00:0:1::/48", LOOPBACK, treatment=Seg6Local(seg6.END, _BITS), local=True),
                seg6.add_route6("fc00:0:e000::/48", _PORT, treatment=Seg6Local(seg6.END_X, _BITS, nh6="fd01::1")),
                seg6.add_route6("fc00:0:3::/48", _PORT, treatment=Seg6Local(seg6.END_DT6, table=rtnl.RT_TABLE_LOCAL)),
            ]
        )
    except OSError as error:
        return str(error.strerror or error)
    finally:
        link.close()
    return None
