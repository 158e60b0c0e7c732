"""A fabric in the making: named parts get numbers, MACs and addresses, in the order in which they are added.

Architectures compute the names (``builder``); a file brings them (``wired``).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface, IPv4Network, collapse_addresses

from hpn.testbed.errors import InputError
from hpn.testbed.fabric import addresses
from hpn.testbed.fabric.groups import asns_apart
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Port, Role, Stack
from hpn.testbed.fabric.spec import CorePorts, FabricSpec

TOR_ASN, AGG_ASN, CORE_ASN = 65_100, 65_200, 65_500
SWITCH_ASN = 4_200_000_000
"""First ASN of switches that have one each: of the private ones with 32 bits (RFC 6996)."""
_FEW_PODS = 64  # whose Aggs' ASNs are below the Cores'
_FIRST_IFINDEX = 16  # clear of lo and of devices the kernel makes in every namespace
_LACP_KEYS = 65_535  # a key has 16 bits, and 0 stands for no key
LinkAddresses = tuple[str, str] | tuple[None, None] | None
"""Addresses of both ends of a link, or of neither (BGP unnumbered); None: the next /31."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A link of a NIC before it has numbers: port names, the ToR, the rate (scaled, bit/s)."""

    host_port: str
    tor: Node
    tor_port: str
    rate_bps: int
    name: str


class FabricDraft:
    """Collector of the nodes, links and NICs of one fabric. Deterministic: same calls, same result."""

    def __init__(self, spec: FabricSpec, plan: addresses.NicPlan, taken: Iterable[IPv4Network] = ()) -> None:
        """Number from ``plan``, and links between switches clear of the networks that a file has ``taken``."""
        self.spec = spec
        self.nics_plan = plan
        self._taken = [each for each in collapse_addresses(taken) if each.overlaps(addresses.LINKS)]
        self.nodes: list[Node] = []
        self._links: list[Link] = []
        self._nics: list[Nic] = []
        self._stacks: list[Stack] = []
        self._next_ifindex = _FIRST_IFINDEX
        self._switches = 0
        self._switch_links = 0
        self._ports_of: Counter[str] = Counter()  # access ports of each ToR

    def add_host(self, node: Node) -> Node:
        """Add a host as it is."""
        self.nodes.append(node)
        return node

    def add_switch(self, node: Node) -> Node:
        """Add a switch; it gets the router ID, ASN and hash seed that it lacks."""
        number, self._switches = self._switches, self._switches + 1
        whose = node.name if self.spec.ecmp_seeds == "per-switch" else "every switch"
        digest = hashlib.blake2b(f"{self.spec.seed}/{whose}".encode(), digest_size=4).digest()
        asn = SWITCH_ASN + number if self.spec.bgp.valleys else _asn_of_tier(node)
        made = replace(
            node,
            router_id=node.router_id or addresses.router_id(number),
            asn=asn if node.asn is None else node.asn,
            ecmp_seed=int.from_bytes(digest, "big") | 1,  # zero would mean the kernel's own random seed
        )
        self.nodes.append(made)
        return made

    def add_nic(self, nic: Nic, host: Node, block: int, cables: Sequence[Cable]) -> Nic:
        """Add a NIC over these cables; it gets the numbers and addresses that it lacks (0 and '').

        ``block``: number of the host's segment in the whole fabric.
        """
        nic = self._addressed(nic, host.index, block)
        key = lacp_key(len(self._nics))
        links = tuple(self._access(nic, cable, port, key) for port, cable in enumerate(cables))
        nic = replace(nic, lag_ifindex=self._ifindex(), inner_ifindex=self._ifindex(), links=links)
        self._links.extend(links)
        self._nics.append(nic)
        return nic

    def _addressed(self, nic: Nic, index: int, block: int) -> Nic:
        plan = self.nics_plan
        return replace(
            nic,
            mac=plan.nic_mac(nic.rail, block, index),
            ip=nic.ip or plan.nic_ip(nic.rail, block, index),
            prefix_len=nic.prefix_len or plan.prefix_len,
            gateway=nic.gateway or plan.gateway(nic.rail, block),
            gateway_mac=plan.gateway_mac(nic.rail, block),
            rail_network=nic.rail_network or plan.rail_network(nic.rail),
        )

    def _access(self, nic: Nic, cable: Cable, port: int, key: int) -> Link:
        lower = Port(nic.host, cable.host_port, self._ifindex(), nic.mac, None, port + 1)
        tor = cable.tor
        number = self._ports_of[tor.name] = self._ports_of[tor.name] + 1
        upper = Port(
            tor.name,
            cable.tor_port,
            self._ifindex(),
            nic.gateway_mac,
            f"{nic.gateway}/32",
            self.spec.lacp.port_id_offset * (tor.index + 1) + number,
            key,
        )
        return Link(cable.name, LinkKind.ACCESS, tor.plane or 0, cable.rate_bps, lower, upper)

    def add_switch_link(
        self,
        kind: LinkKind,
        ends: tuple[Node, Node],
        ports: tuple[str, str],
        rate_bps: int,
        name: str,
        given: LinkAddresses = None,
        mtu: int | None = None,
    ) -> Link:
        """Add a link between two switches, the lower first; ``given``: addresses, else the next /31."""
        low_address, high_address = given or self._free_pair()
        self._switch_links += 1
        low_index, high_index = self._ifindex(), self._ifindex()
        lower, upper = ends
        link = Link(
            name=name,
            kind=kind,
            plane=lower.plane or 0,
            rate_bps=rate_bps,
            lower=Port(lower.name, ports[0], low_index, addresses.switch_port_mac(low_index), low_address),
            upper=Port(upper.name, ports[1], high_index, addresses.switch_port_mac(high_index), high_address),
            mtu=mtu,
        )
        self._links.append(link)
        return link

    def _free_pair(self) -> tuple[str, str]:
        """Return the next /31 that is in no network of the file. InputError when these leave none."""
        if any(addresses.LINKS.subnet_of(each) for each in self._taken):
            raise InputError(f"addresses of NICs leave links none in {addresses.LINKS}; write those of each link")
        while True:
            pair = addresses.link_addresses(self._switch_links)
            if not any(IPv4Interface(pair[0]).ip in each for each in self._taken):
                return pair
            self._switch_links += 1

    def add_stack(self, primary: str, secondary: str, peer_link: str) -> None:
        """Make two ToRs a stack over a link that was added."""
        versions = self.spec.stack.tor_versions
        first, second = (versions.get(tor, self.spec.stack.version) for tor in (primary, secondary))
        self._stacks.append(Stack(primary, secondary, peer_link, first, second))

    def made(self, planes: int, *, rails_meet: bool, core_ports: CorePorts) -> Fabric:
        """Return the fabric so far. ``core_ports`` is the meaning of 'auto' here."""
        chosen = core_ports if self.spec.core_ports == "auto" else self.spec.core_ports
        apart = {} if self.spec.bgp.valleys else asns_apart(self.nodes, self._links)
        nodes = tuple(replace(node, asn=apart[node.name]) if node.name in apart else node for node in self.nodes)
        links, nics = tuple(self._links), tuple(self._nics)
        return Fabric(self.spec, nodes, links, nics, planes, tuple(self._stacks), rails_meet, chosen)

    def _ifindex(self) -> int:
        self._next_ifindex += 1
        return self._next_ifindex


def unnumbered(name: str, host: str, rail: int, lag: str) -> Nic:
    """Return a NIC without numbers, addresses and links, for ``FabricDraft.add_nic``."""
    return Nic(name, host, rail, lag, 0, f"{lag}i", 0, "", "", 0, "", "", "", ())


def _asn_of_tier(switch: Node) -> int:
    """Return the ASN of a switch's tier and plane, of Aggs per pod too: a route never comes back by a sibling."""
    plane = switch.plane or 0
    if switch.role is Role.AGG:
        return (AGG_ASN if switch.pod < _FEW_PODS else SWITCH_ASN) + switch.pod * 4 + plane
    return (TOR_ASN if switch.role is Role.TOR else CORE_ASN) + plane


def lacp_key(nic: int) -> int:
    """Return the LACP key of the ToR ports of the fabric's ``nic``-th NIC.

    All ToRs share one system ID. Only the key distinguishes the ToR sets of two segments, and two NICs of one set.
    Keys repeat after 65,535 NICs, which is four of the paper's pods.
    """
    return 1 + nic % _LACP_KEYS
