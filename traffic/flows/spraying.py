"""The source ports that a sprayed queue pair's packets take in turn. Pure.

Packet spraying gives each packet of a queue pair other entropy, so that one queue pair fills many paths; its receiver
then bears reordering (Dixit et al., INFOCOM 2013; of RoCE: selective repeat with a tolerance, ``Transport``). A queue
pair stays behind one port of its NIC, as adapters have it: its source ports all lead there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from hpn.traffic.flows.flow import ROCE_PORT, SPORT_MAX, SPORT_MIN, FlowSpec
from hpn.traffic.flows.paths import MOST_CANDIDATES, Router

_SEARCH = 4096
"""Drawn at most to find source ports behind one port of a NIC: half of them are, where it has two."""


def sprayed(flow: FlowSpec, ports: int, router: Router, taken: set[int], *, apart: bool, seed: int) -> tuple[int, ...]:
    """Up to ``ports`` source ports, ``flow``'s own the first, none of the others ``taken``.

    ``apart``: their paths share no link between switches; as many as there are among the first few looked at. Else
    ``ports`` of them drawn by ``seed``, and switches hash as they do.
    """
    candidates = _behind_its_port(flow, router, taken, seed)
    if not apart:
        return (flow.sport, *islice(candidates, ports - 1))
    chosen = [flow.sport]
    crossed = set(_between(flow, flow.sport, router))
    for sport in islice(candidates, MOST_CANDIDATES):
        between = _between(flow, sport, router)
        if between and not crossed.intersection(between):
            chosen.append(sport)
            crossed.update(between)
        if len(chosen) == ports:
            break
    return tuple(chosen)


def _between(flow: FlowSpec, sport: int, router: Router) -> list[str]:
    """The links between switches; none where a packet does not arrive."""
    return list(router.links(flow.src_nic, flow.dst_nic, sport))[1:-1]


def _behind_its_port(flow: FlowSpec, router: Router, taken: set[int], seed: int) -> Iterator[int]:
    """Free source ports that lead to the port of the NIC that the flow's own does, in an order drawn by ``seed``."""
    draw = random.Random(f"{seed} {flow.id} {flow.src_nic} {flow.dst_nic} sprayed")
    port = router.port_for(flow.src_nic, flow.dst_ip, flow.sport, ROCE_PORT)
    seen = taken | {flow.sport}
    for _ in range(_SEARCH):
        sport = draw.randint(SPORT_MIN, SPORT_MAX)
        if sport not in seen and router.port_for(flow.src_nic, flow.dst_ip, sport, ROCE_PORT) == port:
            seen.add(sport)
            yield sport
