"""The UDP source ports of one NIC's connections: who has which, and in which order another one is looked for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import count, islice
from struct import calcsize, unpack

FIRST_SPORT, SPORTS = 0xC000, 0x4000
"""RoCEv2 source ports (IBTA annex A17): 0xC000 to 0xFFFF."""

SEARCH_LIMIT = 128
"""Free source ports tried per move; it bounds what a LAG that does not hash source ports at all costs. They are drawn
by a keyed hash: whatever a LAG's hash looks at, the share of them that fits is that of the good ports. One good port of
two is missed once in 3e38 searches, one of eight once in 26 million ((7/8)^128)."""

_DRAWS = ">32H"


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
        return islice((sport for sport in self._drawn(connection) if sport not in self._taken), SEARCH_LIMIT)

    def _drawn(self, connection: int) -> Iterator[int]:
        """Every source port once, as a hash keyed by fabric, NIC and connection draws them.

        An arithmetic progression will not do: Linux bonding's layer3+4 of two ports is the parity of two bits of the
        source port, and many strides keep that.
        """
        seen: set[int] = set()
        for block in count():
            text = f"{self._seed}/{self._nic}/{connection}/{block}"
            drawn = unpack(_DRAWS, blake2b(text.encode(), digest_size=calcsize(_DRAWS)).digest())
            for sport in (FIRST_SPORT + number % SPORTS for number in drawn):
                if sport not in seen:
                    seen.add(sport)
                    yield sport
            if len(seen) == SPORTS:
                return

    def _release(self, sport: int) -> None:
        self._taken[sport] -= 1
        if not self._taken[sport]:
            del self._taken[sport]


def digest(seed: int, nic: str, text: str) -> int:
    """32 bits that differ between NICs and fabrics."""
    return int.from_bytes(blake2b(f"{seed}/{nic}/{text}".encode(), digest_size=4).digest(), "big")
