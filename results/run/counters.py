"""``queue_pairs.jsonl`` and ``workers.json``: counters of each sending end and of each worker process.

Changes when a worker reports something else than counts. Counter names are those of the workers
(``traffic.workers.messages``, ``traffic.jobengine.setup``). Losses are not computed from these files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class QueuePairCounts:
    """One queue pair's sending end over the run; ``died_at_ns``: when it was given up, None: never."""

    flow: int
    name: str
    worker: int
    counters: Mapping[str, int]
    died_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerCounts:
    """One worker process; what the machine did to it, not the fabric."""

    worker: int
    cpu_s: float
    counters: Mapping[str, int]
    errors: Mapping[str, int]  # refused system calls, by name


@dataclass(frozen=True, slots=True)
class Workers:
    """Counters of every worker; ``softnet_drops``: packets that the machine dropped between interfaces meanwhile."""

    softnet_drops: int
    workers: tuple[WorkerCounts, ...]


QUEUE_PAIR = TypeAdapter(QueuePairCounts)
WORKERS = TypeAdapter(Workers)
