"""Kernel settings of a switch's namespace: forwarding, ECMP hash and seed, ARP. Pure lists of sysctls.

Paths are relative to /proc/sys, with slashes, because interface names may contain dots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric, LinkKind, Node, Role
from hpn.testbed.fabric.wired.configs import own_configs

HASH_FIELDS = 0x37
"""Source and destination address, protocol, source and destination port of the outer header."""

_NEVER_S = 86_400


@dataclass(frozen=True, slots=True)
class Sysctl:
    """One setting. Without a required one the lab would be wrong; a missing optional one is reported with ``why``."""

    path: str
    value: str
    required: bool
    why: str


def namespace_sysctls(node: Node, *, balances: bool = False) -> tuple[Sysctl, ...]:
    """Return settings of a switch's whole namespace; write them before its first interface, which inherits them.

    ``balances``: the switch chooses next hops by itself, by setting the hash that policy 1 trusts.
    """
    settings = [*_FORWARDING, *(_BALANCING if balances else _HASHING), _seed(node)]
    if node.role is Role.TOR:
        settings.extend(_PROXY_ARP)
    return tuple(settings)


def port_sysctls(fabric: Fabric, node: Node) -> tuple[Sysctl, ...]:
    """Return settings of a switch's ports that differ from those of its namespace; write them once the ports exist.

    They concern a ToR's access ports, and ports on which the switch's own configuration has BGP unnumbered.
    """
    links = fabric.links_of(node.name)
    access = [link.upper.name for link in links if link.kind is LinkKind.ACCESS and link.upper.node == node.name]
    config = own_configs(fabric).get(node.name)
    linked = {link.end_at(node.name).name for link in links if link.is_routed}
    unnumbered = [] if config is None else sorted(config.interfaces.keys() & linked)
    return (*_of_ports(access, _ACCESS_PORT), *_of_ports(unnumbered, _UNNUMBERED_PORT))


def _of_ports(ports: Iterable[str], settings: Iterable[tuple[str, str, bool, str]]) -> Iterator[Sysctl]:
    for port in ports:
        for path, value, required, why in settings:
            yield Sysctl(path.format(port=port), value, required, why)


def _seed(node: Node) -> Sysctl:
    why = "without per-switch seeds all tiers hash alike and traffic polarises (Linux 6.11 has them)"
    return Sysctl("net/ipv4/fib_multipath_hash_seed", str(node.ecmp_seed), False, why)


def _both(name: str, value: int, required: bool, why: str) -> tuple[Sysctl, Sysctl]:
    """Return a setting for 'all' and 'default': the kernel combines 'all' with the interface's, set by 'default'."""
    everywhere, later = (
        Sysctl(f"net/ipv4/conf/{scope}/{name}", str(value), required, why) for scope in ("all", "default")
    )
    return everywhere, later


# ip_forward comes first: writing it resets the per-interface settings below.
_FORWARDING = (
    Sysctl("net/ipv4/ip_forward", "1", True, "a switch forwards"),
    *_both("rp_filter", 0, True, "the way back may use another port"),
    *_both("send_redirects", 0, True, "traffic of one segment leaves through the port it came in by"),
    *_both("accept_redirects", 0, True, "only BGP decides"),
    Sysctl(
        "net/ipv4/conf/default/ignore_routes_with_linkdown",
        "1",
        True,
        "next hops without carrier would go on receiving",
    ),
    *_both("arp_evict_nocarrier", 1, False, "a neighbour behind a dead link must be learned again"),
    Sysctl("net/ipv6/conf/all/disable_ipv6", "1", False, "address detection and router solicitations are noise"),
    Sysctl("net/ipv6/conf/default/disable_ipv6", "1", False, "address detection and router solicitations are noise"),
)

# Policy 1 would trust a socket's own random hash, which travels through veth with the packet (FACTS trap 1).
_HASHING = (
    Sysctl("net/ipv4/fib_multipath_hash_policy", "3", True, "paths could not be traced"),
    Sysctl("net/ipv4/fib_multipath_hash_fields", str(HASH_FIELDS), True, "paths could not be traced"),
)

_BALANCING = (Sysctl("net/ipv4/fib_multipath_hash_policy", "1", True, "the switch's own choice would be overlooked"),)

# Interfaces are routed ports: a ToR answers for every address it has a route to, even on the same port (pvlan).
_PROXY_ARP = (
    Sysctl("net/ipv4/conf/default/proxy_arp", "1", True, "hosts of a segment reach each other by the ToR's proxy ARP"),
    Sysctl("net/ipv4/conf/default/proxy_arp_pvlan", "1", True, "the ToR answers also for hosts behind the asking port"),
    Sysctl("net/ipv4/conf/default/arp_accept", "1", True, "a host announces itself with gratuitous ARP"),
)

_ACCESS_PORT = (
    (
        # Otherwise the kernel flags the routes of a port without carrier as dead, and BIRD 2.0 overlooks the removal of
        # a dead route: it would still announce the host until its next scan.
        "net/ipv4/conf/{port}/ignore_routes_with_linkdown",
        "0",
        True,
        "host routes would be withdrawn only at BIRD's next scan",
    ),
    (
        "net/ipv4/neigh/{port}/proxy_delay",
        "0",
        False,
        "the first packet between hosts of a segment waits up to 0.8 s for proxy ARP",
    ),
    (
        "net/ipv4/neigh/{port}/gc_stale_time",
        str(_NEVER_S),
        False,
        "idle hosts may lose their host route after 60 s",
    ),
)

# A router takes no default route from the advertisements by which FRR finds its neighbours.
_UNNUMBERED_PORT = (
    ("net/ipv6/conf/{port}/forwarding", "1", True, "BGP unnumbered needs IPv6"),
    ("net/ipv6/conf/{port}/disable_ipv6", "0", True, "BGP unnumbered needs link-local addresses"),
)
