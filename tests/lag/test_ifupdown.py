"""Debian's ifup and ifenslave as the judge: the bond that they make of a file is the one that hpn makes of it.

Skipped without them (apt install ifupdown ifenslave) or without the bonding driver; ``tests/vm`` runs it in a guest.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpn.testbed.fabric.wired.host_bonding import options_of
from hpn.testbed.fabric.wired.host_ifupdown import read_ifupdown
from hpn.testbed.fabric.wired.host_words import HostFiles
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.kernel_parts import choose
from hpn.testbed.lag import bond
from hpn.testbed.lag.host_bond import KERNEL
from tests.fabric.own_hosts import INTERFACES
from tests.lag import rack
from tests.lag.rack import NIC_MAC, PORTS

pytestmark = pytest.mark.kernel
_IFENSLAVE = Path("/etc/network/if-pre-up.d/ifenslave")
_AS_IN_A_HOST = """\
mount -t sysfs sysfs /sys && mount -t tmpfs none /run && mkdir -p /run/network &&
mount --bind "$1" /etc/network/interfaces && ifup -v -a"""
_OPTIONS = (
    *("mode", "miimon", "updelay", "downdelay", "xmit_hash_policy", "ad_lacp_rate", "ad_select", "min_links"),
    *("lacp_active", "use_carrier", "num_peer_notif", "all_slaves_active"),
)
BOND, IFINDEX = "bond0", 99
_BOND = "auto bond0\niface bond0 inet manual\n bond-slaves eth0 eth1\n bond-mode 802.3ad\n"
FILES = {
    "ports name their bond": INTERFACES,
    "the bond names its ports": _BOND,
    "numbers, underscores": "auto bond0\niface bond0 inet manual\n bond_slaves eth0 eth1\n bond_mode 4\n"
    " bond_miimon 0\n bond_lacp_rate 1\n bond_xmit_hash_policy 2\n bond_ad_select bandwidth\n",
    "delays": _BOND.replace("manual", "static\n address 10.0.0.1/24")
    + " bond-miimon 50\n bond-updelay 220\n bond-downdelay 100\n bond-xmit-hash-policy encap3+4\n",
    "delays without miimon": _BOND + " bond-updelay 200\n bond-downdelay 400\n bond-lacp-rate fast\n",
}


def described(where: NetNs) -> Mapping[str, object]:
    """What iproute2 says of the bond: its options, and its ports."""
    with where.entered():
        command = ["ip", "-d", "-j", "link", "show"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    links = json.loads(said)
    (made,) = (link for link in links if link["ifname"] == BOND)
    options = made["linkinfo"]["info_data"]
    ports = sorted(link["ifname"] for link in links if link.get("master") == BOND)
    return {**{name: options.get(name) for name in _OPTIONS}, "ports": ports}


def without_ours(where: rack.Rack) -> rack.Rack:
    """The rack without the veth pair that stands for a LAG in it."""
    with where.host.entered():
        subprocess.run(["ip", "link", "del", BOND], check=True)
    return where


def by_ifup(path: Path) -> Mapping[str, object]:
    where = without_ours(rack.build())
    with where.host.entered():
        command = ["unshare", "-m", "sh", "-c", _AS_IN_A_HOST, "sh", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return described(where.host)


def by_hpn(text: str) -> Mapping[str, object]:
    where = without_ours(rack.build())
    (words,) = read_ifupdown(HostFiles("h", (("interfaces", text),), alone=True), PORTS).bonds
    members = [20 + PORTS.index(port) for port in words.ports]
    bonding = options_of(words, 2000).bonding
    Netlink(where.host).run(bond.make(BOND, IFINDEX, members, mac=NIC_MAC, mtu=rack.MTU, bonding=bonding))
    return described(where.host)


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_ifup_makes_the_bond_of_a_file_that_hpn_makes_of_it(text: str, tmp_path: Path) -> None:
    if programs.find("ifup") is None or not _IFENSLAVE.exists():
        pytest.skip("no ifup with ifenslave: apt install ifupdown ifenslave")
    if choose("auto") is not KERNEL:
        pytest.skip("this kernel has no bonding driver")
    (tmp_path / "interfaces").write_text(text)
    theirs, ours = by_ifup(tmp_path / "interfaces"), by_hpn(text)
    assert theirs == ours
    assert (theirs["mode"], theirs["ports"]) == ("802.3ad", list(PORTS))
