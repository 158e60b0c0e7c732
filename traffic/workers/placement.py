"""Placement of NICs on workers. PURE.

A worker sends the data of its NICs and receives everything addressed to them. There are two goals: every worker moves
the same packet rate, and no worker both sends and receives the same flow. Then no core carries a flow's whole cost.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from hpn.traffic.flows.flow import FlowSpec

_WORKER_PPS = 5000
"""Packets per second that one worker handles with ease.

A tick costs about the same for few packets as for many, so fewer workers cost less.
"""


def workers_for(flows: Sequence[FlowSpec]) -> int:
    """Return how many workers carry these streams best on this machine."""
    wanted = math.ceil(sum(flow.rate_pps for flow in flows) / _WORKER_PPS)
    return max(1, min(os.cpu_count() or 1, len(flows), wanted))


def place(flows: Sequence[FlowSpec], workers: int) -> Mapping[str, int]:
    """Return the worker index of each NIC: heaviest NICs first, each on the worker with the least of its own traffic
    and load."""
    traffic: dict[str, dict[str, float]] = {}
    for flow in flows:
        for nic, peer in ((flow.src_nic, flow.dst_nic), (flow.dst_nic, flow.src_nic)):
            peers = traffic.setdefault(nic, {})
            peers[peer] = peers.get(peer, 0.0) + flow.rate_pps
    load = [0.0] * workers
    placed: dict[str, int] = {}
    for nic in _neighbours_in_turn(traffic):
        met = [0.0] * workers
        for peer, rate in traffic[nic].items():
            if peer in placed:
                met[placed[peer]] += rate
        best = min(range(workers), key=lambda w: (met[w], load[w], w))
        placed[nic] = best
        load[best] += sum(traffic[nic].values())
    return placed


def _neighbours_in_turn(traffic: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return NICs component by component, breadth first: a ring of flows is then coloured alternately."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(traffic, key=lambda nic: (-sum(traffic[nic].values()), nic)):
        queue = [start] if start not in seen else []
        seen.add(start)
        while queue:
            nic = queue.pop(0)
            order.append(nic)
            fresh = sorted(peer for peer in traffic[nic] if peer not in seen)
            seen.update(fresh)
            queue.extend(fresh)
    return order
