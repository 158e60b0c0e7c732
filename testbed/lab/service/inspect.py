"""Data of ``hpn inspect`` and ``hpn trace`` about a running lab, as plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.model import Nic, Node, Port
from hpn.testbed.fabric.wired.wiring_spec import ConfigFile
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from hpn.testbed.kernel.rtnetlink.rtnl import RT_TABLE_MAIN
from hpn.testbed.kernel.rtnetlink.rtnl_events import RouteEvent
from hpn.testbed.lab.cabling import far_ends
from hpn.testbed.lab.expected_routes import short_routes
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.lacp_why import why_idle
from hpn.testbed.lab.service.control import JsonValue
from hpn.testbed.lab.service.manual_faults import broken
from hpn.testbed.lab.service.srv6_report import SRV6, tables_report
from hpn.testbed.lag.lacpdu import PortState
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.routing.neighbours import bfd_ends
from hpn.testbed.routing.trace import Path

CABLING = "cabling"
"""Section whose answers come over the wire, so that it is asked for by name alone."""

_KINDS = {1: "unicast", 6: "blackhole", 7: "unreachable"}


Concerns = Callable[[str], bool]
"""Filter: True if a node, by name, is selected."""


def report(lab: Lab, what: str, nodes: Collection[str] = ()) -> JsonValue:
    """Return one section as a list of rows, or all by name when ``what`` is ''; limited to ``nodes`` if given.

    InputError for an unknown section or node.
    """
    names = {lab.fabric.node(name).name for name in nodes}
    concerns: Concerns = names.__contains__ if names else lambda _: True
    if not what:
        return {name: section(lab, concerns) for name, section in SECTIONS.items()}
    if what == SRV6:
        return tables_report(lab, concerns)
    if what not in SECTIONS:
        raise InputError(f"nothing called {what!r} to inspect; write one of: {', '.join((*SECTIONS, CABLING, SRV6))}")
    return SECTIONS[what](lab, concerns)


async def cabling_report(lab: Lab, nodes: Collection[str] = ()) -> JsonValue:
    """Return a row for each port, or each of ``nodes``: far end by the fabric and by LLDP. InputError as ``report``."""
    names = {lab.fabric.node(name).name for name in nodes}
    return [
        {
            "link": end.link,
            "port": end.here,
            "expected": end.expected,
            "found": list(end.heard),
            "fits": end.fits,
        }
        for end in await far_ends(lab, names)
    ]


def _nodes(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    return [
        {
            "node": node.name,
            "role": node.role.value,
            "plane": node.plane,
            "asn": node.asn,
            "ecmp_seed": node.ecmp_seed if node.is_switch else None,
            "alive": not node.is_switch or lab.bgp[node.name].running,
            "addresses": [nic.ip for nic in lab.fabric.nics_of(node.name)],
        }
        for node in lab.fabric.nodes
        if concerns(node.name)
    ]


def _links(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    return [
        {
            "link": link.name,
            "kind": link.kind.value,
            "plane": link.plane,
            "rate_bps": link.rate_bps,
            "lower": link.lower.label,
            "upper": link.upper.label,
            "carrier": lab.link_up(link.name),
        }
        for link in lab.fabric.links
        if concerns(link.lower.node) or concerns(link.upper.node)
    ]


def _lacp(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    rows: list[JsonValue] = []
    for nic in lab.nics.values():
        if concerns(nic.nic.host):
            ports = nic.status()
            rows += [
                _lacp_row(nic.nic.host, port, why_idle(lab.fabric, port, ports), _settings(lab, nic.nic))
                for port in ports
            ]
    for tor in lab.tors.values():
        if concerns(tor.node.name):
            for port in tor.status().values():
                rows.append(_lacp_row(tor.node.name, port, why_idle(lab.fabric, port, (port,), tor.condition)))
    return rows


def _settings(lab: Lab, nic: Nic) -> str:
    """Return the file of a host's own configuration, else the topology's profile."""
    wiring = lab.fabric.spec.wiring
    config = None if wiring is None or nic.bonding is None else wiring.nodes[nic.host].config
    return config.file if isinstance(config, ConfigFile) else lab.fabric.spec.profile


def _lacp_row(node: str, status: PortStatus, why: str, profile: str = "") -> JsonValue:
    """Return a port's row; ``profile``: that of a host's port, or the configuration that it has instead."""
    actor, partner = status.actor, status.partner
    return {
        "port": f"{node}:{status.name}",
        "mux": status.mux.value,
        "receive": status.rx.value,
        "selected": status.selected.value,
        "actor_system": actor.system,
        "actor_key": actor.key,
        "actor_port": actor.port,
        "partner_system": partner.system,
        "partner_key": partner.key,
        "partner_port": partner.port,
        "asks": "fast" if PortState.TIMEOUT in actor.state else "slow",
        "profile": profile,
        "why_idle": why,
    }


def _bgp(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    rows: list[JsonValue] = []
    beside = bfd_ends(lab.fabric)
    for link in lab.fabric.links:
        if not link.is_routed:
            continue
        ends = ((link.lower, link.upper), (link.upper, link.lower))
        rows += [_session(lab, here, there, here.label in beside) for here, there in ends if concerns(here.node)]
    return rows


def _session(lab: Lab, here: Port, there: Port, bfd: bool) -> JsonValue:
    """Return a row; ``bfd``: the state of the BFD session, 'none' if BGP has none now; None: the link has no BFD."""
    return {
        "node": here.node,
        "port": here.name,
        "neighbour": there.node,
        "neighbour_asn": lab.fabric.node(there.node).asn,
        "established": here.name in lab.bgp[here.node].established,
        "bfd": lab.bgp[here.node].bfd.get(here.name, "none").lower() if bfd else None,
    }


def _steering(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    """Return the destinations that each host's kernel steers to another port; no rows if no path policy steers."""
    names = {nic.ip: nic.name for nic in lab.fabric.nics}
    return [
        {"nic": name, "destination": ip, "destination_nic": names.get(ip), "from_port": start, "to_port": end}
        for name, nic in lab.nics.items()
        if nic.steering is not None and concerns(nic.nic.host)
        for (start, ip), end in sorted(nic.steering.standing().items())
    ]


def _broken(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    """Return the parts broken by ``hpn break``, and those that failed by themselves."""
    return [
        {"part": each.part, "how": each.how, "by_hand": each.by_hand, "links": list(each.links)}
        for each in broken(lab)
        if concerns(each.part) or any(concerns(node) for link in each.links for node in _ends(lab, link))
    ]


def _ends(lab: Lab, link: str) -> tuple[str, str]:
    found = lab.fabric.link(link)
    return found.lower.node, found.upper.node


def _routes(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    """Return every switch's main table as the kernel reports it."""
    return [row for _, row in _main_routes(lab, concerns)]


def _missing_routes(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    """Return host routes with fewer next hops than whole links allow, as a configuration or a fault leaves them."""
    return [
        {"node": each.switch, "prefix": each.prefix, "next_hops": each.next_hops, "links_allow": each.links_allow}
        for each in short_routes(lab.fabric, lab.watcher.next_hops)
        if concerns(each.switch)
    ]


def _main_routes(lab: Lab, concerns: Concerns) -> Iterator[tuple[RouteEvent, dict[str, JsonValue]]]:
    """Yield each route, and its row."""
    for node in filter(lambda switch: concerns(switch.name), lab.fabric.switches):
        names = _port_names(lab, node)
        for route in lab.requests(node.name).routes():
            if route.table == RT_TABLE_MAIN:
                yield (
                    route,
                    {
                        "node": node.name,
                        "prefix": route.prefix,
                        "kind": _KINDS.get(route.kind, str(route.kind)),
                        "protocol": route.protocol,
                        "next_hops": [names.get(oif, str(oif)) for oif in route.oifs],
                    },
                )


def _ecmp(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    """Return routes with several next hops; on a Core ``preset`` lists the egress by ingress port."""
    presets = {node.name: _presets(lab, node) for node in lab.fabric.switches if concerns(node.name)}
    return [
        row | {"preset": list(presets[str(row["node"])].get(route.prefix, ()))}
        for route, row in _main_routes(lab, concerns)
        if len(route.oifs) > 1
    ]


def _presets(lab: Lab, node: Node) -> dict[str, list[str]]:
    """Return a Core's preset tables from the kernel: prefix to 'ingress port>egress port'; no entry if it hashes."""
    tables = {table.number: table for table in preset_tables(lab.fabric, node)}
    found: dict[str, list[str]] = {}
    if not tables:
        return found
    names = _port_names(lab, node)
    for route in lab.requests(node.name).routes():
        nic = lab.fabric.nic_by_ip.get(route.prefix.partition("/")[0])
        if route.table in tables and nic is not None:
            home = lab.fabric.node(nic.host).pod
            came = [port.name for pod, port in tables[route.table].ingress.items() if pod != home]
            found.setdefault(route.prefix, []).extend(f"{port}>{names[route.oifs[0]]}" for port in came)
    return found


def _queues(lab: Lab, concerns: Concerns) -> list[JsonValue]:
    """Return the queue of every port, or with ``switch:`` those of its classes that were ever used."""
    rows: list[JsonValue] = []
    for node in filter(lambda each: concerns(each.name), lab.fabric.nodes):
        names, queues = _port_names(lab, node), lab.requests(node.name).queues()
        for bucket in queues.buckets:
            if bucket.ifindex not in names:
                continue
            port: dict[str, JsonValue] = {"node": node.name, "port": names[bucket.ifindex]}
            classes = [(n, each) for n, each in enumerate(queues.classes.get(bucket.ifindex, ())) if not each.idle]
            rows += [port | {"priority": number} | asdict(each) for number, each in classes]
            if bucket.ifindex not in queues.classes:
                rows.append(port | _bucket_row(bucket, queues.marked.get(bucket.ifindex)))
    return rows


def _bucket_row(bucket: BucketReading, marks: int | None) -> dict[str, JsonValue]:
    sent = {"sent_packets": bucket.sent_packets, "sent_bytes": bucket.sent_bytes}
    return {"priority": None, "queue": bucket.backlog_bytes, **sent, "drops": bucket.drops, "marks": marks}


def _port_names(lab: Lab, node: Node) -> dict[int, str]:
    ends = [link.end_at(node.name) for link in lab.fabric.links_of(node.name)]
    return {end.ifindex: end.name for end in ends}


def path_report(path: Path) -> JsonValue:
    """Return a traced path as JSON."""
    return {
        "dropped": path.dropped,
        "steps": [{"node": s.node, "in": s.in_port, "out": s.out_port, "link": s.link} for s in path.steps],
    }


SECTIONS: Mapping[str, Callable[[Lab, Concerns], list[JsonValue]]] = {
    "nodes": _nodes,
    "links": _links,
    "lacp": _lacp,
    "bgp": _bgp,
    "routes": _routes,
    "missing-routes": _missing_routes,
    "ecmp": _ecmp,
    "steering": _steering,
    "broken": _broken,
    "queues": _queues,
}
