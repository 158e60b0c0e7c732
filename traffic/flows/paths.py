"""Source port selection: spread a NIC's queue pairs over its ports and over the links behind them. Pure.

This is HPN's path selection in its first form (paper section 6.2, RePaC). The host knows the path of each source port,
so it picks ports whose paths share as few links as possible. ``Router`` maps source ports to paths.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from hpn.testbed.entries import Registry
from hpn.traffic.flows.choosers import (
    MOST_CANDIDATES,
    Anew,
    Covering,
    Disjoint,
    Drawn,
    DrawnOnce,
    Hashed,
    InTurn,
    LinkDisjoint,
    Pinned,
)
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.path_search import (
    SEARCH,
    Router,
    drawn_ports,
)


@dataclass(frozen=True, slots=True)
class Spread:
    """The flows with their chosen source ports, and the most loaded link as a share of its rate."""

    flows: tuple[FlowSpec, ...]
    worst_link: str
    worst_load: float


def covering(
    flows: Sequence[FlowSpec],
    router: Router,
    later: Sequence[Sequence[FlowSpec]] = (),
    candidates: int = MOST_CANDIDATES,
) -> Spread:
    """Assign source ports so that paths cross every link, and each of them with others than its neighbours.

    ``candidates``: source ports tried for each queue pair.
    """
    return _chosen(Covering(router, candidates), flows, later)


def spread(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign source ports so that each NIC uses its ports in turn and no link is loaded needlessly.

    Greedy, in flow order. Acknowledgements are spread over ports too but do not count as load. Each of ``later`` is a
    set of replacement flows that begin together; the flows they replace no longer count as load. The worst load is that
    of any time.
    """
    return _chosen(Disjoint(router), flows, later)


def in_turn(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign each NIC's ports in turn, for data and for acknowledgements; hashing decides the path behind them.

    Adapters that give each new queue pair the next port do the same (mlx5's round-robin port affinity under LAG).
    """
    return _chosen(InTurn(router), flows, later)


def hashed(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign the source ports that a RoCE stack picks (``flow.default_sport``); LAGs and switches hash them."""
    return _chosen(Hashed(router), flows, later)


def link_disjoint(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign source ports so that paths from one NIC to another share no link between switches.

    HPN's library does so for the queue pairs of a connection (paper section 6.2). If there are fewer paths than queue
    pairs, they share as few links as possible. Of equally good paths, the one with the least load is taken.
    """
    return _chosen(LinkDisjoint(router), flows, later)


def link_disjoint_anew(
    staying: Sequence[FlowSpec], moving: Sequence[FlowSpec], homes: Mapping[int, int], router: Router
) -> Iterator[FlowSpec]:
    """Yield ``moving``, in any order, with the best source ports for the present state.

    A flow that would be alone on its home path (``homes``: source ports by flow) reverts to it. A flow that is alone on
    its present path stays. The others choose again. ``router`` returns no links where packets do not arrive. No flow
    changes the port of its NIC.
    """
    choosing, left = Anew(router, staying), list(moving)
    for sports in (homes, {flow.id: flow.sport for flow in moving}):
        for flow in tuple(left):
            if choosing.fits(flow, sports[flow.id]):
                left.remove(flow)
                yield replace(flow, sport=sports[flow.id])
    for flow in left:
        yield choosing.again(flow)


def drawn_again(flow: FlowSpec, fits: Callable[[int], bool], seed: int, again: int) -> int | None:
    """Return another source port that ``fits``, drawn by ``seed`` for the ``again``-th time (from 1); None if there is
    none."""
    draw = random.Random(f"{seed} {flow.id} {flow.src_nic} {flow.dst_nic} again {again}")
    return next(filter(fits, islice(drawn_ports(draw), SEARCH)), None)


def drawn(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = (), seed: int = 0) -> Spread:
    """Assign random source ports by ``seed``: each queue pair adds entropy, and switches hash it.

    Meta's E-ECMP does the same: more queue pairs, and switches that hash what differs between them (SIGCOMM 2024,
    section 5).
    """
    return _chosen(Drawn(router, seed), flows, later)


def drawn_once(
    flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = (), seed: int = 0
) -> Spread:
    """Assign one random source port to all queue pairs between two NICs: no switch can tell them apart."""
    return _chosen(DrawnOnce(router, seed), flows, later)


def pinned(flows: Sequence[FlowSpec], router: Router, later: Sequence[Sequence[FlowSpec]] = ()) -> Spread:
    """Assign source ports by whose path leaves the ToR by the uplink of the destination's index in its rack.

    Meta's first scheme (SIGCOMM 2024, section 4): static, and blind to other flows. After a failure hashes decide.
    """
    return _chosen(Pinned(router), flows, later)


Choose = Callable[[Sequence[FlowSpec], Router, Sequence[Sequence[FlowSpec]], int], Spread]


@dataclass(frozen=True, slots=True)
class SourcePorts:
    """An algorithm for choosing source ports.

    ``choose`` takes the flows, a router, replacement flows that begin later, and a seed for random choices.
    """

    name: str
    choose: Choose
    follows_ecmp: bool  # chosen again for a job's queue pairs when ECMP groups of their ToR change
    keeps_links_free: bool  # a link loaded beyond its rate is an error of the drill, not the subject
    takes_ports_in_turn: bool  # the k-th queue pair of a connection leaves by port k, modulo their number


def _seedless(choose: Callable[[Sequence[FlowSpec], Router, Sequence[Sequence[FlowSpec]]], Spread]) -> Choose:
    """Return a chooser that ignores the seed."""
    return lambda flows, router, later, _seed: choose(flows, router, later)


CHOICES: Registry[SourcePorts] = Registry(
    "choice of source ports",
    lambda choice: choice.name,
    (
        SourcePorts("disjoint", _seedless(spread), False, True, True),
        SourcePorts("link-disjoint", _seedless(link_disjoint), True, True, True),
        SourcePorts("in-turn", _seedless(in_turn), False, False, True),
        SourcePorts("hash", _seedless(hashed), False, False, False),
        SourcePorts("drawn", drawn, False, False, False),
        SourcePorts("drawn-once", drawn_once, False, False, False),
        SourcePorts("covering", _seedless(covering), False, True, True),
        SourcePorts("pinned", _seedless(pinned), False, False, True),
    ),
    of=SourcePorts,
)
"""Source port algorithms, by their name in a drill file."""


def _chosen(choosing: InTurn, flows: Sequence[FlowSpec], later: Sequence[Sequence[FlowSpec]]) -> Spread:
    choosing.add(flows)
    for stand_ins in later:
        choosing.drop({flow.replaces for flow in stand_ins})
        choosing.add(stand_ins)
    return Spread(tuple(choosing.chosen), *choosing.worst)
