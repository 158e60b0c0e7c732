"""``verbs``: RDMA writes over real queue pairs of the kernel, in a ring of each rail, step after step. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from hpn.testbed.errors import InputError
from hpn.testbed.files.units import duration
from hpn.traffic.client.client import Site
from hpn.traffic.client.plan import ClientPlan, ClientProcess, Starts
from hpn.traffic.client.ranks import ClientRank
from hpn.traffic.client.rdma import RdmaClient, device_of, missing_for, own_program, rails

_US, _MS = 1_000, 1_000_000


class Verbs(RdmaClient):
    """Every rank writes ``size`` to the next of its rail and waits for that of the one before; or a ring all-reduce.

    ``work: all-reduce``: all ranks of a rail end with the sum of ``size`` bytes of each, in two times as many writes as
    a rank has others, each of a rank's share. ``work: incast``: all ranks of a rail write to its first at once.
    ``ib_timeout`` is the exponent of a queue pair's timer (4.096 us times 2 to it), ``retry_count`` how often it is
    tried again; ``pause`` lies between two steps.
    """

    KEY = "verbs"
    SUMMARY = "RDMA writes around a ring of each rail, or all-reduces, over the kernel's own queue pairs"

    work: Literal["write", "all-reduce", "incast"] = "write"
    ib_timeout: int = Field(default=14, ge=1, le=31)
    retry_count: int = Field(default=7, ge=0, le=7)
    pause: Annotated[int, duration("0 ms", "10 s")] = 0

    def missing(self, site: Site) -> str | None:
        """Return what is missing: libibverbs, or its driver for Soft-RoCE; else None."""
        return missing_for(self.KEY)

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return a process for each rank, with its neighbours. InputError for a single rank on a rail."""
        made: dict[int, ClientProcess] = {}
        for ring in rails(ranks):
            if len(ring) == 1:
                raise InputError(f"rank {ring[0].rank} is alone on {ring[0].interface}: write more ranks", ("ranks",))
            for at, rank in enumerate(ring):
                before, after = ring[at - 1], ring[(at + 1) % len(ring)]
                made[rank.rank] = self._process(site, rank, at, (before.rank, after.rank), ring)
        return ClientPlan(
            processes=tuple(made[rank.rank] for rank in ranks),
            starts=Starts.READY,
            reporting=tuple(rank.rank for rank in ranks),
        )

    def _process(
        self, site: Site, rank: ClientRank, at: int, neighbours: tuple[int, int], ring: Sequence[ClientRank]
    ) -> ClientProcess:
        words = {
            "work": self.work,
            "device": device_of(rank),
            "at": at,
            "before": neighbours[0],
            "after": neighbours[1],
            "length": len(ring),
            "ranks": ",".join(str(each.rank) for each in ring),
            "size": self.size,
            "mtu": self.path_mtu,
            "timeout": self.ib_timeout,
            "retries": self.retry_count,
            "pause-us": self.pause // _US,
            "patience-ms": self.deadline // _MS,
        }
        return own_program(site, "verbs", rank, *(f"--{name}={value}" for name, value in words.items()))
