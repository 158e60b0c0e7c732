"""Times from which a path is no longer known: a switch on it has other routes or links. Pure.

Switches are asked for paths only now and then. Between two answers a path holds until an event may have moved it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.failover.analysis.paths import PathAt
from hpn.failover.locating.parts import Ends
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.model import Fabric, Nic

REROUTED = "rerouted"
"""``why`` of a path that is unknown from then on."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Times (ns) of events that may move flows, and the address that each flow sends to, by flow id.

    Keys: a switch and an address for a host route; an address that a ToR learns or loses, as every switch may then have
    other routes to it; a switch for its links to switches, as ECMP may hash all flows anew; an access link for itself,
    and with the others of its LAG.
    """

    times: Mapping[Hashable, Sequence[int]]
    addresses: Mapping[int, str]

    def of(self, path: PathAt, ends: Ends) -> Sequence[int]:
        """Return the times of events that may move a path."""
        nodes = {node for link in path.links for node in ends[link]}
        address = self.addresses.get(path.flow, "")
        keys = (address, *path.links, *nodes, *((node, address) for node in nodes))
        return sorted({at_ns for key in keys for at_ns in self.times.get(key, ())})


def changes_of(fabric: Fabric, events: Iterable[Event], receivers: Mapping[int, str]) -> Changes:
    """Return what the events of a run may have moved; ``receivers``: the NIC that each flow sends to, by flow id."""
    times: dict[Hashable, list[int]] = {}
    lags = {(nic.host, nic.lag): nic for nic in fabric.nics}
    for event in events:
        for key in _moved_by(fabric, lags, event):
            times.setdefault(key, []).append(event.at_ns)
    return Changes(times, {flow: fabric.nic(nic).ip for flow, nic in receivers.items()})


def _moved_by(fabric: Fabric, lags: Mapping[tuple[str, str], Nic], event: Event) -> Iterator[Hashable]:
    if event.kind is EventKind.ROUTE:
        yield event.node, event.subject.partition("/")[0]
    elif event.kind is EventKind.NEIGHBOUR:
        yield event.subject
    elif event.kind is EventKind.LAG:
        nic = lags.get((event.node, event.subject))
        yield from () if nic is None else (link.name for link in nic.links)
    elif event.kind in (EventKind.LINK, EventKind.BGP):
        link = fabric.link_by_name.get(fabric.named(f"{event.node}:{event.subject}"))
        if link is not None:
            yield event.node if link.is_routed else link.name


def while_known(ends: Ends, paths: Sequence[PathAt], changes: Changes, looks_ns: Sequence[int]) -> Iterator[PathAt]:
    """Yield the paths, and after each an unknown one from the event on that may have moved it.

    The path counts again from the next of ``looks_ns`` on, in order, unless another one was found then.
    """
    steps: dict[int, list[PathAt]] = {}
    for path in paths:
        steps.setdefault(path.flow, []).append(path)
    for mine in steps.values():
        for step, following in zip(mine, [*mine[1:], None], strict=True):
            yield step
            if step.links:
                until_ns = None if following is None else following.at_ns
                yield from _interrupted(step, changes.of(step, ends), looks_ns, until_ns)


def _interrupted(step: PathAt, times: Sequence[int], looks_ns: Sequence[int], until_ns: int | None) -> Iterator[PathAt]:
    known_ns: int | None = step.at_ns
    for at_ns in times:
        if known_ns is None or (until_ns is not None and at_ns >= until_ns):
            return
        if at_ns <= known_ns:
            continue
        yield replace(step, at_ns=at_ns, why=REROUTED, links=())
        next_look = bisect_left(looks_ns, at_ns)
        known_ns = looks_ns[next_look] if next_look < len(looks_ns) else None
        if known_ns is not None and (until_ns is None or known_ns < until_ns):
            yield replace(step, at_ns=known_ns)
