"""When a queue pair leaves its path for another: PLB's rule, on marks that acknowledgements bring back. PURE.

PLB (Qureshi et al., SIGCOMM 2022) as Linux has it (``net/ipv4/tcp_plb.c``): a connection that saw ``rounds`` marked
rounds in a row draws new entropy, and one that has nothing in flight does after ``idle_rounds``. A retry timeout draws
at once, and for one to two ``suspend_ns`` after it marks move nothing, so that nobody goes back into a black hole.

A round begins when the last one ends, or when something is sent and nothing is in flight, and ends when all that was
sent by its begin is acknowledged: one round trip. It is marked when ``share`` of its packets are or more. Where it
differs from the paper, in which TCP's acknowledgements count marked bytes: an acknowledgement of RC has one bit for it
(BECN) and stands for up to ``ack_every`` packets, so it says whether half or more of the packets since the last one
came marked, and counts as all marked or none. RoCEv2's own notices, CNPs, cannot say a share: one an interval at most.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

ECHO_SHARE = 0.5
"""An acknowledgement says that its packets came marked when so many of them did."""


class Cause(StrEnum):
    """Why a queue pair leaves its path."""

    MARKS = "marked"
    IDLE = "marked-and-idle"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class RehashPolicy:
    """The defaults are Linux's: tcp_plb_rehash_rounds, _idle_rehash_rounds (0: never), _cong_thresh (128 of 256) and
    _suspend_rto_sec.

    ``seed``: of what is drawn.
    """

    rounds: int = 12
    idle_rounds: int = 3
    share: float = 0.5
    suspend_ns: int = 60_000_000_000
    seed: int = 0


class Rounds:
    """The marked rounds of one queue pair, which ``draw`` is the chance of. All PSNs are absolute."""

    def __init__(self, policy: RehashPolicy, draw: random.Random) -> None:
        self._policy = policy
        self._draw = draw
        self._until: int | None = None  # the round ends when all below is acknowledged; None: none is under way
        self._packets = self._marked = 0  # acknowledged in the round, and of them with a mark
        self._congested = 0  # rounds in a row
        self._suspended_ns = 0  # marks move nothing before

    def on_sent(self, sent: int) -> None:
        """All below ``sent`` has left once."""
        if self._until is None:
            self._until = sent

    def on_acked(self, packets: int, marked: bool, acknowledged: int, sent: int, now_ns: int) -> Cause | None:
        """``packets`` more are acknowledged, all below ``acknowledged``; why the path is to be left, if it is."""
        if self._until is None:
            return None
        self._packets += packets
        self._marked += packets if marked else 0
        if acknowledged < self._until:
            return None
        congested = self._marked >= self._policy.share * self._packets
        self._congested = min(self._congested + 1, self._policy.rounds) if congested else 0
        self._packets = self._marked = 0
        self._until = sent if acknowledged < sent else None
        if now_ns < self._suspended_ns:
            return None
        return self._due()

    def on_timeout(self, now_ns: int) -> Cause:
        """The retry timer ran out: the path is to be left."""
        self._congested = 0
        suspend_ns = self._policy.suspend_ns
        self._suspended_ns = now_ns + suspend_ns + round(self._draw.random() * suspend_ns)
        return Cause.TIMEOUT

    def _due(self) -> Cause | None:
        """Whether there were enough of them; then counting starts anew."""
        idle = self._until is None and 0 < self._policy.idle_rounds <= self._congested
        if self._congested < self._policy.rounds and not idle:
            return None
        cause = Cause.MARKS if self._congested == self._policy.rounds else Cause.IDLE
        self._congested = 0
        return cause
