"""Note on LAGs of one port that LACP kept out after their link came back, as more ports might have joined. Pure.

Changes when LACP reports its waits otherwise. IEEE 802.1AX 6.4.12: a port waits in WAITING (aggregate wait time, 2 s)
before it attaches, so that ports aggregate together. A LAG of one port pays for that and gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hpn.failover.analysis.edge import Edge, HitLink
from hpn.failover.analysis.phrases import about_ms
from hpn.testbed.events import Event, EventKind
from hpn.testbed.lag.states import Mux

_LEAST_NS = 100_000_000
"""A machine's tick of Linux bonding; a shorter wait is none for more ports."""
_OUT = frozenset({"port-disabled", "detached"})
_WAY_OUT = "without that wait: 'lag: nft' and 'lacp: {aggregate_wait_ms: 0}' in the topology"


def lone_port_waits(events: Sequence[Event], edges: Sequence[Edge], end_ns: int) -> tuple[str, ...]:
    """Return a note if LACP made a LAG's only port wait after a fault, with the longest wait; else nothing."""
    lone = _lone(events)
    ports = {
        (link.host, _port(link)): (link.host, link.lag)
        for edge in edges
        for link in edge.links
        if link.host is not None and (link.host, link.lag) in lone
    }
    begin_ns = min((edge.inject_before_ns for edge in edges), default=end_ns)
    of_ports = [each for each in events if each.kind is EventKind.LACP and (each.node, each.subject) in ports]
    waits: dict[tuple[str, str], int] = {}
    for port, ns in _waits(of_ports, begin_ns, end_ns):
        waits[port] = max(ns, waits.get(port, 0))
    longest_ns = max(waits.values(), default=0)
    if longest_ns < _LEAST_NS:
        return ()
    count = sum(ns >= _LEAST_NS for ns in waits.values())
    which = "the only port of a LAG" if count == 1 else f"the only port of each of {count} LAGs"
    cost = f"kept {which} out for up to {about_ms(longest_ns / 1e6)} after its link came back"
    return (f"LACP {cost}, as it waits for more ports to aggregate; {_WAY_OUT}",)


def _lone(events: Iterable[Event]) -> frozenset[tuple[str, str]]:
    """Return host and name of each LAG that had one active port at most, and that one at some time."""
    most: dict[tuple[str, str], int] = {}
    for event in events:
        if event.kind is EventKind.LAG and event.what == "active":
            active = len(list(filter(None, str(event.detail["ports"]).split(","))))
            most[event.node, event.subject] = max(active, most.get((event.node, event.subject), 0))
    return frozenset(lag for lag, ports in most.items() if ports == 1)


def _port(link: HitLink) -> str:
    return link.lower.partition(":")[2]


def _waits(events: Iterable[Event], begin_ns: int, end_ns: int) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield each wait of a port, ns: until it attached, left again, or the run ended."""
    since: dict[tuple[str, str], int] = {}
    for event in events:
        port = event.node, event.subject
        if event.what == Mux.WAITING and event.at_ns >= begin_ns:
            since.setdefault(port, event.at_ns)
        elif (event.what == Mux.ATTACHED or event.what in _OUT) and port in since:
            yield port, min(event.at_ns, end_ns) - since.pop(port)
    yield from ((port, max(end_ns - at_ns, 0)) for port, at_ns in since.items())
