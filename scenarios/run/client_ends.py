"""Ends of a client's processes: which died, when and why, and what each rank said last.

Changes when another end counts as a death.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.client import RankEnd
from hpn.failover.analysis.job import DeathFact
from hpn.scenarios.run.client_process import RunningClient
from hpn.testbed.files.document import shorten
from hpn.traffic.client.ranks import ClientRank

WORDS_LENGTH = 160


@dataclass(frozen=True)
class ClientEnds:
    """Ends of the processes; ``gave_up``: when and why, by process. The run ended at ``until_ns``."""

    running: Sequence[RunningClient]
    gave_up: Mapping[int, tuple[int, str]]
    until_ns: int

    def rank(self, rank: ClientRank, number: int, steps: int, at: int) -> RankEnd:
        """Return how rank ``number`` ended; process ``at`` reports for it."""
        running = self.running[at]
        by_itself = running.ended is not None and self._by_itself(running)
        return RankEnd(
            rank=number,
            host=rank.host,
            nic=rank.nic,
            steps=steps,
            how=running.ended.text if running.ended is not None and by_itself else "",
            ended_at_ns=running.ended_at_ns if by_itself else None,
            died=self._died_ns(at) is not None,
            last_words=last_words(running),
        )

    def deaths(self) -> list[DeathFact]:
        """Return the deaths of all processes, in order of time."""
        found = []
        for at, running in enumerate(self.running):
            at_ns = self._died_ns(at)
            if at_ns is not None:
                why = self.gave_up[at][1] if at in self.gave_up else running.ended.text if running.ended else ""
                found.append(DeathFact(at_ns, f"{running.name}: {shorten(why, WORDS_LENGTH, quoted=False)}"))
        return sorted(found, key=lambda death: death.at_ns)

    def _by_itself(self, running: RunningClient) -> bool:
        """Return True if the process ended before the run did."""
        return running.ended_at_ns is not None and running.ended_at_ns < self.until_ns

    def _died_ns(self, at: int) -> int | None:
        """Return when a process died, or None: it gave up, or ended early with an exit code other than 0."""
        running = self.running[at]
        gave_up_ns = self.gave_up[at][0] if at in self.gave_up else self.until_ns
        if gave_up_ns < self.until_ns:
            return gave_up_ns
        failed = running.ended is not None and running.ended.code != 0
        return running.ended_at_ns if failed and self._by_itself(running) else None


def last_words(running: RunningClient) -> str:
    """Return the last line that a process said."""
    return shorten(running.log.last_words, WORDS_LENGTH, quoted=False) or "it said nothing"
