"""Matching of nodes of different ranks, and an order in which all can be written. PURE.

A collective is one step of all its ranks; those of one group of ranks follow one another, as on an NCCL communicator. A
send and its receive are two steps: data that is not awaited yet is stored at its target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpn.testbed.errors import InputError
from hpn.traffic.job.chakra.nodes import At, Group, Joint, Node, RankTrace, Received, Sent, Spent
from hpn.traffic.job.chakra.topological_order import DependencyCycle, in_order


@dataclass(slots=True)
class Step:
    """A unit of writing: a node, or those of all ranks of a collective. ``before``: steps, by number."""

    members: Mapping[At, Node]
    before: set[int] = field(default_factory=set)
    also: Mapping[int, At] = field(default_factory=dict)  # by rank: a dependency of a member besides its ``after``


class Matched:
    """The steps of all ranks, with collectives and messages matched."""

    def __init__(self, traces: Sequence[RankTrace]) -> None:
        """Match the traces. InputError when ranks disagree."""
        self._traces = traces
        self._steps: list[Step] = []
        self._of: dict[At, int] = {}  # the step of each node
        self._problems: list[str] = []
        self._collectives()
        self._messages()
        for rank, trace in enumerate(traces):
            for place, node in enumerate(trace.nodes):
                if isinstance(node.does, Spent):
                    self._add({(rank, place): node})
        if self._problems:
            raise InputError(self._problems, ("trace",))
        for (rank, place), number in self._of.items():
            self._steps[number].before |= {self._of[rank, other] for other in traces[rank].nodes[place].after}

    def in_order(self) -> list[Step]:
        """Return the steps, each after all its dependencies. InputError when some depend on one another in a circle."""
        try:
            order = in_order({number: step.before for number, step in enumerate(self._steps)}, self._key)
        except DependencyCycle as error:
            name = self._name(next(iter(self._steps[error.member].members)))
            text = "what it comes after, here and at other ranks, leads back to it"
            raise InputError(f"{name}: {text}", ("trace",)) from None
        return [self._steps[number] for number in order]

    def _key(self, number: int) -> tuple[int, int]:
        rank, place = next(iter(self._steps[number].members))
        return place, rank

    def _name(self, at: At) -> str:
        trace = self._traces[at[0]]
        return f"{trace.file}: node {trace.nodes[at[1]].id}"

    def _add(self, members: Mapping[At, Node]) -> int:
        number = len(self._steps)
        self._steps.append(Step(members))
        self._of |= dict.fromkeys(members, number)
        return number

    def _collectives(self) -> None:
        """Create a step for the n-th collective of each group of ranks."""
        found: dict[Group, dict[int, list[At]]] = {}
        everyone = tuple(range(len(self._traces)))
        for rank, trace in enumerate(self._traces):
            for place, node in enumerate(trace.nodes):
                if isinstance(node.does, Joint):
                    group = node.does.ranks or everyone
                    if rank not in group or not set(group) <= set(everyone):
                        text = f"a collective of ranks {_listed(group)} at rank {rank} of {len(everyone)}"
                        self._problems.append(f"{self._name((rank, place))}: {text}")
                    else:
                        found.setdefault(group, {}).setdefault(rank, []).append((rank, place))
        for group, of_rank in found.items():
            self._group(group, of_rank)

    def _group(self, group: Group, of_rank: Mapping[int, Sequence[At]]) -> None:
        most = max(of_rank.values(), key=len)
        for rank in group:
            if len(of_rank.get(rank, ())) < len(most):
                text = f"{len(of_rank.get(rank, ()))} collectives of ranks {_listed(group)}"
                more = f"{self._traces[most[0][0]].file} has {len(most)}, the last is its {self._name(most[-1])}"
                self._problems.append(f"{self._traces[rank].file}: {text}, and {more}")
                return
        before: tuple[int, Mapping[int, At]] | None = None
        for members in zip(*(of_rank[rank] for rank in group), strict=True):
            nodes = {at: self._traces[at[0]].nodes[at[1]] for at in members}
            for at, node in nodes.items():
                if _told(node) != _told(nodes[members[0]]):
                    text = f"is {_told(node)}, and {self._name(members[0])} is {_told(nodes[members[0]])}"
                    self._problems.append(f"{self._name(at)} {text}; each rank of a group does the same, in one order")
            number = self._add(nodes)
            if before is not None:
                self._steps[number].before.add(before[0])
                self._steps[number].also = before[1]
            before = number, {at[0]: at for at in members}

    def _messages(self) -> None:
        """Create a step for each send and each receive; the n-th of two ranks and a tag are matched."""
        ends: dict[tuple[int, int, int], tuple[list[At], list[At]]] = {}
        for rank, trace in enumerate(self._traces):
            for place, node in enumerate(trace.nodes):
                if isinstance(node.does, Sent):
                    ends.setdefault((rank, node.does.peer, node.does.tag), ([], []))[0].append((rank, place))
                elif isinstance(node.does, Received):
                    ends.setdefault((node.does.peer, rank, node.does.tag), ([], []))[1].append((rank, place))
        for (source, target, tag), (sent, received) in ends.items():
            if source == target or not 0 <= max(source, target) < len(self._traces):
                text = f"goes from rank {source} to rank {target}, of {len(self._traces)}"
                self._problems.append(f"{self._name((sent or received)[0])} {text}")
            elif len(sent) != len(received):
                odd = (sent if len(sent) > len(received) else received)[min(len(sent), len(received))]
                text = f"{len(sent)} sends from rank {source} to rank {target} with tag {tag}, {len(received)} receives"
                self._problems.append(f"{self._name(odd)} has no other end: {text}")
            else:
                for pair in zip(sent, received, strict=True):
                    self._message(*pair)

    def _message(self, sent: At, received: At) -> None:
        ends = [self._traces[at[0]].nodes[at[1]] for at in (sent, received)]
        sizes = [end.does.size_bytes for end in ends if not isinstance(end.does, Spent)]
        if sizes[0] != sizes[1]:
            text = f"receives {sizes[1]} B, and {self._name(sent)} sends {sizes[0]} B"
            self._problems.append(f"{self._name(received)} {text}")
        first = self._add({sent: ends[0]})
        last = self._add({received: ends[1]})
        self._steps[last].before.add(first)
        self._steps[last].also = {received[0]: sent}


def _told(node: Node) -> str:
    return f"{node.does.kind} of {node.does.size_bytes} B" if isinstance(node.does, Joint) else ""


def _listed(group: Group) -> str:
    return ", ".join(map(str, group[:8])) + (", ..." if len(group) > 8 else "")
