"""Line splitter for a byte stream, however a pipe divides it."""

from __future__ import annotations

_LONGEST = 4096


class Lines:
    """Collector of complete lines, truncated to 4 KiB. ``last`` is the latest one that is not blank."""

    def __init__(self) -> None:
        self.last = ""
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that ``data`` completes, without their ends."""
        *whole, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LONGEST]
        lines = [line[:_LONGEST].decode(errors="replace") for line in whole]
        self.last = next((line.strip() for line in reversed(lines) if line.strip()), self.last)
        return lines
