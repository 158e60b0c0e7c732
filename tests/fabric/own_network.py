"""A leaf-spine network whose switches bring their own frr.conf or bird.conf, written as somebody would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

LEAVES, SPINES = ("leaf1", "leaf2", "leaf3"), ("spine1", "spine2")
ASNS: Mapping[str, int] = {"leaf1": 65001, "leaf2": 65002, "leaf3": 65003, "spine1": 65100, "spine2": 65100}

_FRR = """\
frr version 8.4
frr defaults datacenter
hostname {name}
!
{interfaces}router bgp {asn}
 bgp router-id 10.255.0.{number}
 no bgp ebgp-requires-policy
 bgp bestpath as-path multipath-relax
 timers bgp 3 9
 neighbor FABRIC peer-group
{neighbours} !
 address-family ipv4 unicast
  redistribute kernel
  maximum-paths 64
 exit-address-family
exit
"""
_BIRD = """\
router id 10.255.0.{number};
protocol device {{ scan time 1; }}
protocol kernel {{
  learn;
  merge paths yes limit 64;
  ipv4 {{ import all; export where source = RTS_BGP; }};
}}
template bgp fabric {{
  local as {asn};
  hold time 9;
  connect delay time 1;
  error wait time 1, 2;
  ipv4 {{ import all; export all; }};
}}
{neighbours}"""


def _cables() -> list[tuple[str, str, str, str, int]]:
    """Leaf, its port, spine, its port, number of the link."""
    pairs = [(leaf, spine) for spine in SPINES for leaf in LEAVES]
    return [
        (leaf, f"Ethernet{48 + 4 * SPINES.index(spine)}", spine, f"swp{LEAVES.index(leaf) + 1}", number)
        for number, (leaf, spine) in enumerate(pairs)
    ]


def _config(name: str, *, bird: bool) -> str:
    ends: list[tuple[str, str, str, str]] = []  # port, address, the neighbour's address and name
    for leaf, port, spine, there, number in _cables():
        low, high = f"100.64.0.{2 * number}", f"100.64.0.{2 * number + 1}"
        if name == leaf:
            ends.append((port, low, high, spine))
        elif name == spine:
            ends.append((there, high, low, leaf))
    values: dict[str, object] = {"name": name, "asn": ASNS[name], "number": list(ASNS).index(name) + 1}
    if bird:
        text = (
            f"protocol bgp to_{peer} from fabric {{\n  neighbor {far} as {ASNS[peer]};\n}}\n" for *_, far, peer in ends
        )
        return _BIRD.format(**values, neighbours="".join(text))
    interfaces = "".join(f"interface {port}\n ip address {near}/31\nexit\n!\n" for port, near, *_ in ends)
    lines = (f" neighbor {far} remote-as {ASNS[peer]}\n neighbor {far} timers connect 1\n" for *_, far, peer in ends)
    return _FRR.format(**values, interfaces=interfaces, neighbours="".join(lines))


def write(folder: Path, birds: Sequence[str] = ()) -> Path:
    """The network below ``folder``: its topology file. ``birds``: the switches that run BIRD."""
    nodes = dict.fromkeys(("gpu-a", "gpu-b"), "{role: host, nics: {bond0: {ports: [eth0, eth1]}}}")
    for name in ASNS:
        kind = "bird.conf" if name in birds else "frr.conf"
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / kind).write_text(_config(name, bird=name in birds))
        nodes[name] = f"{{role: {'leaf' if name in LEAVES else 'spine'}, config: {name}/{kind}}}"
    links = [
        f"{{ends: [{host}:eth{k}, leaf{at + k + 1}:Ethernet{at}]}}"
        for at, host in enumerate(("gpu-a", "gpu-b"))
        for k in (0, 1)
    ]
    for leaf, port, spine, there, number in _cables():
        address = f"addresses: [100.64.0.{2 * number}/31, 100.64.0.{2 * number + 1}/31]"
        links.append(f"{{ends: [{leaf}:{port}, {spine}:{there}], {address}}}")
    head = ["name: own", "architecture: wired", "bgp: {asn: per-switch}", "wiring:", "  nodes:"]
    body = [*(f"    {name}: {node}" for name, node in nodes.items()), "  links:", *(f"    - {link}" for link in links)]
    path = folder / "own.yaml"
    path.write_text("\n".join([*head, *body, ""]))
    return path


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Change every ``old`` in a switch's configuration, which has at least one."""
    path = next((folder / name).iterdir())
    text = path.read_text()
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new))
