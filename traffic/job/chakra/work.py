"""A Chakra execution trace as a job: every rank runs the nodes of its own graph. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.registry import collective
from hpn.traffic.job.chakra.matching import Matched, Step
from hpn.traffic.job.chakra.nodes import At, Joint, RankTrace, Sent, Spent
from hpn.traffic.job.job import Site

MOST_NODES = 20_000
"""Most nodes of a trace, all ranks together."""


@dataclass(frozen=True, slots=True)
class ChakraWork:
    """The graph of each rank once per iteration; ``shared``: all ranks run the only one.

    Times and sizes are those of the network that the trace was recorded on.
    """

    KEY: ClassVar[str] = "trace"  # of a job in drill files

    traces: tuple[RankTrace, ...]
    shared: bool = False
    slices: int = 4

    def compose(self, composer: Composer, site: Site) -> None:
        """Write the ranks' operations. InputError when their number differs from the trace's, or ranks disagree."""
        steps = Matched(self._of(len(site.places))).in_order()
        writer = _Writer(composer, site, self.slices)
        for step in steps:
            writer.write(step)

    def _of(self, ranks: int) -> tuple[RankTrace, ...]:
        traces = self.traces * ranks if self.shared else self.traces
        if len(traces) != ranks:
            text = f"a trace of {len(traces)} ranks ({traces[0].file} to {traces[-1].file}) is for as many GPUs"
            raise InputError(f"{text}; the job has {ranks}: write others of hosts and gpus", ("trace",))
        nodes = sum(len(trace.nodes) for trace in traces)
        if nodes > MOST_NODES:
            text = f"{traces[0].file}: {nodes} nodes in all of its {ranks} ranks; at most {MOST_NODES}"
            raise InputError(f"{text}: cut it to an iteration", ("trace",))
        return traces


class _Writer:
    """Writer of an iteration; ``_ends``: last operations of each node, for a send at its target too."""

    def __init__(self, composer: Composer, site: Site, slices: int) -> None:
        self._composer, self._site, self._slices = composer, site, slices
        self._ends: dict[At, Mapping[int, int]] = {}  # by rank

    def write(self, step: Step) -> None:
        """Add a step to the programs of its ranks."""
        after = {rank: self._after(step, (rank, place)) for rank, place in step.members}
        (rank, _), node = next(iter(step.members.items()))
        does = node.does
        if isinstance(does, Joint) and len(after) > 1:
            size = self._site.size(does.size_bytes) * (len(after) if does.kind == "all-gather" else 1)
            chosen = collective(does.kind)
            ends = self._composer.collective(chosen, tuple(after), size, does.kind, slices=self._slices, after=after)
        elif isinstance(does, Sent):
            label = f"{rank} to {does.peer}"
            ends = self._composer.message(rank, does.peer, self._site.size(does.size_bytes), label, after=after)
        elif isinstance(does, Spent) and does.ns:
            spend = self._composer.pause if does.on_cpu else self._compute
            ends = {rank: spend(rank, self._site.scale.ns(does.ns), after=after[rank])}
        else:
            ends = {rank: self._composer.meet(rank, after[rank])}
        for at in step.members:
            self._ends[at] = ends

    def _compute(self, rank: int, ns: int, after: Sequence[int]) -> int:
        return self._composer.compute(rank, ns, "compute", after)

    def _after(self, step: Step, at: At) -> tuple[int, ...]:
        rank, _ = at
        others = [(rank, place) for place in step.members[at].after]
        if rank in step.also:
            others.append(step.also[rank])
        return tuple(self._ends[other][rank] for other in others)
