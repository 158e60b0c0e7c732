"""Fabric built by stock Mininet as reference of the bench: nodes as routers, TCLink rates, addresses."""

from __future__ import annotations

import time

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import Node

from hpn.testbed.fabric.model import Fabric, Link


def build_and_stop(fabric: Fabric) -> dict[str, float]:
    """Return the seconds to bring ``fabric`` up and to stop it.

    Run it in a sandbox with its own user namespace. Mininet cannot do LAGs, so every NIC port is a plain interface;
    apart from that it is the same graph.
    """
    names = {node.name: f"n{index}" for index, node in enumerate(fabric.nodes)}
    started = time.monotonic()
    net = Mininet(controller=None, build=False)
    for node in fabric.nodes:
        net.addHost(names[node.name], cls=Node, ip=None)
    for index, link in enumerate(fabric.links):
        _cable(net, fabric, link, index, names)
    net.build()
    up = time.monotonic()
    net.stop()
    return {"up_s": up - started, "down_s": time.monotonic() - up}


def _cable(net: Mininet, fabric: Fabric, link: Link, index: int, names: dict[str, str]) -> None:
    lower, upper = link.lower, link.upper
    net.addLink(
        names[lower.node],
        names[upper.node],
        cls=TCLink,
        bw=link.rate_bps / 1e6,
        use_tbf=True,
        params1={"ip": lower.address or f"10.{index >> 8}.{index & 255}.1/30"},
        params2={"ip": upper.address if lower.address else f"10.{index >> 8}.{index & 255}.2/30"},
    )
