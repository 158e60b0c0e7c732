"""The builder: names the parts by their numbers; an architecture module only defines the wiring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hpn.testbed.errors import InputError
from hpn.testbed.fabric import addresses
from hpn.testbed.fabric.draft import Cable, FabricDraft, unnumbered
from hpn.testbed.fabric.model import Fabric, LinkKind, Nic, Node, Role
from hpn.testbed.fabric.spec import CorePorts, FabricSpec


class Builder(FabricDraft):
    """A draft whose parts are named by pod, segment, rail, plane and index."""

    def __init__(self, spec: FabricSpec) -> None:
        plan = addresses.NicPlan.for_sizes(spec.rails, spec.pods * spec.segments, spec.hosts + spec.spare_hosts)
        super().__init__(spec, plan)

    def host(self, pod: int, segment: int, index: int) -> Node:
        """Add a host; those past ``spec.hosts`` are spares."""
        name = f"p{pod}.s{segment}.h{index}"
        return self.add_host(Node(name, Role.HOST, pod, index, segment, spare=index >= self.spec.hosts))

    def tor(self, pod: int, segment: int, rail: int | None, index: int, plane: int) -> Node:
        """Add the ``index``-th ToR of a set; 'p0.s1.t2.0', 'p0.s1.t0.0' when the set serves all rails (None)."""
        name = f"p{pod}.s{segment}.t{rail or 0}.{index}"
        system = self.spec.lacp.tor_system_ids.get(name, self.spec.lacp.system_id)
        return self.add_switch(Node(name, Role.TOR, pod, index, segment, rail, plane, lacp_system=system))

    def agg(self, pod: int, plane: int, index: int) -> Node:
        """Add an Agg; 'p0.a1.7'."""
        return self.add_switch(Node(f"p{pod}.a{plane}.{index}", Role.AGG, pod, index, plane=plane))

    def rail_agg(self, pod: int, rail: int, index: int) -> Node:
        """Add an Agg of one rail's own network; 'p0.r1.a0'."""
        return self.add_switch(Node(f"p{pod}.r{rail}.a{index}", Role.AGG, pod, index, rail=rail, plane=0))

    def core(self, plane: int, index: int) -> Node:
        """Add a Core; 'c0.3'."""
        return self.add_switch(Node(f"c{plane}.{index}", Role.CORE, 0, index, plane=plane))

    def nic(self, host: Node, rail: int, tors: Sequence[Node], port_rate_bps: int) -> Nic:
        """Add one NIC and its access links, port k to ``tors[k]``."""
        block = host.pod * self.spec.segments + (host.segment or 0)
        name, tor_port = f"{host.name}.r{rail}", f"h{host.index}r{rail}"
        cables = [
            Cable(f"r{rail}p{port}", tor, tor_port, port_rate_bps, f"{name}.{port}") for port, tor in enumerate(tors)
        ]
        return self.add_nic(unnumbered(name, host.name, rail, f"bond{rail}"), host, block, cables)

    def cable(self, kind: LinkKind, lower: Node, upper: Node, rate_bps: int, parallel: int = 1) -> None:
        """Add ``parallel`` routed links between two switches of one plane."""
        down_name = f"p{lower.pod}a{lower.index}" if lower.rail is None else f"p{lower.pod}r{lower.rail}a{lower.index}"
        if lower.role is Role.TOR:
            down_name = f"s{lower.segment}r{lower.rail or 0}t{lower.index}"
        up_name = f"up{upper.index}" if lower.role is Role.TOR else f"core{upper.index}"
        for k in range(parallel):
            dot, mark = (f".{k}", f"p{k}") if parallel > 1 else ("", "")
            name = f"{lower.name}-{upper.name}{dot}"
            self.add_switch_link(kind, (lower, upper), (up_name + mark, down_name + mark), rate_bps, name)

    def mesh(self, lower: Node, upper: Node, rate_bps: int, parallel: int = 1) -> None:
        """Add ``parallel`` routed links between two ToRs of a direct network, each port named after the far end."""
        for k in range(parallel):
            dot, mark = (f".{k}", f"p{k}") if parallel > 1 else ("", "")
            ports = tuple(f"p{far.pod}s{far.segment}{mark}" for far in (upper, lower))
            name = f"{lower.name}-{upper.name}{dot}"
            self.add_switch_link(LinkKind.MESH, (lower, upper), (ports[0], ports[1]), rate_bps, name)

    def stack(self, primary: Node, secondary: Node, rate_bps: int) -> None:
        """Make two ToRs a stack: add a peer link between them and record which is primary."""
        name = f"{secondary.name}-{primary.name}"
        self.add_switch_link(LinkKind.PEER, (secondary, primary), ("peer", "peer"), rate_bps, name)
        self.add_stack(primary.name, secondary.name, name)

    def finish(self, planes: int, *, rails_meet: bool = True, core_ports: CorePorts = "preset") -> Fabric:
        """Return the fabric built so far. ``core_ports`` is the meaning of 'auto' here.

        ``rails_meet``: switches above the ToRs, if there are any, lead from rail to rail. InputError for values given
        to ToRs that do not exist.
        """
        check_tor_names(self.nodes, "lacp.tor_system_ids", self.spec.lacp.tor_system_ids)
        check_tor_names(self.nodes, "stack.tor_versions", self.spec.stack.tor_versions)
        made = self.made(planes, rails_meet=rails_meet, core_ports=core_ports)
        above = any(link.kind in (LinkKind.FABRIC, LinkKind.CORE) for link in made.links)
        joined = self.spec.rails == 1 or above or any(tor.rail is None for tor in made.switches)
        return made if joined or not rails_meet else replace(made, rails_meet=False)


def check_tor_names(nodes: Iterable[Node], key: str, given: Iterable[str]) -> None:
    """Raise InputError if one of the ``given`` names is no ToR's."""
    tors = {node.name: None for node in nodes if node.role is Role.TOR}
    unknown = [name for name in given if name not in tors]
    if unknown:
        raise InputError(f"{key}: no ToR {unknown[0]!r} in this fabric; it has {', '.join([*tors][:3])}, ...")


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
