"""A host's view of one ToR's reports: numbered frames, gaps, restarts and expiry. Pure."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass
from enum import IntEnum

from hpn.testbed.routing.pathcontrol.message import Reach


class Standing(IntEnum):
    """Quality of a member port for a destination."""

    BAD = 0  # its ToR has no path
    USABLE = 1  # better than none: held for flapping, or lost by an expired report
    GOOD = 2


@dataclass(slots=True)
class _Word:
    reachable: bool
    number: int  # number of the reporting frame
    heard_ns: int
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """Result of a frame: changed destinations, and whether earlier frames are missing."""

    changed: dict[str, bool]
    missed: bool


class TorView:
    """The ToR behind one member port, since the port became active.

    Without a report a destination counts as reachable, so a ToR without path control changes nothing.
    """

    def __init__(self, lifetime_ns: int) -> None:
        """Start without reports; each is valid for ``lifetime_ns``."""
        self._lifetime_ns = lifetime_ns
        self._speaks = False  # this ToR has path control; survives a loss of carrier
        self._number = -1  # highest number received
        self._heard_ns = 0
        self._words: dict[str, _Word] = {}
        self.doubt_until_ns = 0
        """Until then a destination without a report counts as unreachable; 0 for no doubt."""
        self.asked_ns: int | None = None
        """Time of the last full request."""
        self.ask_ns: int | None = None
        """Time of the next full request because of missed frames."""

    @property
    def size(self) -> int:
        """Number of destinations with a report."""
        return len(self._words)

    def reset(self, now_ns: int) -> None:
        """Restart when the port becomes active. A ToR with path control is doubted until it reports.

        Its routes may lag behind its carrier.
        """
        self._number, self.ask_ns = -1, None
        self._words.clear()
        self.doubt_until_ns = now_ns + self._lifetime_ns if self._speaks else 0

    def hear(self, message: Reach, wanted: Container[str], now_ns: int) -> Heard | None:
        """Process a frame; return the changes among ``wanted``, or None for a frame of a superseded agent."""
        if self._number >= 0 and now_ns - self._heard_ns > self._lifetime_ns:
            self._believe_anyone()
        if self._number >= 0 and message.epoch < Reach(self._number, ()).epoch:
            return None
        # A ToR that has just started has missed our interest.
        missed = not message.states or 0 <= self._number < message.number - 1
        self._speaks, self._heard_ns = True, now_ns
        self._number = max(self._number, message.number)
        states = [(ip, reachable) for ip, reachable in message.states if ip in wanted]
        return Heard({ip: r for ip, r in states if self._take(ip, r, message.number, now_ns)}, missed)

    def _believe_anyone(self) -> None:
        """Accept any number again: after such a silence the agent's numbering is unknown."""
        self._number = -1
        for word in self._words.values():
            word.number = -1

    def _take(self, ip: str, reachable: bool, number: int, now_ns: int) -> bool:
        """Store the newest report on a destination, in whatever order the frames come; True for a change."""
        word = self._words.get(ip)
        if word is None:
            self._words[ip] = _Word(reachable, number, now_ns)
            return True
        if number < word.number:
            return False
        news = word.reachable != reachable or word.expired
        word.reachable, word.number, word.heard_ns, word.expired = reachable, number, now_ns, False
        return news

    def standing(self, ip: str, now_ns: int) -> Standing:
        """Return GOOD or BAD as reported; a loss that is no longer confirmed is neither."""
        word = self._words.get(ip)
        if word is None:
            return Standing.BAD if now_ns < self.doubt_until_ns else Standing.GOOD
        if word.reachable:
            return Standing.GOOD
        return Standing.USABLE if word.expired else Standing.BAD

    def has_spoken_of(self, wanted: Collection[str]) -> bool:
        """Return True if it has reported on each of these."""
        return len(wanted) <= len(self._words) and all(ip in self._words for ip in wanted)

    def expire(self, now_ns: int) -> list[str]:
        """Expire losses that are no longer confirmed, and return them."""
        old_ns = now_ns - self._lifetime_ns
        lost = ((ip, word) for ip, word in self._words.items() if not word.reachable and not word.expired)
        due = [(ip, word) for ip, word in lost if word.heard_ns <= old_ns]
        for _, word in due:
            word.expired = True
        return [ip for ip, _ in due]

    def forget(self, ip: str) -> None:
        """Drop the report on a destination that is no longer of interest."""
        self._words.pop(ip, None)
