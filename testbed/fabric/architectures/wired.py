"""Wired: a network as the file has it, node by node and link by link, instead of one that numbers imply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network
from itertools import pairwise
from pathlib import PurePath

from hpn.testbed.fabric.addresses import NicPlan
from hpn.testbed.fabric.architectures.architecture import Architecture, Problem
from hpn.testbed.fabric.bonding import Bonding
from hpn.testbed.fabric.builder import check_tor_names, scaled
from hpn.testbed.fabric.draft import Cable, FabricDraft, LinkAddresses, unnumbered
from hpn.testbed.fabric.model import Fabric, LinkKind, Node, Role
from hpn.testbed.fabric.spec import WIRED, FabricSpec
from hpn.testbed.fabric.wired.cables import Cabling, HostNic, WiredCable, cabling_of, end_of
from hpn.testbed.fabric.wired.config_words import KINDS, SwitchConfig, kind_of
from hpn.testbed.fabric.wired.configs import configs_of
from hpn.testbed.fabric.wired.host_configs import format_of, own_hosts, with_nics
from hpn.testbed.fabric.wired.host_rules import host_problems
from hpn.testbed.fabric.wired.rules import given_asns, wiring_problems
from hpn.testbed.fabric.wired.structure import Structure, structure_of
from hpn.testbed.fabric.wired.wiring_spec import WiredNode, WiringSpec
from hpn.testbed.files.document import shorten

_COUNTED = "the wiring has every node; leave it out"


def _build(spec: FabricSpec) -> Fabric:
    """Build the wiring of ``spec``, in the order of its nodes and links."""
    wiring = _wiring(spec)
    hosts = own_hosts(spec)
    cabling = cabling_of(wiring)
    found = structure_of(wiring, cabling)
    of_hosts = (found.indexes[name] for name, node in wiring.nodes.items() if node.role == "host")
    sizes = [max(numbers, default=0) + 1 for numbers in ((nic.rail for nic in cabling.nics), of_hosts)]
    configs = configs_of(wiring)
    plan = NicPlan.for_sizes(sizes[0], len(found.blocks), sizes[1])
    of_nics, of_switches = _nic_networks(cabling), _switch_networks(cabling, configs)
    if not of_nics:
        plan = plan.clear_of(of_switches, sizes[0], len(found.blocks))
    draft = FabricDraft(spec, plan, of_nics | of_switches)
    nodes = {name: _add_node(draft, name, given, found, configs.get(name)) for name, given in wiring.nodes.items()}
    check_tor_names(draft.nodes, "lacp.tor_system_ids", spec.lacp.tor_system_ids)
    check_tor_names(draft.nodes, "stack.tor_versions", spec.stack.tor_versions)
    by_first = {cabling.first_end(nic): nic for nic in cabling.nics}
    networks = _rail_networks(cabling)
    for cable in cabling.cables:
        if cable.lower in by_first:
            nic = by_first[cable.lower]
            own = hosts[nic.host].options.get(nic.lag) if nic.host in hosts else None
            _add_nic(draft, nic, nodes, found, networks, None if own is None else own.bonding)
        elif nodes[cable.lower[0]].is_switch:
            _add_switch_link(draft, cable, nodes, _addresses(cable, configs))
    for stack in wiring.stacks:
        ends = {stack.primary, stack.secondary}
        peer = next(cable.name for cable in cabling.cables if {cable.lower[0], cable.upper[0]} == ends)
        draft.add_stack(stack.primary, stack.secondary, peer)
    return draft.made(found.planes, rails_meet=found.rails_meet, core_ports=ARCHITECTURE.core_ports)


def _wiring(spec: FabricSpec) -> WiringSpec:
    """Return the wiring with the NICs that hosts' own configurations have."""
    wiring = with_nics(spec)
    if wiring is None:
        raise ValueError(f"{spec.name} has no wiring")
    return wiring


def _add_node(draft: FabricDraft, name: str, given: WiredNode, found: Structure, config: SwitchConfig | None) -> Node:
    node = Node(
        name,
        Role(given.role),
        pod=found.pods.get(name, 0),
        index=found.indexes[name],
        segment=found.segments.get(name),
        rail=found.rails_of.get(name),
        plane=found.planes_of.get(name),
        spare=given.spare,
        router_id=given.router_id or (config.router_id if config else None),
        asn=given.asn or (config.asn if config else None),
    )
    if node.role is Role.HOST:
        return draft.add_host(node)
    if node.role is Role.TOR:
        lacp = draft.spec.lacp
        system = given.system_id or lacp.tor_system_ids.get(name, lacp.system_id)
        node = replace(node, lacp_system=system)
    return draft.add_switch(node)


def _add_nic(
    draft: FabricDraft,
    nic: HostNic,
    nodes: Mapping[str, Node],
    found: Structure,
    networks: Mapping[int, str],
    bonding: Bonding | None,
) -> None:
    host = nodes[nic.host]
    made = replace(unnumbered(f"{nic.host}.r{nic.rail}", nic.host, nic.rail, nic.lag), bonding=bonding)
    if nic.given.ip is not None:
        given = IPv4Interface(nic.given.ip)
        made = replace(
            made,
            ip=str(given.ip),
            prefix_len=given.network.prefixlen,
            gateway=nic.given.gateway or str(given.network.broadcast_address - 1),
            rail_network=networks[nic.rail],
        )
    cables = [
        Cable(cable.lower[1], nodes[cable.upper[0]], cable.upper[1], _rate(draft.spec, cable, Role.HOST), cable.name)
        for cable in nic.cables
    ]
    draft.add_nic(made, host, found.blocks[host.pod, host.segment or 0], cables)


def _add_switch_link(draft: FabricDraft, cable: WiredCable, nodes: Mapping[str, Node], pair: LinkAddresses) -> None:
    lower, upper = nodes[cable.lower[0]], nodes[cable.upper[0]]
    kind = LinkKind.CORE if upper.role is Role.CORE else LinkKind.FABRIC
    if lower.role is upper.role:
        kind = LinkKind.PEER if {lower.name, upper.name} in _stacked(draft.spec) else LinkKind.MESH
    rate_bps = _rate(draft.spec, cable, upper.role)
    ports = cable.lower[1], cable.upper[1]
    draft.add_switch_link(kind, (lower, upper), ports, rate_bps, cable.name, pair, cable.link.mtu)


def _stacked(spec: FabricSpec) -> list[set[str]]:
    """Return the two ToRs of each stack."""
    return [] if spec.wiring is None else [{stack.primary, stack.secondary} for stack in spec.wiring.stacks]


def _addresses(cable: WiredCable, configs: Mapping[str, SwitchConfig]) -> LinkAddresses:
    """Return a link's addresses, the lower end's first: the file's, else those of both configurations.

    Where both speak BGP unnumbered there is none. None: hpn numbers the link.
    """
    given = cable.link.addresses
    if given is not None:
        return (given[1], given[0]) if cable.turned else (given[0], given[1])
    ends = [(configs.get(node), port) for node, port in (cable.lower, cable.upper)]
    low, high = (None if config is None else config.addresses.get(port) for config, port in ends)
    if low is not None and high is not None:
        return low, high
    without = all(config is not None and port in config.interfaces for config, port in ends)
    return (None, None) if without else None


def _nic_networks(cabling: Cabling) -> set[IPv4Network]:
    """Return the networks of NICs that have addresses by the file."""
    return {IPv4Interface(nic.given.ip).network for nic in cabling.nics if nic.given.ip is not None}


def _switch_networks(cabling: Cabling, configs: Mapping[str, SwitchConfig]) -> set[IPv4Network]:
    """Return the networks of links between switches, and of loopbacks, that have addresses by the file."""
    given = [each for cable in cabling.cables for each in _addresses(cable, configs) or ()]
    given += [config.addresses.get("lo") for config in configs.values()]
    return {IPv4Interface(each).network for each in given if each is not None}


def _rate(spec: FabricSpec, cable: WiredCable, role: Role) -> int:
    """Return the emulated rate of a link: the file's, else that of its tier, which ``role`` tells."""
    usual = {Role.HOST: spec.nic_port_rate, Role.CORE: spec.core_rate}.get(role, spec.uplink_rate)
    return scaled(usual if cable.link.rate is None else cable.link.rate, spec)


def _rail_networks(cabling: Cabling) -> dict[int, str]:
    """Return for each rail with addresses of its own the network that holds them all, larger than each subnet."""
    subnets: dict[int, set[IPv4Network]] = defaultdict(set)
    for nic in cabling.nics:
        if nic.given.ip is not None:
            subnets[nic.rail].add(IPv4Interface(nic.given.ip).network)
    return {rail: str(_around(each)) for rail, each in subnets.items()}


def _around(subnets: set[IPv4Network]) -> IPv4Network:
    whole = min(subnets).supernet()
    while not all(each.subnet_of(whole) for each in subnets):
        whole = whole.supernet()
    return whole


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    """Yield what is wrong with the wiring; rails and planes are compared once it has no other problem."""
    if spec.wiring is None:
        yield ("architecture",), "architecture wired needs a wiring; hpn topology export tiny writes an example"
        return
    problems = [*_configs(spec), *host_problems(spec, spec.wiring)]
    if problems:
        yield from problems
        return
    wiring = _wiring(spec)
    problems = list(wiring_problems(wiring))
    asns = given_asns(spec.wiring)
    if asns and not spec.bgp.valleys:
        first = next(iter(asns))
        text = f"{first} has an ASN of its own, and per-tier ASNs are hpn's; write bgp: {{asn: per-switch}}"
        problems.append((("wiring", "nodes", first, "asn"), text))
    yield from problems
    if not problems:
        yield from _meshed(spec, wiring)
        yield from _planes_and_rails(wiring)


def _meshed(spec: FabricSpec, wiring: WiringSpec) -> Iterator[Problem]:
    """Yield links between ToRs outside a stack where ToRs of one ASN would refuse each other's routes."""
    for number, link in enumerate(() if spec.bgp.valleys else wiring.links):
        names = [end_of(end)[0] for end in link.ends]
        if all(wiring.nodes[name].role == "tor" for name in names) and set(names) not in _stacked(spec):
            text = f"{names[0]} and {names[1]} are ToRs of one ASN, and would refuse each other's routes"
            way_out = "write bgp: {asn: per-switch}, add them to stacks, or leave the link out"
            yield ("wiring", "links", number, "ends"), f"{text}; {way_out}"


def _configs(spec: FabricSpec) -> Iterator[Problem]:
    """Yield configurations that hpn cannot run: of another kind, not read from their file, or beside per-tier ASNs."""
    nodes = {} if spec.wiring is None else spec.wiring.nodes
    for name, node in nodes.items():
        if node.config is None:
            continue
        where = ("wiring", "nodes", name, "config")
        if isinstance(node.config, str):
            yield where, f"{shorten(node.config)} is read from a topology file only; write {{file: ..., text: ...}}"
        elif node.role == "host":
            if format_of(node.config) is None:
                text = f"hpn reads no {shorten(PurePath(node.config.file).name)} of a host"
                yield where, f"{text}; write interfaces, a netplan .yaml, or a folder with *.netdev and *.network"
        elif kind_of(node.config.file) is None:
            name = shorten(PurePath(node.config.file).name)
            yield where, f"hpn runs no {name}; write a path to one of {', '.join(KINDS)}, or to leaf1-frr.conf"
        elif not spec.bgp.valleys:
            yield where, f"{name} has a configuration of its own; write bgp: {{asn: per-switch}}"


def _planes_and_rails(wiring: WiringSpec) -> Iterator[Problem]:
    cabling = cabling_of(wiring)
    found = structure_of(wiring, cabling)
    for nic in cabling.nics if found.planes > 1 else ():
        planes = [found.planes_of[tor] for tor in nic.tors]
        in_turn = [port % found.planes for port in range(max(found.planes, len(planes)))]
        if planes != in_turn or len(planes) % found.planes:
            where = ("wiring", "nodes", nic.host, *(("nics", nic.lag) if wiring.nodes[nic.host].nics else ()))
            there, wanted = (", ".join(map(str, each)) for each in (planes, range(found.planes)))
            yield where, f"the ports of {nic.lag} lead to planes {there}; a NIC has as many for each, in turn: {wanted}"
    given = [nic.given.ip is not None for nic in cabling.nics]
    if any(given) and not all(given):
        bare = cabling.nics[given.index(False)]
        yield ("wiring", "nodes", bare.host), f"{bare.lag} of {bare.host} has no ip and others have; write it too"
        return
    networks = sorted((IPv4Network(each), rail) for rail, each in _rail_networks(cabling).items())
    for (one, rail), (other, next_rail) in pairwise(networks):
        if one.overlaps(other):
            text = f"addresses of rail {rail} ({one}) and of rail {next_rail} ({other}) overlap"
            yield ("wiring", "nodes"), f"{text}: a host could not tell them apart; give each rail a network of its own"


ARCHITECTURE = Architecture(
    WIRED,
    "your own network, node by node and link by link, under wiring: (docs/your-network.md)",
    dict.fromkeys(
        (
            "pods",
            "segments",
            "hosts",
            "spare_hosts",
            "rails",
            "planes",
            "nic_ports",
            "aggs",
            "uplinks",
            "cores",
            "core_groups",
        ),
        _COUNTED,
    ),
    _build,
    _contradictions,
    cores=False,
    core_ports="hash",
)
