"""Rates of constant-rate streams, piece by piece of their ways, and what is added up over windows of time. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from scenarios.model.ways import Outage, Piece, Ways
from testbed.fabric.model import Fabric
from traffic.flow import FlowSpec
from traffic.flowlevel.links import Links
from traffic.flowlevel.solve import proportional_drop
from traffic.framing import wire_bytes
from traffic.qp import RetryPolicy

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Course:
    """Rates over time: row by row the pieces that ``bounds_ns`` part, which has one more than there are rows."""

    bounds_ns: tuple[int, ...]
    offered: Floats  # (pieces, flows), packets/s that are sent
    delivered: Floats  # packets/s that arrive
    carried: Floats  # (pieces, directed links), bit/s that leave a port
    died_ns: tuple[int | None, ...]  # by flow: its queue pair had used its retries up

    def packets(self, of: Floats, begin_ns: int, end_ns: int) -> Floats:
        """What rates add up to from one moment to another: packets of each flow, or bits of each link."""
        bounds = np.clip(np.array(self.bounds_ns, dtype=np.float64), begin_ns, end_ns)
        found: Floats = np.diff(bounds) @ of / 1e9
        return found


def course_of(fabric: Fabric, links: Links, flows: Sequence[FlowSpec], ways: Ways, end_ns: int) -> Course:
    """The rates of streams on their ways, until ``end_ns``; one whose queue pair dies sends nothing any more."""
    died = [_died_ns(flow, [each for each in ways.outages if each.flow == at], end_ns) for at, flow in enumerate(flows)]
    moments = sorted({piece.begin_ns for piece in ways.pieces} | {at for at in died if at is not None})
    bounds = (*(at for at in moments if at < end_ns), end_ns)
    pps = np.array([flow.rate_pps for flow in flows])
    bits = np.array([8 * wire_bytes(flow.path_mtu) for flow in flows], dtype=np.float64)
    dead_at = np.array([np.inf if at is None else at for at in died])
    rows = []
    for begin_ns, _ in pairwise(bounds):
        piece = [each for each in ways.pieces if each.begin_ns <= begin_ns][-1]
        offered = np.where(dead_at > begin_ns, pps, 0.0)
        rows.append((offered, *_solved(fabric, links, piece, offered, bits)))
    sent, delivered, carried = (np.array(column) for column in zip(*rows, strict=True))
    return Course(bounds, sent, delivered, carried, tuple(died))


def _solved(fabric: Fabric, links: Links, piece: Piece, offered: Floats, bits: Floats) -> tuple[Floats, Floats]:
    """Packets/s that arrive of each flow, and bit/s that leave by each directed link."""
    capacity = links.capacity.copy()
    for name, share in piece.slow.items():
        link = fabric.link(name)
        at = links.out_of(link.lower.node, link.lower.name)
        capacity[[at, at ^ 1]] *= share
    sends = (piece.links >= 0).any(axis=1)
    rate, load = proportional_drop(piece.links, capacity, np.where(sends, offered * bits, 0.0))
    return np.where(piece.arrives, rate / bits, 0.0), np.minimum(load, capacity)


def _died_ns(flow: FlowSpec, outages: Sequence[Outage], end_ns: int) -> int | None:
    """When a queue pair gives up: so long after the last acknowledgement as its retries last."""
    patience_ns = RetryPolicy(flow.ib_timeout, flow.retry_count).patience_ns
    if not flow.ib_timeout:
        return None
    for outage in outages:
        given_up_ns = outage.begin_ns + patience_ns
        if given_up_ns < (end_ns if outage.end_ns is None else outage.end_ns):
            return given_up_ns
    return None
