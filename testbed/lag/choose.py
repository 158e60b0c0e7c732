"""Which LAG datapath this machine gets, found out by trying each in a throw-away namespace."""

from __future__ import annotations

import os
from typing import Literal

from testbed.errors import MachineError
from testbed.fabric.spec import LagChoice
from testbed.kernel import ns
from testbed.kernel.netlink import Netlink
from testbed.kernel.nft import Nft
from testbed.kernel.ns import NetNs
from testbed.lag import bond

_NFT_FEATURES = """
table netdev probe {
  chain c {
    type filter hook ingress device "lo" priority 0;
    ether type arp dup to "lo"
    jhash ip saddr . ip daddr mod 2 seed 1 == 0 fwd to "lo"
  }
}
"""


def choose(wanted: LagChoice) -> Literal["kernel", "nft"]:
    """The datapath to use: the wanted one, or for 'auto' the bonding driver where there is one, else nftables.

    MachineError, naming the way out, when it cannot be had. Needs the right to make network namespaces.
    """
    probe = ns.create("lag-probe")
    try:
        if wanted != "nft":
            problem = _bonding_problem(probe)
            if problem is None:
                return "kernel"
            if wanted == "kernel":
                raise MachineError(f"no Linux bonding here ({problem}): modprobe bonding, or write lag: nft")
        problem = _nft_problem(probe)
        if problem is None:
            return "nft"
        way_out = "apt install libnftables1, modprobe -a nft_fwd_netdev nft_dup_netdev nft_hash, or modprobe bonding"
        raise MachineError(f"no LAG datapath here ({problem}): {way_out}")
    finally:
        os.close(probe.fd)


def _bonding_problem(probe: NetNs) -> str | None:
    netlink = Netlink(probe)
    try:
        netlink.run([bond.create_bond("probe0", 100, mac="02:00:00:00:00:01", mtu=1500, fast=True)])
    except OSError as error:
        return str(error.strerror or error)
    finally:
        netlink.close()
    return None


def _nft_problem(probe: NetNs) -> str | None:
    try:
        nft = Nft(probe)
    except MachineError as error:
        return str(error)
    try:
        nft.run(_NFT_FEATURES)
    except OSError as error:
        return str(error).splitlines()[0]
    finally:
        nft.close()
    return None
