"""Wiring: the fabric's namespaces, veths, addresses, rates and routes, created in a few netlink batches.

Links are created by one batch from the sandbox's own namespace. Each veth end is created directly in its node with its
final name, MAC and ifindex, because moving interfaces would cost a grace period each. Then one batch per node does the
rest.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.buffers import balances, port_options
from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.marking import burst_bytes, marker_of, quanta
from hpn.testbed.fabric.marking import queue_bytes as port_queue_bytes
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Port
from hpn.testbed.kernel import linkwatch
from hpn.testbed.kernel import ns as namespaces
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import open_files
from hpn.testbed.kernel.process.sandbox import bind_mount
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.htb import Second, add_fifo, port_queues
from hpn.testbed.kernel.rtnetlink.mmu import add_mmu
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab import srv6
from hpn.testbed.lab.markers import MarkerKind
from hpn.testbed.lag.datapath import LagKind
from hpn.testbed.routing.ecmp import Sysctl, namespace_sysctls, port_sysctls
from hpn.testbed.routing.srv6.plan import UsidPlan

_WORD = 32  # bits of a CPU mask between commas (Documentation/core-api/cpu_hotplug, cpumask in hexadecimal)


def one_cpu_a_flow(cpus: Collection[int]) -> tuple[Sysctl, ...]:
    """Return the sysctl of a namespace without interfaces yet, for a lab that runs on ``cpus``.

    Empty for a single one. Linux has it per namespace since 6.3; without it the manifest lists it as absent.
    """
    if len(cpus) < 2:
        return ()
    why = "packets of a flow may overtake each other where they change CPUs (Linux 6.3 keeps them in order)"
    return (Sysctl("net/core/rps_default_mask", cpu_mask(cpus), False, why),)


def cpu_mask(cpus: Collection[int]) -> str:
    """Format CPUs as a kernel mask: words of 32 bits in hexadecimal, the highest first."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = [bits >> shift & (1 << _WORD) - 1 for shift in range(0, max(bits.bit_length(), 1), _WORD)]
    return ",".join([f"{words[-1]:x}", *(f"{word:08x}" for word in reversed(words[:-1]))])


NETNS_DIR = Path("/run/netns")
PORTS_GROUP = 1
"""Interface group of all ports of a switch, which go down together when it dies."""
_CONF = "net/ipv4/conf/all/"
_HOST_SYSCTLS = (
    Sysctl(_CONF + "rp_filter", "0", True, "the way back may use another rail"),
    Sysctl("net/ipv4/conf/default/rp_filter", "0", True, "the way back may use another rail"),
    Sysctl(_CONF + "arp_ignore", "1", True, "a rail must not answer for another rail of its host"),
    Sysctl(_CONF + "arp_announce", "2", True, "a rail must not ask in the name of another rail of its host"),
    Sysctl("net/ipv6/conf/all/disable_ipv6", "1", False, "address detection and router solicitations are noise"),
    Sysctl("net/ipv6/conf/default/disable_ipv6", "1", False, "address detection and router solicitations are noise"),
)
_RULE_PRIORITY = 1000  # after the kernel's own rule for local addresses, before the one for main
_FIRST_NIC_TABLE = 100


@dataclass(frozen=True)
class Wiring:
    """Result of ``wire``: an open namespace per node, and the optional sysctls this kernel lacks."""

    namespaces: Mapping[str, NetNs]
    missing: tuple[Sysctl, ...]  # optional settings that this kernel does not have


def wire(fabric: Fabric, datapath: LagKind, marking: MarkerKind | None = None, *, in_order: bool = False) -> Wiring:
    """Create every node, link, address, rate and static route of ``fabric``. MachineError when the kernel refuses.

    Call it as the first process of a sandbox: the namespaces are also bound under /run/netns for ``ip netns``.
    """
    _allow_files(files_wanted(fabric))
    home = namespaces.current("sandbox")
    missing: dict[str, Sysctl] = {}
    steering = one_cpu_a_flow(os.sched_getaffinity(0)) if in_order else ()
    nodes: dict[str, NetNs] = {}
    NETNS_DIR.mkdir(parents=True, exist_ok=True)
    for node in fabric.nodes:
        nodes[node.name] = _make_node(fabric, node, steering, missing)
    try:
        root = Netlink(home)
        lags = (request for nic in fabric.nics for request in datapath.interfaces(fabric, nic, nodes[nic.host]))
        root.run([*_veths(fabric, nodes), *lags])
        root.close()
        plan = None if fabric.spec.srv6 is None else UsidPlan(fabric)
        for node in fabric.nodes:
            link = Netlink(nodes[node.name])
            static = () if plan is None else srv6.requests(plan, node)
            link.run([*node_requests(fabric, node, datapath), *inner_queues(fabric, node, marking), *static])
            link.close()
            _mark_by_rules(fabric, node, marking, nodes[node.name])
            _write_all(nodes[node.name], port_sysctls(fabric, node), missing)
        _tell_carriers(fabric, nodes)
    except OSError as error:
        raise MachineError(f"the kernel refused to wire the lab: {error.strerror or error}") from error
    os.close(home.fd)
    return Wiring(nodes, tuple(missing.values()))


def _tell_carriers(fabric: Fabric, nodes: Mapping[str, NetNs]) -> None:
    """Process all pending carrier changes before returning; those beyond one kernel run would take seconds."""
    if 2 * len(fabric.links) <= linkwatch.AT_A_RUN:
        return
    for node in fabric.nodes:
        request = Netlink(nodes[node.name])
        linkwatch.carry_out(request, _interfaces(fabric, node))
        request.close()


def _interfaces(fabric: Fabric, node: Node) -> list[int]:
    """Return the indexes of a node's ports and LAGs; not every datapath has both ends of a LAG."""
    lags = [index for nic in fabric.nics_of(node.name) for index in (nic.lag_ifindex, nic.inner_ifindex)]
    return [link.end_at(node.name).ifindex for link in fabric.links_of(node.name)] + lags


def _make_node(fabric: Fabric, node: Node, steering: Sequence[Sysctl], missing: dict[str, Sysctl]) -> NetNs:
    """Create a namespace with its sysctls set before the first interface exists, so that interfaces inherit them."""
    made = namespaces.create(node.name)
    settings = namespace_sysctls(node, balances=balances(fabric.spec)) if node.is_switch else _HOST_SYSCTLS
    if fabric.spec.srv6 is not None:
        settings = srv6.with_ipv6(settings, forwards=node.is_switch)
    _write_all(made, [*settings, *steering], missing)
    with made.entered():
        bind_mount("/proc/thread-self/ns/net", NETNS_DIR / node.name)
    return made


def _write_all(space: NetNs, wanted: Sequence[Sysctl], missing: dict[str, Sysctl]) -> None:
    if not wanted:
        return
    with space.entered():
        for item in wanted:
            if not _write_sysctl(item):
                missing[item.path] = item


def _write_sysctl(item: Sysctl) -> bool:
    """Set it in the current namespace; False when optional and refused. MachineError when required and refused."""
    try:
        fd = os.open("/proc/sys/" + item.path, os.O_WRONLY)
        try:
            os.write(fd, item.value.encode())
        finally:
            os.close(fd)
    except OSError as error:
        if not item.required:
            return False
        raise MachineError(
            f"this kernel refuses sysctl {item.path} = {item.value} ({error.strerror}), but {item.why}"
        ) from error
    return True


def _veths(fabric: Fabric, nodes: Mapping[str, NetNs]) -> Iterator[bytes]:
    for link in fabric.links:
        low, high = link.lower, link.upper
        yield rtnl.add_veth(
            low.name,
            low.ifindex,
            nodes[low.node],
            high.name,
            high.ifindex,
            nodes[high.node],
            mac=low.mac,
            peer_mac=high.mac,
            mtu=link.mtu or fabric.spec.mtu,
            group=PORTS_GROUP if fabric.node(low.node).is_switch else 0,
            peer_group=PORTS_GROUP,
        )


def node_requests(fabric: Fabric, node: Node, datapath: LagKind) -> Iterator[bytes]:
    """Yield all requests of one node once its interfaces exist, in order. Pure."""
    yield rtnl.set_link(1, up=True)
    for link in fabric.links_of(node.name):
        here = link.end_at(node.name)
        if here is link.upper:
            yield rtnl.set_link(here.ifindex, up=True)
        yield shaper(fabric, link, here)
        if here.address is not None:
            yield rtnl.add_address(here.ifindex, here.address)
        there = link.far_end(node.name)
        if link.kind is not LinkKind.ACCESS and there.address is not None:
            # Permanent, so that they do not count against the machine-wide neighbour limit (FACTS trap 4).
            yield rtnl.add_neighbour(here.ifindex, there.ip, there.mac)
    for nic in fabric.nics_of(node.name):
        yield from datapath.raised(fabric, nic)
    yield from nic_requests(fabric, node)
    for table in preset_tables(fabric, node):
        for port in table.ingress.values():
            yield rtnl.add_rule(table.number, _RULE_PRIORITY, iif=port.name)


def inner_queues(fabric: Fabric, node: Node, marking: MarkerKind | None) -> Iterator[bytes]:
    """Yield requests for the queues inside the token bucket of each port of a node. Pure."""
    for link in fabric.links_of(node.name):
        yield from inner_queue(fabric, link, link.end_at(node.name), marking)


def inner_queue(fabric: Fabric, link: Link, port: Port, marking: MarkerKind | None) -> Iterator[bytes]:
    """Yield requests that put control before data; a switch's data queue marks, or is one per traffic class. Pure.

    With ``switch:`` one discipline has all of it.
    """
    if fabric.spec.switch is not None:
        yield add_mmu(port.ifindex, port_options(fabric, port.node, link.rate_bps))
        return
    marker, second, limit = marker_of(fabric.spec), fabric.spec.second_class, queue_bytes(fabric, link)
    is_switch = fabric.node(port.node).is_switch
    queue = marking.queue if marking is not None and is_switch else None

    def one(parent: int) -> bytes:
        if queue is not None and marker is not None:
            return queue(port.ifindex, marker, limit, parent)
        return add_fifo(port.ifindex, limit, parent)

    divided = None if second is None or not is_switch else Second(second.dscp, quanta(fabric.spec, second.share))
    yield from port_queues(port.ifindex, one, divided)


def _mark_by_rules(fabric: Fabric, node: Node, marking: MarkerKind | None, space: NetNs) -> None:
    marker = marker_of(fabric.spec)
    if marking is None or marking.rules is None or marker is None or not node.is_switch:
        return
    rules = Nft(space)
    try:
        rules.run(marking.rules(fabric, node, marker))
    finally:
        rules.close()


def nic_requests(fabric: Fabric, host: Node) -> Iterator[bytes]:
    """Yield addresses and rail routes on a host's LAG interfaces, for any datapath."""
    for nic in fabric.nics_of(host.name):
        yield rtnl.add_address(nic.lag_ifindex, f"{nic.ip}/{nic.prefix_len}")
        yield rtnl.add_route(nic.rail_network, oif=nic.lag_ifindex, gateway=nic.gateway)
        if fabric.rails_meet:
            yield from _by_source(nic)


def _by_source(nic: Nic) -> Iterator[bytes]:
    """Yield requests so that packets with the NIC's source address leave by it, whatever their destination.

    A queue pair belongs to an adapter. Where no switch leads from one rail to another, traffic to another rail changes
    NICs inside the host, so only the main table decides there.
    """
    table = _FIRST_NIC_TABLE + nic.rail
    yield rtnl.add_route(nic.subnet, oif=nic.lag_ifindex, table=table)
    yield rtnl.add_route("0.0.0.0/0", oif=nic.lag_ifindex, gateway=nic.gateway, table=table)
    yield rtnl.add_rule(table, _RULE_PRIORITY, src=nic.ip)


def shaper(fabric: Fabric, link: Link, port: Port, share: float = 1.0) -> bytes:
    """Return the token bucket of an end of ``link``, at a share of the link's rate; it replaces the present one."""
    burst = burst_bytes(fabric.spec, link.rate_bps)
    return rtnl.add_tbf(port.ifindex, int(link.rate_bps * share), burst, queue_bytes(fabric, link))


def queue_bytes(fabric: Fabric, link: Link) -> int:
    """Return the queue limit at an end of ``link``; more is tail-dropped."""
    return port_queue_bytes(fabric.spec, link.rate_bps)


def files_wanted(fabric: Fabric) -> int:
    """Return the maximum number of descriptors of a lab's process.

    Each node has a namespace, monitor, requests, nftables and daemon, each link LACP's packet sockets. The rest is for
    traffic, impairments and events. Measured: 107 on tiny, 967 on medium.
    """
    return 8 * len(fabric.nodes) + 2 * len(fabric.links) + 256


def _allow_files(count: int) -> None:
    """Raise the limit of open files; a lab holds a few per node and port."""
    limit = open_files.allow(count)
    if limit is not None:
        raise MachineError(too_few_files(count, limit))


def too_few_files(count: int, limit: int) -> str:
    """Return the error text for a lab that needs more open files than this process may have."""
    return f"this lab needs {count} open files but the limit is {limit}; raise it: ulimit -Hn {count}"
