"""The builder: assigns names, numbers and addresses; an architecture module only defines the wiring."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from hpn.testbed.errors import InputError
from hpn.testbed.fabric import addresses
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Port, Role, Stack
from hpn.testbed.fabric.spec import CorePorts, FabricSpec

TOR_ASN, AGG_ASN, CORE_ASN = 65_100, 65_200, 65_500
SWITCH_ASN = 4_200_000_000
"""First ASN of switches that have one each: of the private ones with 32 bits (RFC 6996)."""
_FIRST_IFINDEX = 16  # clear of lo and of devices the kernel makes in every namespace
_LACP_KEYS = 65_535  # a key has 16 bits, and 0 stands for no key


class Builder:
    """Collector of the nodes, links and NICs of one fabric. Deterministic: same calls, same result."""

    def __init__(self, spec: FabricSpec) -> None:
        self.spec = spec
        self.nics_plan = addresses.NicPlan.for_sizes(
            spec.rails, spec.pods * spec.segments, spec.hosts + spec.spare_hosts
        )
        self._nodes: list[Node] = []
        self._links: list[Link] = []
        self._nics: list[Nic] = []
        self._stacks: list[Stack] = []
        self._segment_of: dict[str, int] = {}  # hosts, by name
        self._plane_of: dict[str, int] = {}  # switches, by name
        self._next_ifindex = _FIRST_IFINDEX
        self._switches = 0
        self._switch_links = 0

    def host(self, pod: int, segment: int, index: int) -> Node:
        """Add a host; those past ``spec.hosts`` are spares."""
        node = Node(
            name=f"p{pod}.s{segment}.h{index}",
            role=Role.HOST,
            pod=pod,
            index=index,
            segment=segment,
            spare=index >= self.spec.hosts,
        )
        self._nodes.append(node)
        self._segment_of[node.name] = segment
        return node

    def tor(self, pod: int, segment: int, rail: int | None, index: int, plane: int) -> Node:
        """Add the ``index``-th ToR of a set; 'p0.s1.t2.0', 'p0.s1.t0.0' when the set serves all rails (None)."""
        name = f"p{pod}.s{segment}.t{rail or 0}.{index}"
        system = self.spec.lacp.tor_system_ids.get(name, self.spec.lacp.system_id)
        return self._switch(name, Role.TOR, pod, index, plane, TOR_ASN + plane, segment, rail, system)

    def agg(self, pod: int, plane: int, index: int) -> Node:
        """Add an Agg; 'p0.a1.7'. One ASN per plane and pod: a route never comes back through a sibling."""
        asn = AGG_ASN + pod * 4 + plane
        return self._switch(f"p{pod}.a{plane}.{index}", Role.AGG, pod, index, plane, asn)

    def rail_agg(self, pod: int, rail: int, index: int) -> Node:
        """Add an Agg of one rail's own network; 'p0.r1.a0'."""
        return self._switch(f"p{pod}.r{rail}.a{index}", Role.AGG, pod, index, 0, AGG_ASN + pod * 4, rail=rail)

    def core(self, plane: int, index: int) -> Node:
        """Add a Core; 'c0.3'."""
        return self._switch(f"c{plane}.{index}", Role.CORE, 0, index, plane, CORE_ASN + plane)

    def nic(self, host: Node, rail: int, tors: Sequence[Node], port_rate_bps: int) -> Nic:
        """Add one NIC and its access links, port k to ``tors[k]``."""
        segment = host.pod * self.spec.segments + self._segment_of[host.name]
        plan = self.nics_plan
        mac, gateway_mac = plan.nic_mac(rail, segment, host.index), plan.gateway_mac(rail, segment)
        gateway = plan.gateway(rail, segment)
        key = lacp_key(len(self._nics))
        links = []
        for port, tor in enumerate(tors):
            lower = Port(host.name, f"r{rail}p{port}", self._ifindex(), mac, None, port + 1)
            number = host.index if tor.rail == rail else host.index * self.spec.rails + rail
            offset = self.spec.lacp.port_id_offset * (tor.index + 1)
            upper = Port(
                tor.name,
                f"h{host.index}r{rail}",
                self._ifindex(),
                gateway_mac,
                f"{gateway}/32",
                offset + number + 1,
                key,
            )
            name = f"{host.name}.r{rail}.{port}"
            links.append(Link(name, LinkKind.ACCESS, self._plane_of[tor.name], port_rate_bps, lower, upper))
        nic = Nic(
            name=f"{host.name}.r{rail}",
            host=host.name,
            rail=rail,
            lag=f"bond{rail}",
            lag_ifindex=self._ifindex(),
            inner=f"bond{rail}i",
            inner_ifindex=self._ifindex(),
            mac=mac,
            ip=plan.nic_ip(rail, segment, host.index),
            prefix_len=plan.prefix_len,
            gateway=gateway,
            gateway_mac=gateway_mac,
            rail_network=plan.rail_network(rail),
            links=tuple(links),
        )
        self._links.extend(links)
        self._nics.append(nic)
        return nic

    def cable(self, kind: LinkKind, lower: Node, upper: Node, rate_bps: int, parallel: int = 1) -> None:
        """Add ``parallel`` routed links between two switches of one plane."""
        down_name = f"p{lower.pod}a{lower.index}"
        if lower.role is Role.TOR:
            down_name = f"s{lower.segment}r{lower.rail or 0}t{lower.index}"
        up_name = f"up{upper.index}" if lower.role is Role.TOR else f"core{upper.index}"
        for k in range(parallel):
            dot, mark = (f".{k}", f"p{k}") if parallel > 1 else ("", "")
            self._switch_link(kind, lower, upper, rate_bps, (up_name + mark, down_name + mark), dot)

    def stack(self, primary: Node, secondary: Node, rate_bps: int) -> None:
        """Make two ToRs a stack: add a peer link between them and record which is primary."""
        link = self._switch_link(LinkKind.PEER, secondary, primary, rate_bps, ("peer", "peer"))
        versions = self.spec.stack.tor_versions
        first, second = (versions.get(tor.name, self.spec.stack.version) for tor in (primary, secondary))
        self._stacks.append(Stack(primary.name, secondary.name, link.name, first, second))

    def _switch_link(
        self, kind: LinkKind, lower: Node, upper: Node, rate_bps: int, ports: tuple[str, str], suffix: str = ""
    ) -> Link:
        low_address, high_address = addresses.link_addresses(self._switch_links)
        self._switch_links += 1
        low_index, high_index = self._ifindex(), self._ifindex()
        link = Link(
            name=f"{lower.name}-{upper.name}{suffix}",
            kind=kind,
            plane=self._plane_of[lower.name],
            rate_bps=rate_bps,
            lower=Port(lower.name, ports[0], low_index, addresses.switch_port_mac(low_index), low_address),
            upper=Port(upper.name, ports[1], high_index, addresses.switch_port_mac(high_index), high_address),
        )
        self._links.append(link)
        return link

    def finish(self, planes: int, *, rails_meet: bool = True, core_ports: CorePorts = "preset") -> Fabric:
        """Return the fabric built so far. ``core_ports`` is the meaning of 'auto' here.

        InputError for values given to ToRs that do not exist.
        """
        self._check_names("lacp.tor_system_ids", self.spec.lacp.tor_system_ids)
        self._check_names("stack.tor_versions", self.spec.stack.tor_versions)
        nodes, links, nics = tuple(self._nodes), tuple(self._links), tuple(self._nics)
        chosen = core_ports if self.spec.core_ports == "auto" else self.spec.core_ports
        return Fabric(self.spec, nodes, links, nics, planes, tuple(self._stacks), rails_meet, chosen)

    def _check_names(self, key: str, given: Iterable[str]) -> None:
        tors = {node.name: None for node in self._nodes if node.role is Role.TOR}
        unknown = [name for name in given if name not in tors]
        if unknown:
            raise InputError(f"{key}: no ToR {unknown[0]!r} in this fabric; it has {', '.join([*tors][:3])}, ...")

    def _switch(
        self,
        name: str,
        role: Role,
        pod: int,
        index: int,
        plane: int,
        asn: int,
        segment: int | None = None,
        rail: int | None = None,
        lacp_system: str | None = None,
    ) -> Node:
        whose = name if self.spec.ecmp_seeds == "per-switch" else "every switch"
        digest = hashlib.blake2b(f"{self.spec.seed}/{whose}".encode(), digest_size=4).digest()
        node = Node(
            name=name,
            role=role,
            pod=pod,
            index=index,
            segment=segment,
            rail=rail,
            plane=plane,
            router_id=addresses.router_id(self._switches),
            asn=SWITCH_ASN + self._switches if self.spec.bgp.valleys else asn,
            ecmp_seed=int.from_bytes(digest, "big") | 1,  # zero would mean the kernel's own random seed
            lacp_system=lacp_system,
        )
        self._switches += 1
        self._nodes.append(node)
        self._plane_of[name] = plane
        return node

    def _ifindex(self) -> int:
        self._next_ifindex += 1
        return self._next_ifindex


def lacp_key(nic: int) -> int:
    """Return the LACP key of the ToR ports of the fabric's ``nic``-th NIC.

    All ToRs share one system ID. Only the key distinguishes the ToR sets of two segments, and two NICs of one set.
    Keys repeat after 65,535 NICs, which is four of the paper's pods.
    """
    return 1 + nic % _LACP_KEYS


def scaled(rate_bps: int, spec: FabricSpec) -> int:
    """Return the emulated rate. InputError below 1 Mbit/s, which is too low for tbf to shape accurately."""
    rate = rate_bps // spec.scale
    if rate_bps < 10**6:
        raise InputError(f"a port of {rate_bps} bit/s is below 1 Mbit/s; write a rate with its unit, such as 400G")
    if rate < 10**6:
        raise InputError(
            f"scale {spec.scale} leaves {rate} bit/s of a {rate_bps / 1e9:g}G port; lower scale to {rate_bps // 10**6}"
        )
    return rate
