"""Small networks for kernel tests, made inside the test's sandbox."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.traffic.flows.flow import FlowSpec, default_sport, requester_qpn, responder_qpn

A_IP, B_IP = "10.0.0.1", "10.1.0.1"
A_IF, B_IF = 1000, 2000
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Net:
    """Hosts a and b with ``routers`` between them."""

    a: ns.NetNs
    b: ns.NetNs
    routers: tuple[ns.NetNs, ...]

    @property
    def namespaces(self) -> Mapping[str, ns.NetNs]:
        return {"a.r0": self.a, "b.r0": self.b}


def chain(routers: int = 0, mtu: int = 4200, *, split: bool = True) -> Net:
    """a --- r1 --- ... --- b: host a is 10.0.0.1, host b 10.1.0.1; GSO bursts are split at both hosts."""
    nodes = [ns.create("a"), *(ns.create(f"r{i}") for i in range(routers)), ns.create("b")]
    root = Netlink(ns.current("root"))
    last = len(nodes) - 2
    for i in range(len(nodes) - 1):
        # Host a's end comes first in its pair, and host b's too, as only the first end can ask for the split.
        near, far = (i, i + 1) if i < last or last == 0 else (i + 1, i)
        ports = {i: (f"e{i}", A_IF + i), i + 1: (f"w{i}", B_IF + last - i)}
        root.run(
            [
                rtnl.add_veth(
                    *ports[near], nodes[near], *ports[far], nodes[far],
                    mac=mac(near, i), peer_mac=mac(far, i), mtu=mtu,
                    split_gso=split and near in (0, last + 1),
                )
            ]
        )  # fmt: skip
        Netlink(nodes[far]).run([rtnl.set_link(ports[far][1], up=True)])
    for k, node in enumerate(nodes):
        _configure(node, k, last)
    until_running(*nodes)
    return Net(nodes[0], nodes[-1], tuple(nodes[1:-1]))


def until_running(*spaces: ns.NetNs) -> None:
    """Wait until every interface but the loopback sends: until the kernel's link watcher has seen both of its ends up,
    what is sent is dropped without a word.
    """
    end = time.monotonic() + _PATIENCE_S
    for space in spaces:
        while not_yet := [link["ifname"] for link in _links(space) if link["operstate"] != "UP"]:
            assert time.monotonic() < end, f"{space.name}: {', '.join(not_yet)} never came up"
            time.sleep(0.002)


def _links(space: ns.NetNs) -> list[dict[str, str]]:
    with space.entered():
        told = subprocess.run(["ip", "-json", "link"], check=True, capture_output=True, text=True).stdout
    return [link for link in json.loads(told) if link["ifname"] != "lo"]


def mac(node: int, link: int) -> str:
    return f"02:00:00:00:{node:02x}:{link:02x}"


def _configure(node: ns.NetNs, k: int, last: int) -> None:
    with node.entered():
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    requests = []
    if k == 0:
        requests.append(rtnl.add_address(A_IF, f"{A_IP}/32"))
    if k == last + 1:
        requests.append(rtnl.add_address(B_IF, f"{B_IP}/32"))
    if k <= last:  # eastwards
        requests.append(rtnl.add_route(f"{B_IP}/32", oif=A_IF + k))
        requests.append(rtnl.add_neighbour(A_IF + k, B_IP, mac(k + 1, k)))
    if k > 0:  # westwards
        requests.append(rtnl.add_route(f"{A_IP}/32", oif=B_IF + last - k + 1))
        requests.append(rtnl.add_neighbour(B_IF + last - k + 1, A_IP, mac(k - 1, k - 1)))
    Netlink(node).run(requests)


def westward(net: Net, k: int) -> list[bytes]:
    """What node k (1 is the first router) needs to reach a again after its western port was down."""
    port = B_IF + len(net.routers) - k + 1
    return [
        rtnl.add_route(f"{A_IP}/32", oif=port),
        rtnl.add_neighbour(port, A_IP, mac(k - 1, k - 1)),
    ]


def flows(
    count: int,
    rate_pps: float,
    *,
    path_mtu: int = 4096,
    both_ways: bool = False,
    ib_timeout: int = 14,
    retry_count: int = 7,
) -> list[FlowSpec]:
    """Flows from a to b, every second one from b to a with ``both_ways``."""
    found = []
    for i in range(count):
        ends: Sequence[tuple[str, str]] = (("a.r0", A_IP), ("b.r0", B_IP))
        (src, src_ip), (dst, dst_ip) = ends if not both_ways or i % 2 == 0 else ends[::-1]
        sport = default_sport(requester_qpn(i), responder_qpn(i))
        found.append(
            FlowSpec(
                i,
                f"{src}>{dst}#{i}",
                src,
                dst,
                src_ip,
                dst_ip,
                sport,
                sport ^ 0x2000,
                rate_pps,
                path_mtu,
                ib_timeout,
                retry_count,
            )
        )
    return found
