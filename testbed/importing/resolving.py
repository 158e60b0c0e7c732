"""A network as found in files becomes a wiring: options applied, roles settled, names that Linux can have. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.wired.wiring_spec import NODE_NAME, RoleName, WiredLink, WiredNode, WiredStack, WiringSpec
from hpn.testbed.files.document import shorten
from hpn.testbed.importing.addresses import link_addresses
from hpn.testbed.importing.found import Cable, End, Found, FoundNode, Left, Place
from hpn.testbed.importing.importer import Imported, Renamed
from hpn.testbed.importing.mistakes import ImportMistakes
from hpn.testbed.importing.nics import HostPort, nics_of
from hpn.testbed.importing.portnames import PortNames
from hpn.testbed.importing.rolewords import role_of
from hpn.testbed.importing.wishes import Wishes

_RATE_MAX = 10**15
_TIER = {"host": 0, "tor": 1, "agg": 2, "core": 3}


def imported(found: Found, wishes: Wishes) -> Imported:
    """Return the wiring of a network. InputError, with file:line, for everything that hpn cannot have."""
    _check_patterns(found, wishes)
    mistakes = ImportMistakes()
    kept, left = _without(found, wishes)
    _check_cables(kept, mistakes)
    mistakes.check()
    kept, unconnected = _connected(kept)
    nodes = _with_roles(kept, wishes, mistakes)
    mistakes.check()
    _check_tiers(nodes, kept.cables, mistakes)
    names = PortNames()
    addresses = link_addresses(kept.cables, {name: node.role for name, node in nodes.items()})
    links = list(_links(nodes, kept.cables, names, addresses.by_cable, mistakes))
    wired = _wired(nodes, _host_ports(nodes, kept.cables, names), wishes, mistakes)
    mistakes.check()
    wired, unnumbered = _all_or_none(wired)
    wiring = WiringSpec(nodes=wired, links=links, stacks=list(_stacks(kept.cables)))
    return Imported(
        wiring,
        (*kept.left, *left, *unconnected, *addresses.left, *unnumbered),
        tuple(_renamed(kept.cables, names)),
        kept.notes,
        kept.name,
    )


def _check_patterns(found: Found, wishes: Wishes) -> None:
    """Raise InputError for patterns that match nothing: one that is mistyped must not pass in silence."""
    ends = [end for cable in found.cables for end in cable.ends]
    problems = []
    for pattern in wishes.leave:
        one = Wishes(leave=(pattern,))
        if not any(one.leaves_node(node.name) for node in found.nodes) and not any(
            one.leaves_port(e.label) for e in ends
        ):
            problems.append(f"--leave {shorten(pattern)} matches no node and no 'node:port'; check the pattern")
    for wish in wishes.roles:
        if not any(Wishes(roles=(wish,)).role(node.name) for node in found.nodes):
            problems.append(f"--role {shorten(wish.pattern)}={wish.role} matches no node; check the pattern")
    if problems:
        raise InputError(problems)


def _without(found: Found, wishes: Wishes) -> tuple[Found, tuple[Left, ...]]:
    """Return the network without what the options leave out, and a line for it."""
    gone = {node.name for node in found.nodes if wishes.leaves_node(node.name)}
    cables: list[Cable] = []
    cut: list[Cable] = []
    for cable in found.cables:
        leaves = any(end.node in gone or wishes.leaves_port(end.label) for end in cable.ends)
        (cut if leaves else cables).append(cable)
    nodes = tuple(node for node in found.nodes if node.name not in gone)
    left = []
    if gone:
        left.append(Left("nodes", "--leave", tuple(node.name for node in found.nodes if node.name in gone)))
    if cut:
        left.append(Left("cables", "--leave", tuple(cable.shown for cable in cut)))
    return replace(found, nodes=nodes, cables=tuple(cables)), tuple(left)


def _check_cables(found: Found, mistakes: ImportMistakes) -> None:
    places: dict[str, Place] = {}
    _check_names(found, mistakes)
    known = {node.name for node in found.nodes}
    for cable in found.cables:
        if cable.ends[0].node == cable.ends[1].node:
            mistakes.add(cable.place, f"{cable.shown} has both ends at one node; correct one, or --leave its port")
        for end in cable.ends:
            if end.node not in known:
                hint = _near(end.node, known) if mistakes.has_room else "correct the name"
                mistakes.add(cable.place, f"{end.shown}: there is no node {shorten(end.node)}; {hint}")
            first = places.setdefault(end.label, cable.place)
            if first is not cable.place:
                mistakes.add(cable.place, f"port {end.shown} has a cable already ({first}); correct one of them")


def _near(name: str, known: set[str]) -> str:
    near = get_close_matches(name, known, n=2, cutoff=0.5) if len(known) <= 5000 else []
    return f"did you mean {' or '.join(near)}?" if near else "add it to the nodes, or correct the name"


def _check_names(found: Found, mistakes: ImportMistakes) -> None:
    places: dict[str, Place] = {}
    for node in found.nodes:
        first = places.setdefault(node.name, node.place)
        if first is not node.place:
            mistakes.add(node.place, f"node {shorten(node.name)} is there already ({first}); give one another name")
        if not re.fullmatch(NODE_NAME, node.name, re.ASCII):
            hint = "letters, digits, '-', '_' and '.', at most 32, first a letter or digit"
            mistakes.add(
                node.place, f"{shorten(node.name, 60)} cannot be the name of a node here: {hint}; rename it there"
            )
    if not found.nodes:
        raise InputError("the files have no nodes; name a file with a network")


def _connected(found: Found) -> tuple[Found, tuple[Left, ...]]:
    """Return the network without nodes that have no cable, and a line for them. InputError if nothing is left."""
    cabled = {end.node for cable in found.cables for end in cable.ends}
    bare = tuple(node.name for node in found.nodes if node.name not in cabled)
    if not found.cables:
        raise InputError(f"{found.nodes[0].place}: no cable joins two nodes; there is nothing to build")
    left = (Left("nodes", "no cable", bare),) if bare else ()
    return replace(found, nodes=tuple(node for node in found.nodes if node.name in cabled)), left


def _with_roles(found: Found, wishes: Wishes, mistakes: ImportMistakes) -> dict[str, FoundNode]:
    """Return the nodes by name, each with a role; others are mistakes."""
    nodes = {}
    for node in found.nodes:
        role = wishes.role(node.name) or node.role
        if role is None:
            _add_without_role(node, mistakes)
        nodes[node.name] = replace(node, role=role)
    return nodes


def _add_without_role(node: FoundNode, mistakes: ImportMistakes) -> None:
    stem = node.name.rstrip("0123456789") or node.name
    about = f" ({node.kind})" if node.kind else ""
    ways = f"--role '{stem}*={role_of(stem.strip('-_.')) or 'tor'}', or leave it out: --leave '{stem}*'"
    mistakes.add_for(node.name, node.place, "node", f"no role{about}; say which (host, tor, agg, core): {ways}")


def _check_tiers(nodes: Mapping[str, FoundNode], cables: Sequence[Cable], mistakes: ImportMistakes) -> None:
    """Add cables that skip a tier. Where nothing is above the ToRs, these are a direct network's, joined by links."""
    is_direct = {node.role for node in nodes.values()} <= {"host", "tor"}
    for cable in cables:
        roles = [_role(nodes[end.node]) for end in cable.ends]
        is_primary = cable.primary in {end.node for end in cable.ends}
        if roles == ["tor", "tor"] and (is_primary or (is_direct and cable.primary is None)):
            continue
        if cable.primary is not None:
            what = f"{cable.shown} is the peer link of a stack with the primary {shorten(cable.primary)}"
            mistakes.add(cable.place, f"{what}; name one of its two ends, and both must be ToRs")
        elif abs(_TIER[roles[0]] - _TIER[roles[1]]) != 1:
            what = (
                f"{cable.shown} joins {roles[0]} and {roles[1]}; cables join neighbouring tiers (host, tor, agg, core)"
            )
            mistakes.add(cable.place, f"{what}: correct a --role, or --leave {cable.ends[0].shown}")


def _role(node: FoundNode) -> RoleName:
    if node.role is None:
        raise ValueError(f"{node.name} has no role yet")
    return node.role


def _links(
    nodes: Mapping[str, FoundNode],
    cables: Sequence[Cable],
    names: PortNames,
    addresses: Mapping[int, list[str]],
    mistakes: ImportMistakes,
) -> Iterator[WiredLink]:
    for number, cable in enumerate(cables):
        is_routed = cable.primary is None and not any(nodes[end.node].role == "host" for end in cable.ends)
        ends = [f"{end.node}:{names.given(end.node, end.port, needs_digit=is_routed)}" for end in cable.ends]
        yield WiredLink(ends=ends, rate=_rate(cable, mistakes), addresses=addresses.get(number))


def _host_ports(
    nodes: Mapping[str, FoundNode], cables: Sequence[Cable], names: PortNames
) -> Mapping[str, list[HostPort]]:
    """Return the cabled ports of each host, in the order of the cables."""
    ports: dict[str, list[HostPort]] = {name: [] for name, node in nodes.items() if node.role == "host"}
    for cable in cables:
        for end, far in (cable.ends, cable.ends[::-1]):
            if end.node in ports:
                ports[end.node].append(HostPort(end, far, names.given(end.node, end.port)))
    return ports


def _wired(
    nodes: Mapping[str, FoundNode], ports: Mapping[str, list[HostPort]], wishes: Wishes, mistakes: ImportMistakes
) -> dict[str, WiredNode]:
    return {name: _node(node, ports.get(name, []), wishes, mistakes) for name, node in nodes.items()}


def _all_or_none(nodes: dict[str, WiredNode]) -> tuple[dict[str, WiredNode], tuple[Left, ...]]:
    """Return the nodes without addresses of NICs where some NICs have none, and a line for those that had one."""
    hosts = {name: node for name, node in nodes.items() if node.role == "host"}
    given = {name: [nic.ip is not None for nic in node.nics.values()] or [False] for name, node in hosts.items()}
    if all(map(all, given.values())) or not any(map(any, given.values())):
        return nodes, ()
    bare = {
        name: node.model_copy(
            update={
                "nics": {lag: nic.model_copy(update={"ip": None, "gateway": None}) for lag, nic in node.nics.items()}
            }
        )
        for name, node in hosts.items()
    }
    without = next(name for name, each in given.items() if not all(each))
    why = f"{shorten(without, quoted=False)} has none, so hpn numbers all"
    return nodes | bare, (Left("addresses of NICs", why, tuple(name for name, each in given.items() if any(each))),)


def _node(node: FoundNode, ports: Sequence[HostPort], wishes: Wishes, mistakes: ImportMistakes) -> WiredNode:
    if node.role == "host":
        return WiredNode(role="host", spare=node.spare, nics=dict(nics_of(node, ports, wishes, mistakes)))
    return WiredNode(role=_role(node), asn=node.asn, router_id=node.router_id, config=node.config)


def _rate(cable: Cable, mistakes: ImportMistakes) -> int | None:
    """Return the cable's rate, else its ports'; two speeds that differ are a mistake, and one that no port has."""
    speeds = {end.rate_bps for end in cable.ends if end.rate_bps is not None}
    if cable.rate_bps is None and len(speeds) > 1:
        both = " and ".join(f"{end.shown} {(end.rate_bps or 0) / 1e9:g}G" for end in cable.ends)
        mistakes.add(cable.place, f"the ends of a cable have different speeds, {both}; correct one")
    rate = cable.rate_bps if cable.rate_bps is not None else next(iter(speeds), None)
    if rate is None or 1 <= rate <= _RATE_MAX:
        return rate
    mistakes.add(cable.place, f"a rate of {rate:.3g} bit/s is out of range; write one from 1 bit/s to 1000T")
    return None


def _stacks(cables: Sequence[Cable]) -> Iterator[WiredStack]:
    for cable in cables:
        if cable.primary is not None:
            other = next(end.node for end in cable.ends if end.node != cable.primary)
            yield WiredStack(primary=cable.primary, secondary=other)


def _renamed(cables: Sequence[Cable], names: PortNames) -> Iterator[Renamed]:
    ends: Iterator[End] = (end for cable in cables for end in cable.ends)
    for end in ends:
        new = names.given(end.node, end.port)
        if new != end.port:
            yield Renamed(end.node, end.port, new)
