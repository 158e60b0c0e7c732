"""Cost of probes: packets per second, and the share of the link that carries most of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.flows.path_search import Direction


@dataclass(frozen=True, slots=True)
class ProbeLoad:
    """Load of ``streams`` probes: packets per second of all, and the share (0 .. 1) of the most loaded ``link``.

    A link counts in its busier direction.
    """

    streams: int
    pps: float
    share: float
    link: str


def probe_load(fabric: Fabric, flows: Sequence[FlowSpec], paths: Mapping[int, Sequence[str]]) -> ProbeLoad:
    """Return the load of flows on the links of their paths, by flow id."""
    carried: Counter[Direction] = Counter()
    for flow in flows:
        node = fabric.nic(flow.src_nic).host
        for name in paths.get(flow.id, ()):
            link = fabric.link(name)
            carried[name, link.lower.node == node] += int(flow.rate_pps * 8 * wire_bytes(flow.path_mtu))
            node = link.far_end(node).node
    shares = {way: bps / fabric.link(way[0]).rate_bps for way, bps in carried.items()}
    worst = max(shares, key=lambda way: shares[way], default=("", True))
    return ProbeLoad(len(flows), sum(flow.rate_pps for flow in flows), shares.get(worst, 0.0), worst[0])
