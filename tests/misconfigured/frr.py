"""The frr.conf of one switch of a drawn network, as somebody would write it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.misconfigured.drawn import Drawn

_BFD = """\
bfd
 profile fast
  detect-multiplier 3
  receive-interval 100
  transmit-interval 100
 exit
exit
!
"""


def config(net: Drawn, name: str) -> str:
    """The whole file."""
    defaults = "traditional" if net.style.traditional else "datacenter"
    head = f"frr version 8.4\nfrr defaults {defaults}\nhostname {name}\nservice integrated-vtysh-config\n!\n"
    interfaces = "".join(f"interface {port}\n ip address {ip}/31\nexit\n!\n" for port, ip, *_ in net.sessions(name))
    parts = [_BFD if net.style.bfd else "", "".join(_filters(net)), "".join(_router(net, name))]
    return head + "".join([*parts, interfaces] if net.style.interfaces_last else [interfaces, *parts])


ORIGIN = "redistribute kernel route-map IGP"
"""BIRD's routes have origin IGP, redistributed ones of FRR 'incomplete': else spines would take BIRD's alone."""


def _filters(net: Drawn) -> Iterator[str]:
    if "bird" in net.daemons.values():
        yield "route-map IGP permit 10\n set origin igp\nexit\n!\n"
    if net.style.filters == "none":
        return
    yield f"ip prefix-list HOSTS seq 10 permit {net.pool}.0.0.0/8 ge 32\n"
    yield "ip prefix-list HOSTS seq 20 deny any\n!\n"
    if net.style.filters == "route-map":
        yield "route-map HOSTS permit 10\n match ip address prefix-list HOSTS\nexit\n!\n"


def _router(net: Drawn, name: str) -> Iterator[str]:
    style = net.style
    yield f"router bgp {net.asns[name]}\n bgp router-id 10.255.1.{net.numbers[name]}\n"
    yield " bgp log-neighbor-changes\n no bgp ebgp-requires-policy\n"
    yield " no bgp default ipv4-unicast\n" if style.activate else ""
    yield f" bgp bestpath as-path multipath-relax\n timers bgp {style.keepalive_s} {style.hold_s}\n"
    if style.peer_groups:
        yield from _groups(net, name)
    for _, _, far, peer in net.sessions(name):
        grouped = style.peer_groups and len(_asns_beyond(net, name)) == 1
        yield f" neighbor {far} {'peer-group FABRIC' if grouped else f'remote-as {net.asns[peer]}'}\n"
        if style.peer_groups and not grouped:
            yield f" neighbor {far} peer-group FABRIC\n"
        yield f" neighbor {far} description {peer}\n"
        yield f" neighbor {far} bfd profile fast\n" if style.bfd else ""
        if not style.peer_groups:
            yield f" neighbor {far} timers connect {style.connect_s}\n"
    yield " !\n address-family ipv4 unicast\n"
    yield from _family(net, name)
    yield " exit-address-family\nexit\n!\n"


def _asns_beyond(net: Drawn, name: str) -> set[int]:
    return {net.asns[peer] for *_, peer in net.sessions(name)}


def _groups(net: Drawn, name: str) -> Iterator[str]:
    yield " neighbor FABRIC peer-group\n"
    beyond = _asns_beyond(net, name)
    if len(beyond) == 1:
        yield f" neighbor FABRIC remote-as {min(beyond)}\n"
    yield f" neighbor FABRIC timers connect {net.style.connect_s}\n"


def _family(net: Drawn, name: str) -> Iterator[str]:
    style = net.style
    if name in net.leaves:
        yield f"  {ORIGIN}\n" if "bird" in net.daemons.values() else "  redistribute kernel\n"
    yield f"  maximum-paths {style.most_paths}\n"
    whom = ["FABRIC"] if style.peer_groups else [far for _, _, far, _ in net.sessions(name)]
    for peer in whom:
        yield f"  neighbor {peer} activate\n" if style.activate else ""
        yield f"  neighbor {peer} next-hop-self\n" if style.next_hop_self else ""
        if name in net.leaves and net.scheme in {"tiers", "racks"}:
            yield f"  neighbor {peer} allowas-in 1\n"
        if style.filters == "prefix-list":
            yield f"  neighbor {peer} prefix-list HOSTS out\n"
        elif style.filters == "route-map":
            yield f"  neighbor {peer} route-map HOSTS in\n  neighbor {peer} route-map HOSTS out\n"
