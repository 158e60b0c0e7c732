"""What one rank of a ring all-reduce adds up and passes on: chunks of 64-bit words, held as whole numbers. PURE.

In each of 2(n-1) rounds a rank sends a chunk to the next and takes one from the rank before: first partial sums, n-1
times, then finished ones. A chunk is one number of Python's: its words are added in one go, as none of them overflows.
"""

from __future__ import annotations

WORD = 8
_PATTERN = 251  # values of the pattern: a prime, so that no chunk looks like its neighbour
_SHIFTS = 97


class RingSum:
    """The chunks of the rank at place ``at`` in a ring of ``length``, of some ``size`` bytes all together."""

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
        """How often a chunk is sent and one taken."""
        return 2 * (self._length - 1)

    def begin(self, number: int) -> None:
        """Hold what this rank gives in a step; another in each, so that an old sum is no right one."""
        n, shift = self._length, number % _SHIFTS
        self._chunks = [pattern * (self._at + 1 + shift) for pattern in self._patterns]
        self._wanted = [pattern * (n * (n + 1) // 2 + n * shift) for pattern in self._patterns]

    def sent(self, done: int) -> bytes:
        """The chunk that goes to the next rank in a round."""
        return self._chunks[(self._at - done) % self._length].to_bytes(self.chunk, "little")

    def took(self, done: int, came: bytes) -> None:
        """Take what came in that round: a partial sum in the first half of the rounds, then a finished one."""
        place = (self._at - done - 1) % self._length
        partial = self._chunks[place] if done < self._length - 1 else 0
        self._chunks[place] = int.from_bytes(came, "little") + partial

    def wrong(self) -> int:
        """Chunks that are not the sum of what all ranks gave."""
        return sum(found != wanted for found, wanted in zip(self._chunks, self._wanted, strict=True))


def _packed(first: int, words: int) -> int:
    values = (at % _PATTERN for at in range(first, first + words))
    return int.from_bytes(b"".join(value.to_bytes(WORD, "little") for value in values), "little")
