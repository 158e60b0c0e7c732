"""Output of one client process, with times: in memory during the run, up to a limit. PURE.

Changes when the files in a run folder's ``clients/`` do.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_BYTES = 1 << 20
FOLDER = "clients"
"""Name of the folder in a run folder."""
_STAMP_BYTES = 12  # '+1.234567 ', and the line's end


def name_of(rank: int) -> str:
    """Return the name of the file in ``FOLDER`` for the process with that first rank."""
    return f"rank-{rank}.log"


@dataclass(frozen=True, slots=True)
class _Said:
    at_ns: int
    text: str


class Log:
    """At most ``MOST_BYTES`` of lines, and the size of the rest; ``last_words``: the last line that is not blank."""

    def __init__(self) -> None:
        self.last_words = ""
        self._lines: list[_Said] = []
        self._bytes = 0
        self._lines_left_out = 0
        self._bytes_left_out = 0

    def add(self, text: str, at_ns: int) -> bool:
        """Record a line; return False when there is no room for it."""
        if text.strip():
            self.last_words = text
        size = len(text.encode()) + _STAMP_BYTES
        if self.is_full or self._bytes + size > MOST_BYTES:
            self._lines_left_out += 1
            self._bytes_left_out += size
            return False
        self._bytes += size
        self._lines.append(_Said(at_ns, text))
        return True

    @property
    def is_full(self) -> bool:
        """True if lines were left out."""
        return self._lines_left_out > 0

    def written(self, begin_ns: int) -> bytes:
        """Return the log: '+1.234567 text', seconds after the run's begin ('-' before it)."""
        lines = [f"{(said.at_ns - begin_ns) / 1e9:+.6f} {said.text}\n" for said in self._lines]
        if self.is_full:
            lines.append(f"({self._lines_left_out} more lines, {self._bytes_left_out} bytes, are left out)\n")
        return "".join(lines).encode()
