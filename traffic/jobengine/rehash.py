"""Decision of a queue pair to leave its path: PLB's rule, on marks reported by acknowledgements. PURE.

PLB (Qureshi et al., SIGCOMM 2022) as in Linux (``net/ipv4/tcp_plb.c``). A connection that saw ``rounds`` marked rounds
in a row draws new entropy. One that has nothing in flight does so after ``idle_rounds``. A retry timeout draws at once.
For one to two ``suspend_ns`` after it marks have no effect, so that no flow returns into a black hole.

A round begins when the last one ends, or with the first send when nothing is in flight. It ends when everything sent by
its beginning is acknowledged: one round trip. It is marked when at least ``share`` of its packets are. This differs
from the paper, in which TCP's acknowledgements count marked bytes. An acknowledgement of RC has one bit for it (BECN)
and covers up to ``ack_every`` packets. So it reports whether at least half of the packets since the last one were
marked, and counts as all marked or none. RoCEv2's own notifications, CNPs, cannot report a share: there is at most one
per interval.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

ECHO_SHARE = 0.5
"""Share of marked packets from which on an acknowledgement reports marks."""


class Cause(StrEnum):
    """Reason for a queue pair to leave its path."""

    MARKS = "marked"
    IDLE = "marked-and-idle"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class RehashPolicy:
    """Parameters of PLB; the defaults are Linux's.

    They are tcp_plb_rehash_rounds, _idle_rehash_rounds (0: never), _cong_thresh (128 of 256) and _suspend_rto_sec.
    ``seed`` is that of the random draws.
    """

    rounds: int = 12
    idle_rounds: int = 3
    share: float = 0.5
    suspend_ns: int = 60_000_000_000
    seed: int = 0


class Rounds:
    """The marked rounds of one queue pair, with ``draw`` as random source. All PSNs are absolute."""

    def __init__(self, policy: RehashPolicy, draw: random.Random) -> None:
        self._policy = policy
        self._draw = draw
        self._until: int | None = None  # the round ends when all below is acknowledged; None: no round is under way
        self._packets = self._marked = 0  # acknowledged in the round, and of them with a mark
        self._congested = 0  # rounds in a row
        self._suspended_ns = 0  # marks have no effect before

    def on_sent(self, sent: int) -> None:
        """Note that everything below ``sent`` has left once."""
        if self._until is None:
            self._until = sent

    def on_acked(self, packets: int, marked: bool, acknowledged: int, sent: int, now_ns: int) -> Cause | None:
        """Handle ``packets`` more acknowledged, all below ``acknowledged``; return why to leave the path, or None."""
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
        """Handle a retry timeout: the path is to be left."""
        self._congested = 0
        suspend_ns = self._policy.suspend_ns
        self._suspended_ns = now_ns + suspend_ns + round(self._draw.random() * suspend_ns)
        return Cause.TIMEOUT

    def _due(self) -> Cause | None:
        """Return the cause if there were enough marked rounds, and restart the count; else None."""
        idle = self._until is None and 0 < self._policy.idle_rounds <= self._congested
        if self._congested < self._policy.rounds and not idle:
            return None
        cause = Cause.MARKS if self._congested == self._policy.rounds else Cause.IDLE
        self._congested = 0
        return cause
