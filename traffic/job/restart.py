"""Restart of a failed job: after a delay, from its last checkpoint. PURE, no numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Restart of a job after ``after_ns``, from the last checkpoint, which is made every ``checkpoint_every``
    iterations.

    ``after_ns`` covers everything between a job's failure and its first iteration: detection, allocation of hosts,
    start of processes, reading the checkpoint. Writing a checkpoint costs the job no time. Unreachable hosts are
    replaced by up to ``spares`` of the fabric's spare hosts, over all incarnations of the job. A NIC of the job that
    got no packet for ``watchdog_ns`` ends it; None: only queue pairs do.
    """

    after_ns: int
    checkpoint_every: int = 1
    spares: int = 0
    watchdog_ns: int | None = None

    def kept(self, done: int) -> int:
        """Return how many of ``done`` iterations the last checkpoint contains; the others are repeated."""
        return done // self.checkpoint_every * self.checkpoint_every
