"""Problems of a wiring: what no lab can be, or what hpn does not guess. Each with the place and the way out. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address

from hpn.testbed.fabric.addresses import interface_in
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.wired.cables import TIERS, End, end_of
from hpn.testbed.fabric.wired.wiring_spec import PORT_NAME, WiredNode, WiringSpec
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.document import shorten

_PORT = re.compile(PORT_NAME)
_LAG_LENGTH = 14
_OF_KERNEL = {
    "lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0", "bonding_masters",
}  # fmt: skip
"""Interfaces that the kernel makes in every network namespace."""
_RESERVED = re.compile(r"plane\d+|all|.*\.r\d+")
"""Names that hpn gives: planes, all, NICs."""
_JOINS = {("host", "tor"), ("tor", "tor"), ("tor", "agg"), ("agg", "core")}
_SWITCHES = ("tor", "agg", "core")
_ROLES_OF = {
    "segment": ("host", "tor"), "spare": ("host",), "nics": ("host",), "system_id": ("tor",), "rail": ("tor", "agg"),
    "pod": ("host", "tor", "agg"), "plane": _SWITCHES, "asn": _SWITCHES, "router_id": _SWITCHES,
}  # fmt: skip
"""Keys of a node that not all roles have."""


def wiring_problems(wiring: WiringSpec) -> Iterator[Problem]:
    """Yield every problem. The checks of NICs and structure begin once every link has two proper ends."""
    ends = list(_ends(wiring))
    nodes = list(_nodes(wiring))
    yield from (*nodes, *ends)
    if not ends and not nodes:
        yield from _joined(wiring)
        yield from _nics(wiring)
        yield from _numbers(wiring)
        yield from _addresses(wiring)


def _nodes(wiring: WiringSpec) -> Iterator[Problem]:
    for name, node in wiring.nodes.items():
        if _RESERVED.fullmatch(name):
            yield ("wiring", "nodes", name), f"a node cannot be called {name}: hpn has that name; write another"
        for key, roles in _ROLES_OF.items():
            if node.role not in roles and getattr(node, key) != WiredNode.model_fields[key].get_default(
                call_default_factory=True
            ):
                text = f"{key} of {name} means nothing for {_a(node.role)}; leave it out"
                yield ("wiring", "nodes", name, key), text
    if not any(node.role == "host" for node in wiring.nodes.values()):
        yield ("wiring", "nodes"), "no node has the role host, so nothing can send; add two hosts"


def _ends(wiring: WiringSpec) -> Iterator[Problem]:
    seen: dict[End, int] = {}
    names: dict[str, int] = {}
    for number, link in enumerate(wiring.links):
        where = ("wiring", "links", number)
        for text in link.ends:
            node, port = end_of(text)
            problem = _end_problem(wiring, text, node, port)
            if problem:
                yield (*where, "ends"), problem
            elif (other := seen.setdefault((node, port), number)) != number or link.ends[0] == link.ends[1]:
                yield (*where, "ends"), f"{text} has a cable already, links[{other}]; a port has one"
        if link.name is not None and (other := names.setdefault(link.name, number)) != number:
            yield (*where, "name"), f"links[{other}] is called {link.name} too; write another name"


def _end_problem(wiring: WiringSpec, text: str, node: str, port: str) -> str:
    if not port:
        return f"{shorten(text)} has no port; write 'node:port', such as leaf1:Ethernet0"
    if node not in wiring.nodes:
        return f"there is no node {shorten(node)}; {did_you_mean(node, wiring.nodes, 'nodes are')}"
    if not _PORT.fullmatch(port):
        text = "an interface of Linux has at most 15 characters: letters, digits, '.', '-', '_'; write a shorter name"
        return f"{shorten(port)} of {node} cannot be: {text}"
    return f"{port} of {node} is an interface of the kernel's own; write another name" if port in _OF_KERNEL else ""


def _joined(wiring: WiringSpec) -> Iterator[Problem]:
    stacked = {frozenset((stack.primary, stack.secondary)) for stack in wiring.stacks}
    peers: Counter[frozenset[str]] = Counter()
    for number, link in enumerate(wiring.links):
        names = [end_of(end)[0] for end in link.ends]
        lower, upper = sorted((wiring.nodes[name].role for name in names), key=TIERS.__getitem__)
        if frozenset(names) in stacked:
            peers[frozenset(names)] += 1
        elif (lower, upper) not in _JOINS:
            yield ("wiring", "links", number, "ends"), _no_join(lower, upper, names)
        elif lower != "host":
            for node, port in map(end_of, link.ends):
                if not any(map(str.isdigit, port)):
                    text = f"{port} of {node} has no digit: BIRD may read it as a word of its language"
                    yield ("wiring", "links", number, "ends"), f"{text}; write {port}0"
        if link.addresses is not None and lower == "host":
            yield (
                ("wiring", "links", number, "addresses"),
                "a host's address is its NIC's; write nics: {bond0: {ip: …}}",
            )
        if link.mtu is not None and lower == "host":
            yield ("wiring", "links", number, "mtu"), "ports of a LAG have the topology's mtu; leave it out here"
    for number, stack in enumerate(wiring.stacks):
        for key in ("primary", "secondary"):
            name = getattr(stack, key)
            if name not in wiring.nodes or wiring.nodes[name].role != "tor":
                yield ("wiring", "stacks", number, key), f"{shorten(name)} is no ToR of this wiring"
        if peers[frozenset((stack.primary, stack.secondary))] != 1:
            text = f"a stack has one link between its ToRs; {stack.primary} and {stack.secondary} have "
            yield ("wiring", "stacks", number), f"{text}{peers[frozenset((stack.primary, stack.secondary))]}"


def _a(role: str) -> str:
    return f"an {role}" if role == "agg" else f"a {role}"


def _no_join(lower: str, upper: str, names: list[str]) -> str:
    what = f"{names[0]} ({lower}) and {names[1]} ({upper})" if lower == upper else f"{_a(lower)} and {_a(upper)}"
    joins = "host and tor, two ToRs, tor and agg, agg and core"
    return f"{what} are linked: hpn joins {joins}; write other roles or leave it out"


def _nics(wiring: WiringSpec) -> Iterator[Problem]:
    cabled: dict[str, list[str]] = defaultdict(list)
    for link in wiring.links:
        for node, port in map(end_of, link.ends):
            cabled[node].append(port)
    for name, given in wiring.nodes.items():
        where = ("wiring", "nodes", name)
        ports = cabled[name]
        if not ports:
            yield where, f"{name} has no link; add one, or leave the node out"
        elif given.role == "host":
            yield from _host_nics(where, name, given, ports)


def _host_nics(where: tuple[str, ...], name: str, node: WiredNode, ports: list[str]) -> Iterator[Problem]:
    if not node.nics:
        if len(ports) > 1:
            both = ", ".join(ports[:2])
            text = f"{name} has {len(ports)} links, and nothing says which are one NIC; write nics: {{bond0: {{ports:"
            yield where, f"{text} [{both}]}}}}, or a NIC for each"
        return
    taken: Counter[str] = Counter(port for nic in node.nics.values() for port in nic.ports)
    rails: Counter[int] = Counter()
    for number, (lag, nic) in enumerate(node.nics.items()):
        at = (*where, "nics", lag)
        rails[number if nic.rail is None else nic.rail] += 1
        if not _PORT.fullmatch(lag) or len(lag) > _LAG_LENGTH or lag in {*ports, *_OF_KERNEL}:
            yield at, f"a LAG cannot be called {shorten(lag)}: at most 14 letters and digits, and no port's name"
        for port in nic.ports:
            if port not in ports:
                yield (*at, "ports"), f"{port} of {name} has no link; {did_you_mean(port, ports, 'its ports are')}"
            elif taken[port] > 1:
                yield (*at, "ports"), f"{port} of {name} is in two NICs; a port belongs to one"
    for port in ports:
        if port not in taken:
            yield (*where, "nics"), f"{port} of {name} is in no NIC; add one for it, or leave its link out"
    for rail, many in rails.items():
        if many > 1:
            yield (*where, "nics"), f"{many} NICs of {name} are of rail {rail}; give each a rail of its own"


def _numbers(wiring: WiringSpec) -> Iterator[Problem]:
    hosts = [node.segment for node in wiring.nodes.values() if node.role == "host"]
    switches = {name: node.plane for name, node in wiring.nodes.items() if node.role != "host"}
    for key, given in (("segment", hosts), ("plane", list(switches.values()))):
        if any(each is not None for each in given) and None in given:
            of = "hosts" if key == "segment" else "switches"
            yield ("wiring", "nodes"), f"some {of} have a {key} and some have none; write it for all of them or none"
    for number, link in enumerate(wiring.links):
        planes = [switches[node] for node, _ in map(end_of, link.ends) if node in switches]
        if len(set(planes)) > 1:
            text = f"links plane {planes[0]} with plane {planes[1]}, which share nothing; write one plane"
            yield ("wiring", "links", number, "ends"), text
    yield from _twice(wiring)


def _twice(wiring: WiringSpec) -> Iterator[Problem]:
    """Yield router IDs given twice, and indexes given twice among the hosts of a segment."""
    routers: dict[str, str] = {}
    for name, node in wiring.nodes.items():
        if node.router_id is not None:
            if not _is_ip(node.router_id):
                yield ("wiring", "nodes", name, "router_id"), f"{shorten(node.router_id)} is no IPv4 address"
            elif (other := routers.setdefault(node.router_id, name)) != name:
                yield (
                    ("wiring", "nodes", name, "router_id"),
                    f"{other} has router ID {node.router_id} too; write another",
                )


def _addresses(wiring: WiringSpec) -> Iterator[Problem]:
    taken: dict[IPv4Address, str] = {}
    for number, link in enumerate(wiring.links):
        if link.addresses is not None:
            yield from _link_addresses(("wiring", "links", number, "addresses"), link.addresses, taken)
    for name, node in wiring.nodes.items():
        for lag, nic in node.nics.items():
            where = ("wiring", "nodes", name, "nics", lag)
            if nic.gateway is not None and nic.ip is None:
                yield (*where, "gateway"), "a gateway needs the ip of its NIC; write both, or neither"
            if nic.ip is None:
                continue
            found = interface_in(nic.ip)
            if found is None or found.network.prefixlen > 30:
                yield (*where, "ip"), f"{shorten(nic.ip)} is no address with a prefix length up to 30, as 10.0.0.1/24"
                continue
            gateway = nic.gateway or str(found.network.broadcast_address - 1)
            if not _is_ip(gateway) or IPv4Address(gateway) not in found.network or gateway == str(found.ip):
                yield (*where, "gateway"), f"{gateway} is no other address of {found.network}; write one"
            if (other := taken.setdefault(found.ip, name)) != name:
                yield (*where, "ip"), f"{other} has {found.ip} too; write another"


def _link_addresses(where: tuple[str | int, ...], given: list[str], taken: dict[IPv4Address, str]) -> Iterator[Problem]:
    found = [interface_in(each) for each in given]
    one, other = found
    if one is None or other is None or one.network != other.network or one.ip == other.ip:
        yield (
            where,
            f"{' and '.join(map(shorten, given))} are no two addresses of one subnet, as 10.0.0.0/31, 10.0.0.1/31",
        )
        return
    for each in (one, other):
        if (there := taken.setdefault(each.ip, str(where[2]))) != str(where[2]):
            yield where, f"{each.ip} is on links[{there}] too; write another"


def _is_ip(text: str) -> bool:
    return interface_in(text) is not None and "/" not in text


def given_asns(wiring: WiringSpec) -> Mapping[str, int]:
    """Return the ASNs that the file gives, by switch."""
    return {name: node.asn for name, node in wiring.nodes.items() if node.asn is not None}
