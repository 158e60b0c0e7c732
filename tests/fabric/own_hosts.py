"""A leaf-spine network, two of whose four hosts bring network configurations of their own, as somebody would write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

INTERFACES = """\
# The loopback network interface
auto lo
iface lo inet loopback

auto eth0
iface eth0 inet manual
    bond-master bond0

auto eth1
iface eth1 inet manual
    bond-master bond0

auto bond0
iface bond0 inet manual
    bond-slaves none
    bond-mode 802.3ad
    bond-miimon 100
    bond-lacp-rate slow
    bond-xmit-hash-policy layer3+4
"""
STATIC = INTERFACES.replace("bond0 inet manual", "bond0 inet static")
"""The same for a bond with an address, which is to be added."""
NETWORKD: Mapping[str, str] = {
    "10-bond0.netdev": """\
[NetDev]
Name=bond0
Kind=bond

[Bond]
Mode=802.3ad
LACPTransmitRate=fast
MIIMonitorSec=100ms
UpDelaySec=0.2
TransmitHashPolicy=layer3+4
MinLinks=1
""",
    "20-ports.network": "[Match]\nName=eth*\n\n[Network]\nBond=bond0\n",
    "30-bond0.network": "[Match]\nName=bond0\n\n[Network]\nLinkLocalAddressing=no\n",
}
NETPLAN = """\
network:
  version: 2
  ethernets:
    eth0: {dhcp4: no}
    eth1: {dhcp4: no}
  bonds:
    bond0:
      interfaces: [eth0, eth1]
      parameters:
        mode: 802.3ad
        lacp-rate: fast
        mii-monitor-interval: 50
        transmit-hash-policy: layer2+3
"""
HOSTS = ("gpu-a", "gpu-b", "gpu-c", "gpu-d")
_ACCESS = [
    f"{{ends: [{host}:eth{port}, leaf{2 * (at // 2) + port + 1}:Ethernet{4 * (at % 2)}]}}"
    for at, host in enumerate(HOSTS)
    for port in (0, 1)
]
_UPLINKS = [
    f"{{ends: [leaf{leaf}:Ethernet{48 + 4 * spine}, spine{spine + 1}:swp{leaf}]}}"
    for leaf in range(1, 5)
    for spine in (0, 1)
]


def topology(a: str = ", config: gpu-a/interfaces", c: str = ", config: gpu-c", more: str = "") -> str:
    """The topology file; ``a`` and ``c``: what it says of gpu-a and gpu-c, in two racks."""
    ours = ", nics: {bond0: {ports: [eth0, eth1]}}"
    nodes = [f"{name}: {{role: host{said}}}" for name, said in zip(HOSTS, (a, ours, c, ours), strict=True)]
    nodes += [f"leaf{at}: {{role: leaf}}" for at in range(1, 5)]
    nodes += [f"spine{at}: {{role: spine}}" for at in (1, 2)]
    head = ["name: own-hosts", "architecture: wired", *([more] if more else []), "wiring:", "  nodes:"]
    links = (f"    - {link}" for link in (*_ACCESS, *_UPLINKS))
    return "\n".join([*head, *(f"    {node}" for node in nodes), "  links:", *links, ""])


def write(folder: Path, text: str = "", interfaces: str = INTERFACES, networkd: Mapping[str, str] = NETWORKD) -> Path:
    """The network below ``folder``: its topology file. gpu-a has ``interfaces``, gpu-c files of systemd-networkd."""
    for host, files in (("gpu-a", {"interfaces": interfaces}), ("gpu-c", networkd)):
        (folder / host).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / host / name).write_text(content)
    path = folder / "own-hosts.yaml"
    path.write_text(text or topology())
    return path
