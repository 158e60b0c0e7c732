"""Which hosts of a dead job are replaced by spares: those that answer nobody. PURE, no numpy.

What a scheduler does before it starts a job again (MegaScale, NSDI 2024, section 4: nodes that fail the tests between
NICs are blocked, and as many healthy ones take their place): every NIC that the job uses, and the same of every spare
host, is asked for an echo by NICs of other hosts on its rail. Nobody is told of faults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric, Nic, Node

ASKERS = 8
"""Of each NIC, at most: LAGs and switches hash each pair of addresses anew, so one bad path is not all of them."""


@dataclass(frozen=True, slots=True)
class Question:
    """Whether ``asked`` answers ``asker``; two NICs of a rail."""

    asker: Nic
    asked: Nic


@dataclass(frozen=True, slots=True)
class Replaced:
    """A host whose ranks another one has taken over."""

    host: str
    by: str
    ranks: tuple[int, ...]


def questions(nics: Sequence[Nic]) -> tuple[Question, ...]:
    """Who asks whom, of NICs in the order of their hosts: each is asked by the next ones on its rail."""
    found = []
    for rail in dict.fromkeys(nic.rail for nic in nics):
        there = [nic for nic in nics if nic.rail == rail]
        for at, nic in enumerate(there):
            around = (*there[at + 1 :], *there[:at])
            found += [Question(asker, nic) for asker in around[:ASKERS]]
    return tuple(found)


def cut_off(asked: Iterable[Question], answered: Collection[Question]) -> tuple[str, ...]:
    """Hosts with a NIC that answers nobody, in the order in which they were asked."""
    silent = {each.asked.name: each.asked for each in asked}
    for each in answered:
        silent.pop(each.asked.name, None)
    return tuple(dict.fromkeys(nic.host for nic in silent.values()))


def replacements(fabric: Fabric, lost: Iterable[str], spares: Sequence[str]) -> Mapping[str, str]:
    """The spare for each lost host: the first left of its segment, else of its pod, else any; while they last."""
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
