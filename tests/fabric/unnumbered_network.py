"""A leaf-spine network as data centres run it: BGP unnumbered with peer groups, and BFD, by a frr.conf each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LEAVES, SPINES = ("leaf1", "leaf2", "leaf3", "leaf4"), ("spine1", "spine2")
ASNS: Mapping[str, int] = {leaf: 65011 + at for at, leaf in enumerate(LEAVES)} | dict.fromkeys(SPINES, 65020)
_CONFIG = """\
frr version 8.4.4
frr defaults datacenter
hostname {name}
no zebra nexthop kernel enable
log syslog informational
service integrated-vtysh-config
!
interface lo
 ip address 10.255.0.{number}/32
exit
!
{bfd}router bgp {asn}
 bgp router-id 10.255.0.{number}
 bgp bestpath as-path multipath-relax
 no bgp ebgp-requires-policy
 neighbor FABRIC peer-group
 neighbor FABRIC remote-as external
{beside}{neighbours} !
 address-family ipv4 unicast
  redistribute connected route-map LOOPBACK
  redistribute kernel
  maximum-paths 64
 exit-address-family
exit
!
route-map LOOPBACK permit 10
 match interface lo
exit
"""
_BFD = """\
bfd
 profile fabric
  receive-interval 100
  transmit-interval 100
 exit
exit
!
"""


def _ports(name: str) -> list[str]:
    return [f"swp{51 + at}" for at in range(len(SPINES))] if name in LEAVES else [f"swp{at + 1}" for at in range(4)]


def config(name: str, *, bfd: bool = True) -> str:
    """The switch's frr.conf. ``bfd``: three intervals of 100 ms, else a hold time of 3 s is all there is."""
    neighbours = "".join(f" neighbor {port} interface peer-group FABRIC\n" for port in _ports(name))
    number = list(ASNS).index(name) + 1
    beside = " neighbor FABRIC bfd profile fabric\n" if bfd else " neighbor FABRIC timers 1 3\n"
    return _CONFIG.format(
        name=name, number=number, asn=ASNS[name], bfd=_BFD if bfd else "", beside=beside, neighbours=neighbours
    )


def write(folder: Path, *, bfd: bool = True) -> Path:
    """The network below ``folder``: its topology file. Each of two hosts has a NIC on two leaves."""
    nodes = dict.fromkeys(("gpu-a", "gpu-b"), "{role: host, nics: {bond0: {ports: [eth0, eth1]}}}")
    for name in ASNS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "frr.conf").write_text(config(name, bfd=bfd))
        nodes[name] = f"{{role: {'leaf' if name in LEAVES else 'spine'}, config: {name}/frr.conf}}"
    links = [f"{{ends: [gpu-{'ab'[at // 2]}:eth{at % 2}, {leaf}:swp1]}}" for at, leaf in enumerate(LEAVES)]
    for at, leaf in enumerate(LEAVES):
        links += [
            f"{{ends: [{leaf}:{port}, {spine}:swp{at + 1}]}}" for port, spine in zip(_ports(leaf), SPINES, strict=True)
        ]
    head = ["name: unnumbered", "architecture: wired", "bgp: {asn: per-switch}", "wiring:", "  nodes:"]
    body = [*(f"    {name}: {node}" for name, node in nodes.items()), "  links:", *(f"    - {link}" for link in links)]
    path = folder / "unnumbered.yaml"
    path.write_text("\n".join([*head, *body, ""]))
    return path
