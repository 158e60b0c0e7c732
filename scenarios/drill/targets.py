"""Valid targets of a fault: a rule per kind of target, and the message for an invalid one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches

from hpn.failover.faults import Fault, TargetKind, settled
from hpn.failover.faults.area import ALL, planes
from hpn.scenarios.drill.spares import no_spare
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, LinkKind, Role

_NODES = {Role.HOST: "a host", Role.TOR: "a ToR", Role.AGG: "an Agg", Role.CORE: "a Core"}
_LINKS = {LinkKind.ACCESS: "a NIC-ToR link", LinkKind.FABRIC: "a link between two switches"}


def _links(fabric: Fabric, *kinds: LinkKind) -> tuple[str, ...]:
    return tuple(link.name for link in fabric.links if link.kind in kinds)


def _nodes(fabric: Fabric, role: Role) -> tuple[str, ...]:
    return tuple(node.name for node in fabric.nodes if node.role is role)


_TARGETS: Mapping[TargetKind, Callable[[Fabric], tuple[str, ...]]] = {
    TargetKind.LINK: lambda fabric: _links(fabric, *LinkKind),
    TargetKind.ACCESS_LINK: lambda fabric: _links(fabric, LinkKind.ACCESS),
    TargetKind.UPLINK: lambda fabric: tuple(link.name for link in fabric.links if link.is_routed),
    TargetKind.NIC: lambda fabric: tuple(nic.name for nic in fabric.nics),
    TargetKind.NIC_OR_PORT: lambda fabric: (
        *(nic.name for nic in fabric.nics),
        *_links(fabric, LinkKind.ACCESS),
    ),
    TargetKind.HOST: lambda fabric: _nodes(fabric, Role.HOST),
    TargetKind.TOR: lambda fabric: _nodes(fabric, Role.TOR),
    TargetKind.AGG: lambda fabric: _nodes(fabric, Role.AGG),
    TargetKind.CORE: lambda fabric: _nodes(fabric, Role.CORE),
    TargetKind.PLANE: planes,
    TargetKind.AREA: lambda fabric: (
        *(ALL, *planes(fabric)),
        *_nodes(fabric, Role.TOR),
        *_nodes(fabric, Role.HOST),
    ),
}
"""Parts of the fabric that a fault with that kind of target accepts."""


def accepted(fabric: Fabric, kind: TargetKind) -> tuple[str, ...]:
    """Return every part of the fabric that a fault with that kind of target accepts, by name."""
    return _TARGETS[kind](fabric)


def target_problem(fabric: Fabric, fault: Fault) -> str:
    """Return why ``fault`` cannot act on its target in ``fabric``, with the solution, or ''."""
    target, needed = fault.target, fault.TARGET
    known = accepted(fabric, needed)
    if target in known:
        if not fault.links_hit(fabric):
            return f"{target} has no link that {fault.KIND} would hit; choose another"
        return no_spare(fabric, target) if fault.REPLACES_HOST else ""
    if not known:
        return f"this fabric has no {needed}, which {fault.KIND} needs; choose another fault or topology"
    what = _what(fabric, target)
    if not what:
        near = get_close_matches(target, known, n=3) or known[:3]
        return f"no {needed} {target!r} in this fabric; did you mean {', '.join(near)}?"
    return f"{target} is {what}, but {fault.KIND} needs {_a(needed)}; write {_instead(fabric, target, known)}"


def settling_problem(fabric: Fabric, fault: Fault) -> str:
    """Return the problem of a fault on its fabric, or ''."""
    try:
        settled(fault, fabric)
    except InputError as error:
        return str(error)
    return ""


def _what(fabric: Fabric, target: str) -> str:
    """Return the kind of a named part, such as 'a ToR', or '' for an unknown name."""
    if target in fabric.node_by_name:
        return _NODES[fabric.node(target).role]
    if target in fabric.link_by_name:
        return _LINKS.get(fabric.link(target).kind, "a link between two switches")
    if target in fabric.nic_by_name:
        return "a NIC"
    return "a plane" if target in planes(fabric) else "all access links" if target == ALL else ""


def _a(kind: TargetKind) -> str:
    return f"an {kind}" if kind is TargetKind.AGG else f"a {kind}"


def _instead(fabric: Fabric, target: str, known: tuple[str, ...]) -> str:
    own = [name for name in _relatives(fabric, target) if name in known]
    if not own:
        return f"one such as {', '.join(known[:3])}"
    more = ", ..." if len(own) > 2 else ""
    return f"one of its: {', '.join(own[:2])}{more}"


def _relatives(fabric: Fabric, target: str) -> Iterable[str]:
    """Yield the names of parts attached to a target, or to which it is attached."""
    if target in fabric.node_by_name:
        yield from (nic.name for nic in fabric.nics_of(target))
        yield from (link.name for link in fabric.links_of(target))
    elif target in fabric.link_by_name:
        link = fabric.link(target)
        yield from (fabric.nic_of_link(target).name,) if link.kind is LinkKind.ACCESS else ()
        yield from (link.lower.node, link.upper.node)
    elif target in fabric.nic_by_name:
        nic = fabric.nic(target)
        yield from (nic.host, *(link.name for link in nic.links), *(link.upper.node for link in nic.links))
