"""Offered load of each directed link between one edge and the next. Pure.

Changes when a figure of offered load does. A link that is offered more than its rate drops the rest: such loss is
congestion, whatever a fault did before. The load is that of constant-rate flows while they send, acknowledgements
included. A job sends as fast as it may, and has no offered load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

FULL = 1.0
"""Share of its rate up to which a link carries its offered load."""
NO_PATH = "no path left"
"""Beginning of ``UndeliveredFlow.why`` if no port of the NIC leads to the other end."""


@dataclass(frozen=True, slots=True)
class OfferedLink:
    """One direction of a link. ``shares``, one for each span: offered load / rate at that time, None while dead."""

    link: str
    sender: str  # the node that sends into it
    towards: str  # the node at its other end
    up: bool  # towards the Aggs
    access: bool  # between a host and its ToR
    rate_bps: int  # of the healthy link
    shares: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A flow whose path crosses a link that is offered more than its rate, and since when in its span it does.

    ``moved_ns``: no earlier than then it left another path; None: it has been on this one since before the edge.
    """

    flow: int
    since_ns: int
    moved_ns: int | None = None


@dataclass(frozen=True, slots=True)
class UndeliveredFlow:
    """A flow whose packets do not arrive, and why."""

    flow: int
    why: str


@dataclass(frozen=True, slots=True)
class StablePeriod:
    """A time in which no path changes, those of moments apart; the last after an edge is what failover leads to.

    Times are CLOCK_MONOTONIC of a run; of a drill that was not run, since traffic began.
    """

    begin_ns: int
    end_ns: int
    after: str  # label of the edge that begins it; '' before the first
    crossing: tuple[Crossing, ...]
    unknown: int  # flows whose path nobody knows
    pathless: tuple[UndeliveredFlow, ...] = ()
    marred: tuple[int, ...] = ()  # flows whose path crosses a link that a fault makes lose packets
    unanswered: tuple[UndeliveredFlow, ...] = ()  # flows whose acknowledgements do not arrive


@dataclass(frozen=True, slots=True)
class Offered:
    """The offered load of a run or a drill, span by span. ``links``: the busiest, and all that are overloaded."""

    spans: tuple[StablePeriod, ...]
    links: tuple[OfferedLink, ...]
    flows: int = 0

    def overloaded(self, span: int) -> tuple[OfferedLink, ...]:
        """Return the overloaded links of a span, given by number."""
        return tuple(link for link in self.links if (link.shares[span] or 0.0) > FULL)

    @property
    def settled(self) -> tuple[int, ...]:
        """Numbers of the spans before the first edge, and of the last span after each edge."""
        last = {span.after: at for at, span in enumerate(self.spans)}
        return tuple(last.values())

    @property
    def known(self) -> bool:
        """True if the path of every flow is known at all times."""
        return not any(span.unknown for span in self.spans)


def overloads(offered: Offered, span: int) -> Iterator[str]:
    """Yield the overloaded links of a span, the worst first, those of one node together.

    'uplinks of p0.s0.t0.1: 133 % of their rate'.
    """

    def where(link: OfferedLink) -> tuple[str, bool, bool]:
        return link.sender, link.up, link.access

    grouped = [(of, list(links)) for of, links in groupby(sorted(offered.overloaded(span), key=where), where)]
    worst_first = sorted(grouped, key=lambda each: -max(link.shares[span] or 0.0 for link in each[1]))
    for (sender, up, access), links in worst_first:
        yield f"{_named(links, sender, up=up, access=access)}: {_percent(links, span)}"


def _named(links: Sequence[OfferedLink], sender: str, *, up: bool, access: bool) -> str:
    if len(links) == 1:
        kind = f"access link {links[0].link} from" if access else "uplink" if up else "downlink"
        return f"{kind} {sender} to {links[0].towards}"
    if access:
        return f"ports of host {sender}" if up else f"ports of {sender} to {len(links)} NICs"
    return f"{'uplinks' if up else 'downlinks'} of {sender}"


def _percent(links: Sequence[OfferedLink], span: int) -> str:
    """Return '133 % of its rate', or for several links '101 to 133 % of their rate'. Never '100 %', as it is more."""
    shares = sorted(100 * (link.shares[span] or 0.0) for link in links)
    low, high = (f"{share:.0f}" if share >= 100.5 else f"{share:.2f}" for share in (shares[0], shares[-1]))
    return f"{low if low == high else f'{low} to {high}'} % of {'its' if len(links) == 1 else 'their'} rate"
