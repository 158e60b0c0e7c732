"""Rates of constant-rate streams for each piece of their paths, and their sums over windows of time. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpn.scenarios.model.paths_over_time import Outage, PathsOverTime, Piece
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.framing import ACK_BYTES, ETHERNET_BYTES, IP_UDP_BYTES, wire_bytes
from hpn.traffic.fluid.links import Links
from hpn.traffic.fluid.solve import link_load, padded, proportional_drop
from hpn.traffic.streams.qp import RetryPolicy, ack_delay_ns

Floats = NDArray[np.float64]

ACK_BITS = 8 * (ETHERNET_BYTES + IP_UDP_BYTES + ACK_BYTES)
"""Bits of an acknowledgement, as counted by a port's rate limit."""


@dataclass(frozen=True, eq=False)
class Course:
    """Rates over time: one row per piece. ``bounds_ns`` has the limits of the pieces, one more than rows."""

    bounds_ns: tuple[int, ...]
    offered: Floats  # (pieces, flows), packets/s sent
    delivered: Floats  # packets/s received
    carried: Floats  # (pieces, directed links), bit/s out of a port, with acknowledgements
    died_ns: tuple[int | None, ...]  # by flow: when its queue pair exhausted its retries

    def packets(self, of: Floats, begin_ns: int, end_ns: int) -> Floats:
        """Return the integral of rates over a span: packets of each flow, or bits of each link."""
        bounds = np.clip(np.array(self.bounds_ns, dtype=np.float64), begin_ns, end_ns)
        found: Floats = np.diff(bounds) @ of / 1e9
        return found


def course_of(links: Links, flows: Sequence[FlowSpec], ways: PathsOverTime, end_ns: int, tick_ns: int) -> Course:
    """Return the rates of streams on their paths until ``end_ns``; a flow stops when its queue pair fails.

    ``tick_ns``: tick of the lab's workers, which determines how often they acknowledge.
    """
    died = [_died_ns(flow, ways.outages_of.get(at, ()), end_ns) for at, flow in enumerate(flows)]
    moments = sorted({piece.begin_ns for piece in ways.pieces} | {at for at in died if at is not None})
    bounds = (*(at for at in moments if at < end_ns), end_ns)
    pps = np.array([flow.rate_pps for flow in flows])
    bits = np.array([8 * wire_bytes(flow.path_mtu) for flow in flows], dtype=np.float64)
    dead_at = np.array([np.inf if at is None else at for at in died])
    acknowledged_pps = answers_pps(flows, tick_ns)
    rows = []
    for begin_ns, _ in pairwise(bounds):
        piece = [each for each in ways.pieces if each.begin_ns <= begin_ns][-1]
        offered = np.where(dead_at > begin_ns, pps, 0.0)
        rows.append((offered, *_solved(links, piece, offered, bits, acknowledged_pps)))
    sent, delivered, carried = (np.array(column) for column in zip(*rows, strict=True))
    return Course(bounds, sent, delivered, carried, tuple(died))


def _solved(
    links: Links, piece: Piece, offered: Floats, bits: Floats, acknowledged_pps: float
) -> tuple[Floats, Floats]:
    """Return the received packets/s of each flow, and the bit/s out of each directed link.

    Arrived packets are acknowledged at a limited rate. If data and acknowledgements do not fit together, both lose.
    """
    capacity = capacity_of(links, piece.slow)
    data = np.where((piece.links >= 0).any(axis=1), offered * bits, 0.0)
    rate, load = proportional_drop(piece.links, capacity, data)
    answers = np.where(piece.arrives, np.minimum(rate / bits, acknowledged_pps), 0.0) * ACK_BITS
    both = load + link_load(piece.answers, answers, len(load))
    if (both > capacity).any():
        hops = max(piece.links.shape[1], piece.answers.shape[1])
        paths = np.concatenate((padded(piece.links, hops), padded(piece.answers, hops)))
        all_rates, both = proportional_drop(paths, capacity, np.concatenate((data, answers)))
        rate = all_rates[: len(data)]
    return np.where(piece.arrives, rate / bits, 0.0), np.minimum(both, capacity)


def capacity_of(links: Links, slow: Mapping[str, float]) -> Floats:
    """Return the rate of each directed link in bit/s; ``slow`` has the share that is left of a link's rate."""
    capacity = links.capacity.copy()
    for name, share in slow.items():
        link = links.fabric.link(name)
        at = links.out_of(link.lower.node, link.lower.name)
        capacity[[at, at ^ 1]] *= share
    return capacity


def answers_pps(flows: Sequence[FlowSpec], tick_ns: int) -> float:
    """Return the maximum rate of acknowledgements per second: workers acknowledge each flow once per look."""
    delay_ns = ack_delay_ns(map(RetryPolicy.of, flows))
    return 1e9 / (max(delay_ns, tick_ns) // tick_ns * tick_ns)


def _died_ns(flow: FlowSpec, outages: Sequence[Outage], end_ns: int) -> int | None:
    """Return when a queue pair gives up: its retries last for a fixed time after the last acknowledgement."""
    patience_ns = RetryPolicy.of(flow).patience_ns
    if not flow.ib_timeout:
        return None
    for outage in outages:
        given_up_ns = outage.begin_ns + patience_ns
        if given_up_ns < (end_ns if outage.end_ns is None else outage.end_ns):
            return given_up_ns
    return None
