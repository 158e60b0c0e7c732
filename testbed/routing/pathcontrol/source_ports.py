"""The UDP source ports of one NIC's connections: who has which, and in which order another one is looked for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice

FIRST_SPORT, SPORTS = 0xC000, 0x4000
"""RoCEv2 source ports (IBTA annex A17): 0xC000 to 0xFFFF."""

SEARCH_LIMIT = 128
"""Free source ports tried per move. With two ports every other one fits; it also bounds what a LAG that does not hash
source ports at all costs. One good port of eight is missed once in 26 million searches."""


class SourcePorts:
    """No two connections of a NIC share a source port, and none takes the home of another."""

    def __init__(self, nic: str, seed: int) -> None:
        """``seed`` and ``nic`` make the order of the search reproducible."""
        self._nic = nic
        self._seed = seed
        self._home: dict[int, int] = {}
        self._current: dict[int, int] = {}
        self._taken: Counter[int] = Counter()  # in use, or to come home to

    def __getitem__(self, connection: int) -> int:
        return self._current[connection]

    def add(self, connection: int, home_sport: int) -> None:
        """A new connection, at home."""
        self._home[connection] = self._current[connection] = home_sport
        self._taken[home_sport] += 2

    def remove(self, connection: int) -> None:
        """A connection that is done."""
        self._release(self._home.pop(connection))
        self._release(self._current.pop(connection))

    def change(self, connection: int, sport: int) -> None:
        """Give a connection another one."""
        self._release(self._current[connection])
        self._current[connection] = sport
        self._taken[sport] += 1

    def candidates(self, connection: int) -> Iterator[int]:
        """Free source ports in the order of this connection, at most ``SEARCH_LIMIT``."""
        drawn = digest(self._seed, self._nic, f"{connection}")
        start, stride = drawn & 0xFFFF, drawn >> 16 & 0xFFFF | 1
        every = (FIRST_SPORT + (start + step * stride) % SPORTS for step in range(SPORTS))
        return islice((sport for sport in every if sport not in self._taken), SEARCH_LIMIT)

    def _release(self, sport: int) -> None:
        self._taken[sport] -= 1
        if not self._taken[sport]:
            del self._taken[sport]


def digest(seed: int, nic: str, text: str) -> int:
    """32 bits that differ between NICs and fabrics."""
    return int.from_bytes(blake2b(f"{seed}/{nic}/{text}".encode(), digest_size=4).digest(), "big")
