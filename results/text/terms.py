"""The terms of the field and of hpn that a reader of results meets, each with one plain meaning. Pure.

Changes when results use another term. Pages link the terms that they use, and docs/glossary.md has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A term; ``also``: other words for it that are found in text, beside its plural with s."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Where a page has it: 'term-queue-pair'."""
        return f"term-{self.name.lower().replace(' ', '-')}"


_ALL = (
    Term("Agg", "an aggregation switch above the ToRs; p0.a1.7 is Agg 7 of plane 1 in pod 0"),
    Term("BGP", "the routing protocol by which switches tell each other how to reach each NIC"),
    Term("bound", "a figure with <, <=, > or >=: the true value lies on that side", ("lower bound", "upper bound")),
    Term("busbw", "bus bandwidth of a collective as nccl-tests define it: comparable whatever the number of ranks"),
    Term("carrier", "whether a port sees a signal on its cable; the first sign of a broken link"),
    Term("CNP", "congestion notification packet: tells a sender that its packets were marked", ("cnps",)),
    Term("collective", "an operation of all ranks together, such as AllReduce", ("all-reduce", "AllReduce")),
    Term("congestion", "more traffic is sent over a link than it carries; its queue fills and drops the rest"),
    Term("converged", "from then on no protocol in the lab changed its state any more"),
    Term("Core", "a switch above the Aggs that joins pods; c0.3 is Core 3 of plane 0"),
    Term("DCQCN", "congestion control of RDMA: a sender slows down for each CNP, then speeds up again"),
    Term("edge", "one moment at which faults are injected (a failure) or undone (a repair), numbered from 0"),
    Term("event loop", "the part of hpn that stamps events; while it is late, events are stamped too late"),
    Term("evidence", "the flow, NIC or event that gave the figure of an expectation"),
    Term("expectation", "a limit or an order of events that the drill file asks for; the verdict holds the run to it"),
    Term("failure", "an edge at which a fault breaks something"),
    Term("fault", "something that the drill breaks; the drill file names each, for example cut"),
    Term("flow", "the packets of one queue pair, from one NIC to another"),
    Term("goodput", "payload that arrived, in bits per second"),
    Term("host", "a server; p0.s1.h3 is host 3 of segment 1 in pod 0"),
    Term("host route", "the route to one NIC, which its ToRs announce by BGP and withdraw when its link is down"),
    Term("injection", "the call that breaks or mends something; times after an edge count from it"),
    Term("interval", "the least and the most that a figure may be, with all errors of the measurement"),
    Term("iteration", "one training step of a job, on all ranks"),
    Term("LACP", "the protocol by which a NIC and its ToRs agree on the ports of a LAG (IEEE 802.1AX)"),
    Term("LAG", "link aggregation: the ports of a NIC work as one, and a broken one is left out"),
    Term("lost iterations", "how many more iterations the job would have ended at the rate from before the fault"),
    Term("margin", "how far the figure is from the limit; negative: the limit was broken"),
    Term("marked", "packets that a switch marked with ECN because its queue was long"),
    Term("neighbour", "the entry of a ToR that maps a NIC's IP address to its MAC address (ARP)", ("ARP",)),
    Term("NIC", "a network card; p0.s1.h3.r2 serves rail 2 of host 3 of segment 1, with a port in each plane"),
    Term("notice", "a message of path control: a NIC cannot be reached through a plane, or can be again"),
    Term("offered load", "what senders put on a link, as a share of its rate; above 100 % packets are dropped"),
    Term("other flows", "flows that no fault touches; they must lose nothing", ("other flow",)),
    Term("outage", "a time in which no packet of a flow arrived; < 1.18 ms: none, and a longer one would be seen"),
    Term("path control", "the part of HPN that tells hosts which planes reach a NIC, and moves queue pairs"),
    Term("plane", "one of the networks that share no switch and no link; each port of a NIC is in one"),
    Term("p99", "99 % of the readings are not above it"),
    Term("pod", "segments that share Aggs; p0 in names"),
    Term("queue pair", "an RDMA connection; a>b#0 is number 0 from NIC a to NIC b", ("QP",)),
    Term("queue pair death", "a queue pair gave up after its retries, as RDMA hardware does", ("died",)),
    Term("rail", "the NICs of one number on all hosts; r2 in names"),
    Term("rank", "one process of a job, usually one GPU"),
    Term("receiver flows", "flows whose destination NIC is hit; routes and path control must move them"),
    Term(
        "hit flows",
        "flows that end at what the fault breaks, or have a path over it",
        ("flows hit",),
    ),
    Term("repair", "an edge at which what was broken works again"),
    Term("segment", "hosts below the same ToRs; s1 in names"),
    Term("sender flows", "flows whose source NIC is hit; its LAG must move them"),
    Term("steers", "the LAG is told which port a queue pair has to use"),
    Term("ToR", "a top-of-rack switch; p0.s1.t2.0 is the one of rail 2, plane 0, in segment 1 of pod 0"),
    Term("tail drop", "a packet that a switch threw away because its queue was full"),
    Term("tier", "the kind of link that a port is at: tor down leads from a ToR to a NIC"),
    Term("virtual time", "the clock stands still while anything computes, so the machine's load changes no figure"),
)
"""By name as a reader looks them up."""

TERMS: Mapping[str, Term] = {term.name: term for term in sorted(_ALL, key=lambda term: term.name.lower())}
