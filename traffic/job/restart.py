"""How a job that has died comes back: after a time, from its last checkpoint. PURE, no numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """A job is started again ``after_ns``, from the last checkpoint: one after every so many iterations.

    ``after_ns`` stands for all that happens between a job's death and its first iteration: somebody notices, hosts are
    found, processes start, the checkpoint is read. Writing a checkpoint costs the job no time. Hosts that nobody
    reaches are replaced by up to ``spares`` of the fabric's spare hosts, over all of the job's lives.
    """

    after_ns: int
    checkpoint_every: int = 1
    spares: int = 0

    def kept(self, done: int) -> int:
        """Of ``done`` iterations, how many the last checkpoint has; the others are done again."""
        return done // self.checkpoint_every * self.checkpoint_every
