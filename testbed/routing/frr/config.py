"""FRR's configuration of one switch, generated from the fabric: pure text, no kernel.

The policy is BIRD's, explained in ``testbed.routing.bird.config``. A ToR announces upwards the routes that it
originates, an Agg those directly from a ToR. Only the lower end of a link connects, and ToRs accept their own ASN once.
With ``asn: per-switch`` all routes are announced; only a draining ToR keeps those that it has learned to itself.

FRR's delays are left at their defaults, as most users have them. It delays every change by 50 ms in bgpd's queue,
which is fixed in its source, and by 10 ms in zebra's. It delays the first UPDATE of a session by a second.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.model import Fabric, Node, Role
from hpn.testbed.routing.neighbours import Neighbour, access_subnets, neighbours

ECMP_LIMIT = 64
"""Next hops per route, as with BIRD."""

HOST_ROUTES = "redistribute kernel route-map hosts"
"""Command in a ToR's address family that announces the host routes in its kernel."""

_BGPD = """\
hostname {name}
{filters}\
router bgp {asn}
 bgp router-id {router_id}
 bgp log-neighbor-changes
 no bgp ebgp-requires-policy
 no bgp network import-check
 no bgp default ipv4-unicast
 bgp graceful-restart-disable
{relax} timers bgp {keepalive_s} {hold_s}
{sessions}\
 address-family ipv4 unicast
  maximum-paths {limit}
{routes}\
 exit-address-family
exit
"""

_RELAX = " bgp bestpath as-path multipath-relax\n"
"""Else FRR joins only paths by neighbours of one ASN."""

_ABOVE = "bgp as-path access-list upwards seq 5 permit {paths}\n"

# Kernel routes win over BGP's by their distance of 0, as they do by preference in BIRD's filter.
_HOSTS = """\
route-map hosts permit 10
 match ip address prefix-list subnets
exit
"""


def zebra(node: Node) -> str:
    """Return zebra's configuration. Plain multipath routes: next-hop objects would add nothing here."""
    return f"hostname {node.name}\nno zebra nexthop kernel enable\n"


def staticd(fabric: Fabric, node: Node) -> str:
    """Return staticd's configuration: the subnet routes, as blackholes that drop packets silently."""
    routes = "".join(f"ip route {subnet} blackhole\n" for subnet in access_subnets(fabric, node))
    return f"hostname {node.name}\n{routes}"


def bgpd(fabric: Fabric, node: Node, *, draining: bool = False) -> str:
    """Return the BGP daemon's configuration. A ``draining`` ToR announces its subnets but no host."""
    bgp = fabric.spec.bgp
    found = neighbours(fabric, node)
    return _BGPD.format(
        name=node.name,
        filters="".join(_filters(fabric, node)),
        asn=node.asn,
        router_id=node.router_id,
        keepalive_s=bgp.keepalive_s,
        hold_s=bgp.hold_s,
        sessions="".join(line for neighbour in found for line in _session(neighbour, bgp.connect_retry_s)),
        limit=ECMP_LIMIT,
        relax=_RELAX if bgp.valleys or _joins_asns(found) else "",
        routes="".join(_routes(fabric, node, found, draining)),
    )


def _joins_asns(found: tuple[Neighbour, ...]) -> bool:
    """Return True above Aggs of several ASNs: equal routes to a NIC's two ToRs may have several, and all are used."""
    return len({neighbour.asn for neighbour in found if not neighbour.above}) > 1


def _filters(fabric: Fabric, node: Node) -> Iterator[str]:
    yield _ABOVE.format(paths="^$" if node.role is Role.TOR else "^[0-9]+$")
    subnets = access_subnets(fabric, node)
    if subnets:
        for seq, subnet in enumerate(subnets, 1):
            yield f"ip prefix-list subnets seq {5 * seq} permit {subnet} ge 32\n"
        yield _HOSTS


def _session(neighbour: Neighbour, connect_retry_s: int) -> Iterator[str]:
    """Yield one session; ``solo`` is an update group of its own, because FRR otherwise sends routes back."""
    yield f" neighbor {neighbour.name} remote-as {neighbour.asn}\n"
    yield f" neighbor {neighbour.name} description {neighbour.node}\n"
    yield f" neighbor {neighbour.name} solo\n"
    yield f" neighbor {neighbour.name} timers connect {connect_retry_s}\n"
    if not neighbour.above:
        yield f" neighbor {neighbour.name} passive\n"


def _routes(fabric: Fabric, node: Node, found: tuple[Neighbour, ...], draining: bool) -> Iterator[str]:
    if access_subnets(fabric, node):
        yield "  redistribute static\n"
        yield "" if draining else f"  {HOST_ROUTES}\n"
    for neighbour in found:
        yield f"  neighbor {neighbour.name} activate\n"
        if draining or (neighbour.above and not fabric.spec.bgp.valleys):
            yield f"  {filter_of(neighbour)}\n"
        if node.role is Role.TOR and not fabric.spec.bgp.valleys:
            yield f"  neighbor {neighbour.name} allowas-in 1\n"


def filter_of(neighbour: Neighbour) -> str:
    """Return the command that lets only routes with the paths of ``_ABOVE`` through to a neighbour."""
    return f"neighbor {neighbour.name} filter-list upwards out"


def drain_commands(fabric: Fabric, node: Node, *, draining: bool) -> tuple[str, ...]:
    """Return the commands in a ToR's address family that make it drain, or announce again."""
    learned = tuple(map(filter_of, neighbours(fabric, node))) if fabric.spec.bgp.valleys else ()
    if draining:
        return (f"no {HOST_ROUTES.partition(' route-map')[0]}", *learned)
    return (HOST_ROUTES, *(f"no {each}" for each in learned))
