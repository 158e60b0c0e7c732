"""End of a client's ranks, and reasons why a client makes a run inconclusive. Pure, no numpy.

Changes when more is reported about a client. Its steps are a job's iterations (``failover.analysis.job``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hpn.failover.analysis.phrases import plain

_EARLY_NS = 1_000_000_000
"""Longest time before the run's end at which a finished client may end: its last step would not have fitted."""


@dataclass(frozen=True, slots=True)
class RankEnd:
    """One rank: where it was, the steps that it told, and how it ended by itself ('' if it had to be ended)."""

    rank: int
    host: str
    nic: str
    steps: int
    how: str
    ended_at_ns: int | None  # CLOCK_MONOTONIC; None: it had to be ended
    died: bool  # ended before the run did, and not because its work was done
    last_words: str


@dataclass(frozen=True, slots=True)
class RankLog:
    """Bytes written of the output of a rank's first process, so that a reader sees what is missing."""

    rank: int
    size_bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """A client as it ran: its key in the registry, its ranks, and lines that were to be steps and are none."""

    key: str
    ranks: tuple[RankEnd, ...]
    reporting: int  # ranks that tell steps
    told_times: bool  # every step came with times of its own
    misread: int = 0
    first_misread: str = ""
    logs: tuple[RankLog, ...] = ()  # in ``clients/`` of the run folder
    compared: int | None = None  # steps whose result was checked; None: nobody counted them


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """The same, and why nothing can be said of the run."""

    facts: ClientFacts
    doubts: tuple[str, ...]


def client_doubts(client: ClientFacts, end_ns: int, *, measured: bool) -> Iterator[str]:
    """Yield reasons for doubt; ``measured``: True if all reporting ranks did a step, or one has died."""
    if client.reporting and not measured:
        yield "no step of the client was done by all of its ranks: nothing was measured"
    if client.misread:
        yield f"{client.misread} lines of the client were to be steps and are none, first {client.first_misread}"
    early = [
        rank
        for rank in client.ranks
        if rank.ended_at_ns is not None and not rank.died and rank.steps and rank.ended_at_ns < end_ns - _EARLY_NS
    ]
    if early and not any(rank.died for rank in client.ranks):
        first = min(early, key=lambda rank: rank.ended_at_ns or 0)
        left_s = (end_ns - (first.ended_at_ns or 0)) / 1e9
        yield (
            f"rank {first.rank} of the client had done its work {plain(left_s)} s before the run's end, and what came"
            " later says nothing; give it more to do, or shorten timeline.settle"
        )
