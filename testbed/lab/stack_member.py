"""Stack member: a ToR's view of its peer, and its decisions (HPN, section 4). Pure; run by ``testbed.lab.stack``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hpn.testbed.fabric.spec import StackSpec

_MS = 1_000_000
_KEEPALIVES = 3


class Decision(StrEnum):
    """Decision of a member, as events name it."""

    SHUT_DOWN = "shut-down"
    RETURN = "returned"
    TAKE_OVER = "took-over"


class Reason(StrEnum):
    """Reason for a member's shutdown."""

    SYNC_LOST = "sync lost while the primary is alive"
    VERSIONS = "another version than the peer"


@dataclass(frozen=True, slots=True)
class Timers:
    """Timers in nanoseconds. ``alive_ns`` is shorter than ``sync_hold_ns``, so that a dead peer is detected first."""

    keepalive_ns: int
    sync_ns: int
    sync_hold_ns: int

    @property
    def alive_ns(self) -> int:
        """Time without keepalives after which the peer counts as dead."""
        return _KEEPALIVES * self.keepalive_ns

    @property
    def tick_ns(self) -> int:
        """Interval at which a member acts."""
        return min(self.keepalive_ns, self.sync_ns)


def timers(spec: StackSpec) -> Timers:
    """Return the timers of a topology file."""
    return Timers(spec.keepalive_ms * _MS, spec.sync_ms * _MS, spec.sync_hold_ms * _MS)


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Out-of-band message between members."""

    version: str
    primary: bool
    booted_ns: int


class Member:
    """One ToR of a stack. Pure: every method takes the time in ns."""

    def __init__(self, clock: Timers, version: str, primary: bool, now: int) -> None:
        self.up = True
        self.primary = primary
        self.reason: Reason | None = None  # reason for its shutdown
        self._clock = clock
        self._version = version
        self._booted_ns = now
        self._peer: Keepalive | None = None
        self._heard_ns = self._synced_ns = self._ticked_ns = now
        self._well_since_ns: int | None = None  # while down

    @property
    def keepalive(self) -> Keepalive:
        """Keepalive for the peer."""
        return Keepalive(self._version, self.primary, self._booted_ns)

    def on_keepalive(self, heard: Keepalive, now: int) -> None:
        """Record that the peer's control plane is alive. Of two primaries the one that booted later gives way."""
        self._heard_ns, self._peer = now, heard
        if self.primary and heard.primary and self._booted_ns > heard.booted_ns:
            self.primary = False

    def on_sync(self, now: int) -> None:
        """Record that the peer's data plane is alive."""
        self._synced_ns = now

    def on_tick(self, now: int) -> Decision | None:
        """Advance the time and return a decision, if any."""
        if now - self._ticked_ns > self._clock.alive_ns:  # it was not running itself, so its silence means nothing
            self._heard_ns = self._synced_ns = now
        self._ticked_ns = now
        alive = now - self._heard_ns <= self._clock.alive_ns
        silent_ns = now - self._synced_ns
        if self.up:
            return self._while_up(alive, silent_ns <= self._clock.sync_hold_ns)
        return self._while_down(alive, silent_ns <= _KEEPALIVES * self._clock.sync_ns, now)

    def _while_up(self, alive: bool, synced: bool) -> Decision | None:
        if alive and self._must_yield:
            return self._shut_down(Reason.VERSIONS)
        if self.primary or synced:
            return None
        if alive:
            return self._shut_down(Reason.SYNC_LOST)
        self.primary = True
        return Decision.TAKE_OVER

    def _while_down(self, alive: bool, synced: bool, now: int) -> Decision | None:
        if alive and (not synced or self._must_yield):
            self._well_since_ns = None
            return None
        if self._well_since_ns is None:
            self._well_since_ns = now
        if now - self._well_since_ns < self._clock.sync_hold_ns:
            return None
        self.up, self.reason = True, None
        return Decision.RETURN

    @property
    def _must_yield(self) -> bool:
        """True if this member yields to a peer of another version: the later boot, on a tie the secondary."""
        if self._peer is None or self._peer.version == self._version:
            return False
        if self._booted_ns != self._peer.booted_ns:
            return self._booted_ns > self._peer.booted_ns
        return not self.primary

    def _shut_down(self, reason: Reason) -> Decision:
        self.up, self.reason, self._well_since_ns = False, reason, None
        return Decision.SHUT_DOWN
