"""The guest's console: it splits bytes into lines, keeps the last ones, and detects a kernel in trouble.

Changes when kernels report trouble in other words.
"""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

TAIL_LINES = 30

_TROUBLE = re.compile(
    r"Kernel panic|\bBUG:|kernel BUG at|\bOops\b|general protection fault|Unable to handle kernel|"
    r"rcu.*detected stall|soft lockup|Internal error|segfault with no mm|Kernel mode fault|Out of memory: Killed"
)
_KINDS = (  # the first match in a line gives the description
    (re.compile("out of memory", re.IGNORECASE), "ran out of memory"),
    (re.compile("detected stall|soft lockup"), "had a CPU stand still: its kernel loops, or this machine starves it"),
    (_TROUBLE, "got into trouble"),
)


class Lines:
    """Splitter of a byte stream into lines of text, without their ends; ``rest`` returns an unfinished one."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield every line that is now complete."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return (_text(line) for line in whole)

    def rest(self) -> Iterator[str]:
        """Yield the unfinished last line, if any; the stream has ended."""
        rest, self._rest = self._rest, b""
        return iter((_text(rest),) if rest else ())


class GrowingFile:
    """A file that the guest writes as one of its terminals and that is read concurrently.

    Not a pipe: reading from a pipe signals the writer. In virtual time a signal at a moment chosen by us is an
    interrupt that comes differently in every run.
    """

    def __init__(self, path: Path, take: Callable[[str], None]) -> None:
        path.touch()
        self._file = path.open("rb", buffering=0)
        self._lines = Lines()
        self._take = take

    def relay(self) -> None:
        """Pass on new lines."""
        while data := self._file.read(1 << 16):
            for line in self._lines.feed(data):
                self._take(line)

    def finish(self) -> None:
        """Pass on all remaining lines; the guest is gone."""
        self.relay()
        for line in self._lines.rest():
            self._take(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Console:
    """Collector of the lines of a guest's kernel and its command; it keeps the last ones and the first trouble.

    ``last_line`` is the last that the command printed.
    """

    def __init__(self, on_line: Callable[[str], None], tail_lines: int = TAIL_LINES) -> None:
        self._on_line = on_line
        self._tail: deque[str] = deque(maxlen=tail_lines)
        self.trouble: str | None = None
        self.last_line = ""

    def kernel(self, line: str) -> None:
        """Take a line of the guest's kernel."""
        if not line.strip():
            return
        self._tail.append(line)
        if self.trouble is None and trouble_in(line):
            self.trouble = line.strip()

    def command(self, line: str) -> None:
        """Take a line that the command printed."""
        self._tail.append(line)
        self.last_line = line.strip() or self.last_line
        self._on_line(line)

    @property
    def what_happened(self) -> str:
        """Description of the first trouble, as the guest's action, with its line; '' if there was none."""
        line = self.trouble or ""
        what = next((words for pattern, words in _KINDS if pattern.search(line)), "")
        return f"{what} ({line})" if what else ""

    @property
    def tail(self) -> tuple[str, ...]:
        """Last lines, oldest first."""
        return tuple(self._tail)

    def last_words(self, lines: int = 5) -> str:
        """Join the last lines for an error message."""
        return " | ".join(line.strip() for line in self.tail[-lines:]) or "nothing"


def how_it_ended(code: int) -> str:
    """Describe how a guest ended that we did not end; ``code`` of its program as in ``Popen``."""
    if code >= 0:
        return f"ended by itself (code {code})"
    why = " (this machine was short of memory, or somebody did it)" if -code == signal.SIGKILL else ""
    return f"was killed by signal {-code}{why}"


def trouble_in(line: str) -> bool:
    """Return True if a kernel line reports a crash, a bug or a lock-up."""
    return _TROUBLE.search(line) is not None


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r")
