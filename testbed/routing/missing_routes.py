"""ToRs that get no route to each other although links join them, because of ASNs in the file. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.routing.distances import Adjacency

_MOST = 5


def route_notes(fabric: Fabric) -> Iterator[str]:
    """Yield who gets no route to whose hosts, at most five lines."""
    if not fabric.spec.bgp.valleys:
        return
    adjacency = Adjacency(fabric)
    tors = [node for node in fabric.switches if node.role is Role.TOR]
    refused = {there.name: _refusing(adjacency, there.name) for there in tors}
    found = [
        f"{here.name} gets no route to the hosts of {there.name}: every path there has its own ASN, {here.asn}, in it"
        for here in tors
        for there in tors
        if here.name in refused[there.name]
    ]
    yield from found[:_MOST]
    if len(found) > _MOST:
        yield f"and {len(found) - _MOST} more pairs of ToRs without a route"


def _refusing(adjacency: Adjacency, there: str) -> set[str]:
    """Return the switches that links join with ``there`` and that get no route to it."""
    return adjacency.joined(there).keys() - adjacency.reach([there]).distance.keys()
