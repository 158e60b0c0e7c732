"""Entropy values of a multipath queue pair: source ports whose packets leave by each port of the NIC alike. Pure.

ECMP hashes the source port at every switch, and a LAG at the host. So the values of each port of the NIC are found by
asking where its LAG sends a source port, as for flows of one path.
"""

from __future__ import annotations

import random

from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec
from hpn.traffic.flows.path_search import Router, port_of
from hpn.traffic.multipath.settings import EntropyValue

_SEARCH = 16384


def drawn(flow: FlowSpec, count: int, seed: int) -> list[int]:
    """Return ``count`` different source ports for a flow's data, drawn by ``seed``."""
    draw = random.Random(f"{seed} {flow.id} {flow.src_nic} {flow.dst_nic} entropy")
    return draw.sample(range(SPORT_MIN, SPORT_MAX + 1), count)


def entropy_values(flow: FlowSpec, count: int, router: Router, seed: int) -> tuple[EntropyValue, ...]:
    """Return ``count`` values for a flow's data, drawn by ``seed``, port by port of its NIC in turn.

    Each port has an equal share, give or take one, as far as the LAG sends anything by it now.
    """
    ports = router.ports(flow.src_nic)
    wanted = {port: len(range(port, count, ports)) for port in range(ports)}
    found: dict[int, list[int]] = {port: [] for port in range(ports)}
    others: list[EntropyValue] = []  # behind ports that have enough
    for sport in drawn(flow, _SEARCH, seed):
        if all(len(found[port]) == wanted[port] for port in wanted):
            break
        port = port_of(flow, sport, router)
        if len(found[port]) < wanted[port]:
            found[port].append(sport)
        elif len(others) < count:
            others.append(EntropyValue(sport, port))
    in_turn = [
        EntropyValue(found[port][turn], port)
        for turn in range(max(wanted.values()))
        for port in range(ports)
        if turn < len(found[port])
    ]
    return (*in_turn, *others)[:count]
