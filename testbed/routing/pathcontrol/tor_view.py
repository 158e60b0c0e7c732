"""What one ToR has told a host of its destinations: numbered frames, gaps, restarts, words that expire. Pure."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass
from enum import IntEnum

from hpn.testbed.routing.pathcontrol.message import Reach


class Standing(IntEnum):
    """How good a member port is for a destination."""

    BAD = 0  # its ToR has no path
    USABLE = 1  # better than none: held for flapping, or gone by a word that has expired
    GOOD = 2


@dataclass(slots=True)
class _Word:
    reachable: bool
    number: int  # of the frame that said so
    heard_ns: int
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """What a frame brought: news of destinations, and whether frames before it are missing."""

    changed: dict[str, bool]
    missed: bool


class TorView:
    """The ToR behind one member port, since the port became active.

    A destination that it has not spoken of counts as reachable, so a ToR without path control changes nothing.
    """

    def __init__(self, lifetime_ns: int) -> None:
        """A word is believed for ``lifetime_ns``."""
        self._lifetime_ns = lifetime_ns
        self._speaks = False  # this ToR has path control; survives a loss of carrier
        self._number = -1  # the highest heard
        self._heard_ns = 0
        self._words: dict[str, _Word] = {}
        self.doubt_until_ns = 0
        """Until then a destination it has not spoken of counts as unreachable; 0 for no doubt."""
        self.asked_ns: int | None = None
        """When it was last asked about everything."""
        self.ask_ns: int | None = None
        """When it is to be asked again because something was missed."""

    @property
    def size(self) -> int:
        """Destinations it has spoken of."""
        return len(self._words)

    def reset(self, now_ns: int) -> None:
        """The port became active. A ToR that speaks is doubted until it does: its routes may lag its carrier."""
        self._number, self.ask_ns = -1, None
        self._words.clear()
        self.doubt_until_ns = now_ns + self._lifetime_ns if self._speaks else 0

    def hear(self, message: Reach, wanted: Container[str], now_ns: int) -> Heard | None:
        """What is new about ``wanted``; None for a frame of an agent that has since been succeeded."""
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
        """After such a silence nobody knows how its agent counts now."""
        self._number = -1
        for word in self._words.values():
            word.number = -1

    def _take(self, ip: str, reachable: bool, number: int, now_ns: int) -> bool:
        """Believe the newest word on each destination, in whatever order the frames come; True for news."""
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
        """GOOD or BAD as it says; a loss that it has ceased to confirm is neither."""
        word = self._words.get(ip)
        if word is None:
            return Standing.BAD if now_ns < self.doubt_until_ns else Standing.GOOD
        if word.reachable:
            return Standing.GOOD
        return Standing.USABLE if word.expired else Standing.BAD

    def has_spoken_of(self, wanted: Collection[str]) -> bool:
        """Whether it has spoken of each of these."""
        return len(wanted) <= len(self._words) and all(ip in self._words for ip in wanted)

    def expire(self, now_ns: int) -> list[str]:
        """Cease to believe losses that it no longer confirms, and say which."""
        old_ns = now_ns - self._lifetime_ns
        lost = ((ip, word) for ip, word in self._words.items() if not word.reachable and not word.expired)
        due = [(ip, word) for ip, word in lost if word.heard_ns <= old_ns]
        for _, word in due:
            word.expired = True
        return [ip for ip, _ in due]

    def forget(self, ip: str) -> None:
        """Nobody wants to know any more."""
        self._words.pop(ip, None)
