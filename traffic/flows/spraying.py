"""Source ports for packet spraying: a queue pair's packets use them in turn. Pure.

Packet spraying gives each packet of a queue pair different entropy, so that one queue pair fills many paths. Its
receiver must tolerate reordering (Dixit et al., INFOCOM 2013; for RoCE: selective repeat with a tolerance,
``Transport``). A queue pair stays on one port of its NIC, as with real adapters: all its source ports lead there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from hpn.traffic.flows.choosers import MOST_CANDIDATES
from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec
from hpn.traffic.flows.path_search import Router, links_of, port_of

_SEARCH = 4096
"""Most draws for source ports behind one port of a NIC: if it has two ports, half of the draws fit."""


def sprayed(flow: FlowSpec, ports: int, router: Router, taken: set[int], *, apart: bool, seed: int) -> tuple[int, ...]:
    """Return up to ``ports`` source ports, beginning with ``flow``'s own; none of the others is in ``taken``.

    ``apart``: their paths share no link between switches; only the first few candidates are tried. Otherwise ``ports``
    of them are drawn by ``seed``, and switches hash them.
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
    """Return the links between switches; empty where packets do not arrive."""
    return list(links_of(flow, sport, router))[1:-1]


def _behind_its_port(flow: FlowSpec, router: Router, taken: set[int], seed: int) -> Iterator[int]:
    """Yield free source ports that lead to the same NIC port as the flow's own, in an order drawn by ``seed``."""
    draw = random.Random(f"{seed} {flow.id} {flow.src_nic} {flow.dst_nic} sprayed")
    port = port_of(flow, flow.sport, router)
    seen = taken | {flow.sport}
    for _ in range(_SEARCH):
        sport = draw.randint(SPORT_MIN, SPORT_MAX)
        if sport not in seen and port_of(flow, sport, router) == port:
            seen.add(sport)
            yield sport
