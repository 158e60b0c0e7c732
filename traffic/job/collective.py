"""A job that runs one collective after the other, as nccl-tests does; also several groups at once. PURE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hpn.testbed.entries import Registry
from hpn.testbed.errors import InputError
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.locations import Place
from hpn.traffic.collectives.registry import collective
from hpn.traffic.job.job import Site


@dataclass(frozen=True, slots=True)
class Grouping:
    """Partition of ranks into groups that each run a collective."""

    name: str
    summary: str  # for docs/drills.md
    groups: Callable[[Sequence[Place]], list[list[int]]]


def _together(places: Sequence[Place]) -> list[list[int]]:
    return [list(range(len(places)))]


def _by_rail(places: Sequence[Place]) -> list[list[int]]:
    return [
        [rank for rank, place in enumerate(places) if place.rail == rail]
        for rail in sorted({place.rail for place in places})
    ]


def _by_host(places: Sequence[Place]) -> list[list[int]]:
    return [
        [rank for rank, place in enumerate(places) if place.host == host]
        for host in dict.fromkeys(place.host for place in places)
    ]


GROUPINGS: Registry[Grouping] = Registry(
    "grouping",
    lambda grouping: grouping.name,
    (
        Grouping("all", "all ranks together", _together),
        Grouping("rail", "the ranks of each rail: as many groups at once as there are rails", _by_rail),
        Grouping("host", "the ranks of each host", _by_host),
    ),
    of=Grouping,
)
"""Groupings, by their name in a drill file."""


@dataclass(frozen=True, slots=True)
class CollectiveWork:
    """One collective per iteration, in every group at once.

    ``ways``: each group is split into this many, its ranks in turn (Multi-AllReduce: four over 512 GPUs, say).
    ``pause_ns`` passes before.
    """

    KEY: ClassVar[str] = "collective"  # of a job in drill files

    kind: str
    size_bytes: int
    algorithm: str | None = None
    slices: int = 4
    grouping: str = "all"
    ways: int = 1
    pause_ns: int = 0

    def compose(self, composer: Composer, site: Site) -> None:
        """Write the ranks' operations. InputError when the kind, the algorithm or a group does not fit."""
        chosen = collective(self.kind, self.algorithm)
        if self.grouping not in GROUPINGS:
            raise InputError(f"no grouping {self.grouping!r}; there are {', '.join(GROUPINGS)}")
        if self.ways < 1:
            raise InputError(f"{chosen.name} is to run {self.ways} ways at once; at least 1")
        groups = [
            group[way :: self.ways]
            for group in GROUPINGS[self.grouping].groups(site.places)
            for way in range(self.ways)
        ]
        for at, ranks in enumerate(groups):
            after = {}
            if self.pause_ns:
                pause = site.scale.ns(self.pause_ns)
                after = {rank: (composer.pause(rank, pause),) for rank in ranks}
            label = chosen.kind if len(groups) == 1 else f"{chosen.kind} {at}"
            composer.collective(chosen, ranks, site.size(self.size_bytes), label, slices=self.slices, after=after)
