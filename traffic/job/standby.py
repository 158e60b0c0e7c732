"""Replacement of a failed job's unreachable hosts by spares. PURE, no numpy.

A scheduler does this before it restarts a job (MegaScale, NSDI 2024, section 4: nodes that fail the tests between NICs
are blocked, and healthy ones take their place). NICs of other hosts on the same rail send an echo request to every NIC
that the job uses, and to those of every spare host. Faults are not known to the scheduler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric, Nic, Node

ASKERS = 8
"""Most requests to each NIC: LAGs and switches hash each pair of addresses separately, so one bad path is not all."""


@dataclass(frozen=True, slots=True)
class Question:
    """Echo request from ``asker`` to ``asked``, two NICs of a rail."""

    asker: Nic
    asked: Nic


@dataclass(frozen=True, slots=True)
class Replaced:
    """A host whose ranks another one has taken over."""

    host: str
    by: str
    ranks: tuple[int, ...]


def questions(nics: Sequence[Nic]) -> tuple[Question, ...]:
    """Return the echo requests among NICs, ordered by host: the next NICs on its rail test each NIC."""
    found = []
    for rail in dict.fromkeys(nic.rail for nic in nics):
        there = [nic for nic in nics if nic.rail == rail]
        for at, nic in enumerate(there):
            around = (*there[at + 1 :], *there[:at])
            found += [Question(asker, nic) for asker in around[:ASKERS]]
    return tuple(found)


def cut_off(asked: Iterable[Question], answered: Collection[Question]) -> tuple[str, ...]:
    """Return the hosts with a NIC that answered no request, in order of the requests."""
    silent = {each.asked.name: each.asked for each in asked}
    for each in answered:
        silent.pop(each.asked.name, None)
    return tuple(dict.fromkeys(nic.host for nic in silent.values()))


def replacements(fabric: Fabric, lost: Iterable[str], spares: Sequence[str]) -> Mapping[str, str]:
    """Return the spare for each lost host, while they last: the first left of its segment, else its pod, else any."""
    left, found = [fabric.node(name) for name in spares], dict[str, str]()
    for host in map(fabric.node, lost):
        if not left:
            break
        nearest = min(left, key=lambda spare: _distance(host, spare))
        left.remove(nearest)
        found[host.name] = nearest.name
    return found


def _distance(one: Node, other: Node) -> int:
    return 0 if (one.pod, one.segment) == (other.pod, other.segment) else 1 if one.pod == other.pod else 2
