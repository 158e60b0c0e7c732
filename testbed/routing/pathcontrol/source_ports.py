"""UDP source ports of one NIC's connections: their assignment, and the search order for another one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import count, islice
from struct import calcsize, unpack

FIRST_SPORT, SPORTS = 0xC000, 0x4000
"""RoCEv2 source ports (IBTA annex A17): 0xC000 to 0xFFFF."""

SEARCH_LIMIT = 128
"""Maximum of free source ports tried per move; it bounds the cost with a LAG that does not hash source ports.

Candidates come from a keyed hash: whatever a LAG's hash depends on, the share of suitable ones is that of the good
ports. One good port of two is missed once in 3e38 searches, one of eight once in 26 million ((7/8)^128).
"""

_DRAWS = ">32H"


class SourcePorts:
    """Assignment in which no two connections of a NIC share a source port, and none takes another's home port."""

    def __init__(self, nic: str, seed: int) -> None:
        """Start empty; ``seed`` and ``nic`` make the order of the search reproducible."""
        self._nic = nic
        self._seed = seed
        self._home: dict[int, int] = {}
        self._current: dict[int, int] = {}
        self._taken: Counter[int] = Counter()  # in use, or reserved as a home port

    def __getitem__(self, connection: int) -> int:
        return self._current[connection]

    def add(self, connection: int, home_sport: int) -> None:
        """Add a connection, at its home port."""
        self._home[connection] = self._current[connection] = home_sport
        self._taken[home_sport] += 2

    def remove(self, connection: int) -> None:
        """Remove a finished connection."""
        self._release(self._home.pop(connection))
        self._release(self._current.pop(connection))

    def change(self, connection: int, sport: int) -> None:
        """Assign another source port to a connection."""
        self._release(self._current[connection])
        self._current[connection] = sport
        self._taken[sport] += 1

    def candidates(self, connection: int) -> Iterator[int]:
        """Yield free source ports in this connection's order, at most ``SEARCH_LIMIT``."""
        return islice((sport for sport in self._drawn(connection) if sport not in self._taken), SEARCH_LIMIT)

    def _drawn(self, connection: int) -> Iterator[int]:
        """Yield every source port once, in the order of a hash keyed by fabric, NIC and connection.

        An arithmetic progression is unsuitable: Linux bonding's layer3+4 with two ports is the parity of two bits of
        the source port, and many strides preserve that.
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
    """Return 32 bits that differ between NICs and fabrics."""
    return int.from_bytes(blake2b(f"{seed}/{nic}/{text}".encode(), digest_size=4).digest(), "big")
