"""Data of one rank in a ring all-reduce: chunks of 64-bit words, stored as Python integers. PURE.

In each of 2(n-1) rounds a rank sends a chunk to the next and receives one from the rank before: first partial sums, n-1
times, then finished ones. A chunk is one Python integer: its words are added in one operation, as none of them
overflows.
"""

from __future__ import annotations

WORD = 8
_PATTERN = 251  # values of the pattern: a prime, so that no chunk looks like its neighbour
_SHIFTS = 97


class RingSum:
    """The chunks of the rank at position ``at`` in a ring of ``length``, about ``size`` bytes in total."""

    def __init__(self, at: int, length: int, size: int) -> None:
        self._at, self._length = at, length
        self.chunk = max(size // length // WORD, 1) * WORD
        words = self.chunk // WORD
        self._patterns = [_packed(part * words, words) for part in range(length)]
        self._chunks: list[int] = []
        self._wanted: list[int] = []

    @property
    def size(self) -> int:
        """Bytes that are summed."""
        return self.chunk * self._length

    @property
    def rounds(self) -> int:
        """Number of rounds; in each a chunk is sent and one received."""
        return 2 * (self._length - 1)

    def begin(self, number: int) -> None:
        """Set this rank's input of a step; it differs in each, so that an old sum is wrong."""
        n, shift = self._length, number % _SHIFTS
        self._chunks = [pattern * (self._at + 1 + shift) for pattern in self._patterns]
        self._wanted = [pattern * (n * (n + 1) // 2 + n * shift) for pattern in self._patterns]

    def sent(self, done: int) -> bytes:
        """Return the chunk for the next rank in a round."""
        return self._chunks[(self._at - done) % self._length].to_bytes(self.chunk, "little")

    def took(self, done: int, came: bytes) -> None:
        """Take the chunk of that round: a partial sum in the first half of the rounds, then a finished one."""
        place = (self._at - done - 1) % self._length
        partial = self._chunks[place] if done < self._length - 1 else 0
        self._chunks[place] = int.from_bytes(came, "little") + partial

    def wrong(self) -> int:
        """Return the number of chunks that are not the sum of all ranks' inputs."""
        return sum(found != wanted for found, wanted in zip(self._chunks, self._wanted, strict=True))


def _packed(first: int, words: int) -> int:
    values = (at % _PATTERN for at in range(first, first + words))
    return int.from_bytes(b"".join(value.to_bytes(WORD, "little") for value in values), "little")
