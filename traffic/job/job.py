"""A job: repeated work of ranks, laid out on a fabric as programs. PURE, no numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from hpn.testbed.errors import InputError
from hpn.traffic.collectives.compose import Composer
from hpn.traffic.collectives.locations import CrossRail, Inside, Place
from hpn.traffic.collectives.program import Program
from hpn.traffic.congestion.scale import Scale

NVLINK_BPS = 3.2e12
"""Rate of a GPU into its host's NVLink domain, one way: 400 GB/s (HPN, section 2, has hosts of 400 to 900)."""


@dataclass(frozen=True, slots=True)
class Site:
    """Placement of a job: the places of its ranks, and the lab's scale, path MTU and NVLink.

    Sizes and times in a job are those of the real network; ``scale`` converts them to the lab's.
    """

    places: tuple[Place, ...]
    path_mtu: int
    scale: Scale
    nvlink_bps: float = NVLINK_BPS
    cross_rail: CrossRail = CrossRail.NVLINK

    @property
    def inside(self) -> Inside:
        """The inside of hosts at the lab's rates."""
        return Inside(self.scale.rate_bps(self.nvlink_bps), self.cross_rail)

    def size(self, real_bytes: int) -> int:
        """Return the lab's bytes for real ones; at least 1 unless those are 0."""
        return max(self.scale.bytes_(real_bytes), 1) if real_bytes else 0


class Work(Protocol):
    """Work of a job's ranks in an iteration: immutable, so that equal works on equal sites have one layout."""

    def compose(self, composer: Composer, site: Site) -> None:
        """Write the ranks' operations. InputError when the work does not fit the site."""

    def __hash__(self) -> int:
        """Return the same for equal works."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Checkpoint traffic: every host writes ``size_bytes`` to storage every ``every_ns``, or later if still writing.

    It runs alongside the job in another traffic class; the job does not wait for it.
    """

    size_bytes: int
    every_ns: int
    storage: tuple[Place, ...]  # hosts write to these in turn

    def compose(self, composer: Composer, site: Site, writers: Sequence[int], storage: Sequence[int]) -> None:
        """Write the operations of ``writers``, a rank for each host, and of ``storage``."""
        for at, writer in enumerate(writers):
            composer.pause(writer, site.scale.ns(self.every_ns))
            composer.message(writer, storage[at % len(storage)], site.size(self.size_bytes), "checkpoint")


@dataclass(frozen=True, slots=True)
class Job:
    """Programs of ranks, and the place of each rank. Those in ``background`` are of the second traffic class.

    Every rank begins its next iteration when its last has ended. A job's iteration is over when all ranks but
    background ones have done it.
    """

    places: tuple[Place, ...]  # by rank
    programs: tuple[Program, ...]
    background: frozenset[int] = frozenset()


@lru_cache(maxsize=4)  # a drill is laid out when it is checked and when it runs; those of a suite share jobs
def build(work: Work, site: Site, checkpoints: Checkpoints | None = None) -> Job:
    """Lay out a job on its site. InputError when something does not fit."""
    if checkpoints is None:
        composer = Composer(site.places, site.path_mtu, site.inside)
        work.compose(composer, site)
        return Job(site.places, composer.programs())
    if checkpoints.size_bytes < 1 or not checkpoints.storage:
        raise InputError("checkpoints need a size of at least 1 byte and a host to be written to")
    ranks = len(site.places)
    first_of_host = {place.host: place for place in reversed(site.places)}
    writing = [first_of_host[host] for host in dict.fromkeys(place.host for place in site.places)]
    places = (*site.places, *writing, *checkpoints.storage)
    composer = Composer(places, site.path_mtu, site.inside)
    work.compose(composer, site)
    writers = range(ranks, ranks + len(writing))
    checkpoints.compose(composer, site, writers, range(writers.stop, len(places)))
    return Job(places, composer.programs(), frozenset(range(ranks, len(places))))
