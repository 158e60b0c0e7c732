"""Glossary of terms in results, from the field and from hpn, each with one plain meaning. Pure.

Changes when results use another term. Pages link the terms that they use, and docs/glossary.md has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A term. ``also``: other words for it in texts, in addition to its plural with s."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Anchor of the term on a page: 'term-queue-pair'."""
        return f"term-{self.name.lower().replace(' ', '-')}"


_ALL = (
    Term("Agg", "an aggregation switch above the ToRs; p0.a1.7 is Agg 7 of plane 1 in pod 0"),
    Term("BGP", "the routing protocol of the switches"),
    Term("bound", "a figure with <, <=, > or >=: the truth lies on that side", ("lower bound", "upper bound")),
    Term("busbw", "bus bandwidth of a collective, as nccl-tests define it"),
    Term("carrier", "whether a port sees a signal on its cable"),
    Term("CNP", "congestion notification packet: tells a sender of marked packets", ("cnps",)),
    Term("collective", "an operation of all ranks together, such as AllReduce", ("all-reduce", "AllReduce")),
    Term("congestion", "a link gets more traffic than it carries"),
    Term("converged", "no protocol in the lab changed its state from then on"),
    Term("Core", "a switch above the Aggs that joins pods; c0.3 is Core 3 of plane 0"),
    Term("DCQCN", "congestion control of RDMA: a sender slows down for each CNP"),
    Term("digest", "a hash; equal ones mean the same fabric, drill or settings"),
    Term("edge", "a moment at which faults are injected (failure) or undone (repair)"),
    Term("event loop", "the part of hpn that stamps events; its lag makes stamps late"),
    Term("evidence", "the flow, NIC or event that gave a figure"),
    Term("expectation", "a limit or an order of events that the verdict checks"),
    Term("failure", "an edge at which a fault breaks something"),
    Term("fault", "what the drill breaks"),
    Term("flow", "the packets of one queue pair"),
    Term("full convergence", "the time from an injection to the recovery of the last flow (RFC 6412)"),
    Term("goodput", "payload that arrived, in bits per second"),
    Term("hit", "touched by a fault; a NIC is hit when one of its links is"),
    Term("headroom", "buffer for what still arrives after XOFF"),
    Term("PFC", "priority flow control: a full switch stops its neighbours, one class at a time"),
    Term("XOFF", "the PFC frame that stops a neighbour's class; XON lets it go on", ("XON",)),
    Term("host", "a server; p0.s1.h3 is host 3 of segment 1 in pod 0"),
    Term("host route", "the route to one NIC, announced by its ToRs while its link is up"),
    Term("injection", "the call that breaks or repairs; times count from it"),
    Term(
        "interval",
        "the least and the most that a figure of one run may be, by measurement error",
    ),
    Term("iteration", "one training step of a job, on all ranks"),
    Term("LACP", "the protocol by which a NIC and its ToRs agree on a LAG (IEEE 802.1AX)"),
    Term("LAG", "link aggregation: the ports of a NIC work as one"),
    Term("lost iterations", "iterations missing against the rate before the fault"),
    Term("margin", "distance of a figure from its limit; negative: broken"),
    Term("marked", "marked with ECN by a switch whose queue was long"),
    Term("neighbour", "a NIC's IP and MAC address at its ToR (ARP)", ("ARP",)),
    Term("NIC", "a network card; p0.s1.h3.r2 serves rail 2 of that host"),
    Term("noise floor", "the largest outage that is reported while nothing is wrong"),
    Term("notice", "a message of path control: a NIC is unreachable in a plane, or reachable again"),
    Term("offered load", "what senders put on a link, as a share of its rate"),
    Term("other flows", "flows that no fault touches; they must lose nothing", ("other flow",)),
    Term("outage", "a time in which no packet of a flow arrived"),
    Term("path control", "moves queue pairs to planes that work; HPN has it, the protocol here is our own"),
    Term("plane", "one of the networks that share no switch and no link"),
    Term("PLBM", "packet-loss-based method (RFC 6414): an outage is missing packets / rate"),
    Term("p99", "99 % of the readings are not above it"),
    Term("pod", "segments that share Aggs; p0 in names"),
    Term("queue pair", "an RDMA connection; a>b#0 is number 0 from a to b", ("QP",)),
    Term("queue pair death", "a queue pair gave up after its retries", ("died",)),
    Term("rail", "the NICs of one number on all hosts; r2 in names"),
    Term("rank", "one process of a job, usually one GPU"),
    Term("receiver flows", "flows whose destination NIC is hit; routes and path control must move them"),
    Term("hit flows", "flows with an end at a NIC that is hit; counts of an edge include transit", ("flows hit",)),
    Term("repair", "an edge at which what was broken works again"),
    Term("segment", "hosts below the same ToRs; s1 in names"),
    Term("sender flows", "flows whose source NIC is hit; its LAG must move them"),
    Term("steers", "makes the LAG send to a destination by a given port"),
    Term("TBM", "timestamp-based method (RFC 6414): an outage is a gap between stamps"),
    Term("ToR", "a top-of-rack switch; p0.s1.t2.0 is that of segment 1, rail 2, plane 0"),
    Term("tail drop", "a packet dropped because a queue was full"),
    Term("tier", "the kind of a link: tor down leads from a ToR to a NIC"),
    Term("transit", "of flows: a path is hit, the NICs at its ends are not"),
    Term("virtual time", "the clock stops while anything computes, so load changes no figure"),
)
"""Sorted by name, ignoring case."""

TERMS: Mapping[str, Term] = {term.name: term for term in sorted(_ALL, key=lambda term: term.name.lower())}
