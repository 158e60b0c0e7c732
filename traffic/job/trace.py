"""A recorded sequence of collectives and messages as a job: every rank does its steps in order. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.registry import collective
from hpn.traffic.job.job import Site


@dataclass(frozen=True, slots=True)
class Call:
    """A collective. ``ranks``: the root first, if any; None: all. ``request``: its identifier in a later wait."""

    kind: str
    size_bytes: int
    ranks: tuple[int, ...] | None
    request: int | None
    at_ns: int | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait of a call's ranks until it is over."""

    request: int


@dataclass(frozen=True, slots=True)
class SendCall:
    """Message from one rank to another; the sender waits for its acknowledgement."""

    source: int
    target: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ReceiveCall:
    """Wait of a rank for a message sent to it."""

    source: int
    target: int


Step = Call | Wait | SendCall | ReceiveCall


@dataclass(frozen=True, slots=True)
class TraceWork:
    """The steps of a trace once per iteration; times and sizes are those of the network it was recorded on."""

    KEY: ClassVar[str] = "trace"  # of a job in drill files

    steps: tuple[Step, ...]
    slices: int = 4

    def compose(self, composer: Composer, site: Site) -> None:
        """Write the ranks' operations. InputError when the trace names ranks that the job does not have."""
        replay = _Replay(composer, site, self.slices)
        for step in self.steps:
            replay.write(step)


class _Replay:
    """Writer of an iteration; ``_last`` holds, by rank, the operations that its next step comes after."""

    def __init__(self, composer: Composer, site: Site, slices: int) -> None:
        self._composer, self._site, self._slices = composer, site, slices
        self._last: dict[int, tuple[int, ...]] = dict.fromkeys(range(len(site.places)), ())
        self._open: dict[int, Mapping[int, int]] = {}  # calls that are waited for later
        self._group: dict[tuple[int, ...], Mapping[int, int]] = {}  # the last call of each group: one at a time
        self._sent: dict[tuple[int, int], list[int]] = {}  # by source and target: arrivals not yet received
        self._clock: dict[int, int] = {}  # by rank: total pause since the iteration began

    def write(self, step: Step) -> None:
        """Add a step to the programs of its ranks."""
        if isinstance(step, Call):
            self._call(step)
        elif isinstance(step, Wait):
            for rank, end in self._open.pop(step.request).items():
                self._last[rank] = (*self._last[rank], end)
        elif isinstance(step, SendCall):
            label = f"{step.source} to {step.target}"
            size = self._site.size(step.size_bytes)
            after = {step.source: self._last.get(step.source, ())}
            ends = self._composer.message(step.source, step.target, size, label, after=after)
            self._last[step.source] = (ends[step.source],)
            self._sent.setdefault((step.source, step.target), []).append(ends[step.target])
        else:
            arrival = self._sent[step.source, step.target].pop(0)
            self._last[step.target] = (*self._last[step.target], arrival)

    def _call(self, call: Call) -> None:
        ranks = tuple(self._last) if call.ranks is None else call.ranks
        before = self._group.get(ranks, {})
        after = {}
        for rank in ranks:
            ends = [*self._last.get(rank, ()), *([before[rank]] if before else ())]
            after[rank] = (*ends, *self._not_before(rank, call.at_ns))
        size = self._site.size(call.size_bytes)
        ended = self._composer.collective(
            collective(call.kind), ranks, size, call.kind, slices=self._slices, after=after
        )
        self._group[ranks] = ended
        if call.request is None:
            self._last |= {rank: (end,) for rank, end in ended.items()}
        else:
            self._open[call.request] = ended

    def _not_before(self, rank: int, at_ns: int | None) -> Sequence[int]:
        """Return a pause until that time of the trace, counted from the beginning of the iteration."""
        ns = 0 if at_ns is None else self._site.scale.ns(at_ns) - self._clock.get(rank, 0)
        if ns <= 0 or rank not in self._last:
            return ()
        self._clock[rank] = self._clock.get(rank, 0) + ns
        return (self._composer.pause(rank, ns),)
