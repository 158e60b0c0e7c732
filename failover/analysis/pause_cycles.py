"""Deadlock by PFC: queues that are stopped and wait for each other in a ring, from the counters of both ends. Pure.

A queue that its neighbour stopped waits for the queues in which that neighbour holds its packets: those that are
stopped themselves, in the same priority. A ring of such queues never moves again by itself (Hu et al., "Deadlocks in
datacenter networks: why do they form, and how to avoid them", HotNets 2016).

The counters do not tell which egress queue holds whose packets. So a queue counts only if it sent nothing in the last
part of the traffic, and if it waits for nothing that may still move: a queue that a host stops moves when the host
lets go. Hosts forward nothing, so what is stopped at a host waits for the host alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from hpn.failover.analysis.buffers import ClassUse

_At = tuple[str, int]
"""Label of a port, and priority."""


def waiting_for(found: Iterable[ClassUse]) -> Mapping[_At, frozenset[_At]]:
    """Return for each queue that is stopped and does not move the such queues of the switch that stopped it."""
    rows = list(found)
    stuck = [each for each in rows if each.paused and each.queue_bytes and not each.last_packets]
    of_switch: dict[tuple[str, int], set[_At]] = {}
    for each in stuck:
        if each.is_switch:
            of_switch.setdefault((each.node, each.priority), set()).add((each.port, each.priority))
    ends = {(each.link, each.priority, each.node): each for each in rows if each.pausing}
    waits: dict[_At, frozenset[_At]] = {}
    for each in stuck:
        stoppers = [node for link, priority, node in ends if (link, priority) == (each.link, each.priority)]
        behind = (of_switch.get((node, each.priority), set()) for node in stoppers if node != each.node)
        waits[each.port, each.priority] = frozenset().union(*behind)
    return waits


def deadlock(found: Iterable[ClassUse]) -> tuple[str, ...]:
    """Return the ports of one ring of queues that wait for each other, in the order of waiting; () if there is none."""
    sorter: TopologicalSorter[_At] = TopologicalSorter(_for_good(waiting_for(found)))
    try:
        sorter.prepare()
    except CycleError as error:
        ring: list[_At] = error.args[1]
        return tuple(port for port, _ in reversed(ring[1:]))
    return ()


def _for_good(waits: Mapping[_At, frozenset[_At]]) -> Mapping[_At, frozenset[_At]]:
    """Return the queues that wait only for queues that wait so too."""
    kept = dict(waits)
    while free := [queue for queue, behind in kept.items() if not behind or not behind <= kept.keys()]:
        for queue in free:
            del kept[queue]
    return kept
