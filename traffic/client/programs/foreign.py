"""A rank of a client that is a third-party tool with a server and a client: runs it until the run ends.

    foreign TOOL server|client COMMAND...

The tool's output is passed on, except for its lines about rounds, which become steps. A tool that ends after its rounds
is started again, for the next step. One that cannot reach its server yet is retried.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

_AGAIN_S = 0.002
_CHUNK = 1 << 16
_LONGEST = 1 << 17
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Round:
    """A round that a tool has just finished; ``begin_ns`` None: since the round before."""

    size: int
    begin_ns: int | None = None


class Tool(Protocol):
    """Parser of one tool's output. ``ends``: it ends after its rounds, and is then started again."""

    kind: str
    ends: bool

    def heard(self, line: str, at_ns: int) -> Round | None:
        """Return the round that this line, received at that time, reports; else None."""

    def is_told_away(self, line: str) -> bool:
        """Return True if a line means that the server does not listen yet."""


class Pingpong:
    """ibv_rc_pingpong: two lines at the end, bytes both ways and the time of a round in hundredths of a microsecond."""

    kind, ends = "ping-pong", True
    _BYTES = re.compile(r"(\d+) bytes in [\d.]+ seconds = .*")
    _ROUNDS = re.compile(r"(\d+) iters in [\d.]+ seconds = (\d+)\.(\d\d) usec/iter")

    def __init__(self) -> None:
        self._size = 0

    def heard(self, line: str, at_ns: int) -> Round | None:
        """Return a run as a round; its duration is the tool's own, without the connection set-up before."""
        if told := self._BYTES.fullmatch(line):
            self._size = int(told[1]) // 2
        done = self._ROUNDS.fullmatch(line)
        if done is None:
            return None
        return Round(self._size, at_ns - int(done[1]) * (int(done[2]) * 1000 + int(done[3]) * 10))

    def is_told_away(self, line: str) -> bool:
        """Return True if its TCP port has no listener."""
        return line.startswith("Couldn't connect to ")


class Rping:
    """rping -v: a line for each ping at both ends, which is the data itself."""

    kind, ends = "ping", False

    def heard(self, line: str, at_ns: int) -> Round | None:
        """Return a line as a round."""
        words = line.removeprefix("server ")
        return Round(len(words) - len("ping data: ") + 1) if words.startswith("ping data: ") else None

    def is_told_away(self, line: str) -> bool:
        """Return True if the other end's connection manager has no listener (its reason 8, invalid service ID)."""
        return "RDMA_CM_EVENT_REJECTED, error 8" in line


class Perftest:
    """ib_write_bw and the like: addresses of both ends, then the test, then a row that begins with size and rounds."""

    kind, ends = "perftest", True
    _ROW = re.compile(r" *(\d+) +(\d+) +\S+ .*")

    def __init__(self) -> None:
        self._begin_ns: int | None = None

    def heard(self, line: str, at_ns: int) -> Round | None:
        """Return a run as a round, from the peer's address to the row: its clock counts cycles of a real processor."""
        if line.startswith(" remote address:"):
            self._begin_ns = at_ns
        row = self._ROW.fullmatch(line)
        return None if row is None else Round(int(row[1]) * int(row[2]), self._begin_ns)

    def is_told_away(self, line: str) -> bool:
        """Return True if its TCP port has no listener."""
        return line.startswith("Couldn't connect to ")


TOOLS: Mapping[str, Callable[[], Tool]] = {"pingpong": Pingpong, "rping": Rping, "perftest": Perftest}


class _Run:
    """The tool's command, started until the run ends; ``_number`` counts steps."""

    def __init__(self, made: Callable[[], Tool], asks: bool, command: Sequence[str]) -> None:
        self._made, self._asks, self._command = made, asks, command
        self._number = 0
        self._last = ""
        self._told_away = False
        self._going: _Started | None = None

    def connect(self) -> bool:
        """Start a tool that runs on, and wait for its first round, before the run; return False if it fails."""
        while not self._made().ends:
            started = _Started(self._made(), self._command)
            for line in started.lines(None):
                if line is not None and self._hear(started.tool, line, time.monotonic_ns()):
                    self._going = started
                    return True
            if not self._goes_on_after(started):
                return False
        return True

    def begin(self) -> int:
        """Wait for the begin message and time, dropping output of a tool that runs on; return the run's end."""
        if self._going is not None:
            for line in self._going.lines(None, wake=sys.stdin.fileno()):
                if line is None:
                    break
        _, begin, _, until = sys.stdin.readline().split()
        if self._going is None:
            time.sleep(max(0, int(begin) - time.monotonic_ns()) / 1e9)
        else:
            deque(self._going.lines(int(begin)), maxlen=0)
        return int(until)

    def go(self, until_ns: int) -> int:
        """Run until the end; return the exit code: 0 when the run is over, 1 when the tool gave up."""
        while time.monotonic_ns() < until_ns:
            started, self._going = self._going or _Started(self._made(), self._command), None
            self._told_away = False
            for line in started.lines(until_ns):
                if line is None:
                    started.process.kill()
                    started.process.wait()
                    return 0
                at_ns = time.monotonic_ns()
                done = self._hear(started.tool, line, at_ns)
                if done is not None:
                    self._tell(started.tool, done, at_ns)
            if not self._goes_on_after(started):
                return 1
        return 0

    def _goes_on_after(self, started: _Started) -> bool:
        """Return True if the tool, which has ended, is to be started again; print the reason if not."""
        code = started.process.wait()
        if self._asks and self._told_away:
            time.sleep(_AGAIN_S)
            return True
        if code != 0 or not started.tool.ends:
            print(f"hpn error {self._command[0]} ended with code {code}: {self._last}", flush=True)
            return False
        return True

    def _hear(self, tool: Tool, line: str, at_ns: int) -> Round | None:
        """Return the round that a line reports; other lines are passed on."""
        done = tool.heard(line, at_ns)
        if tool.is_told_away(line):
            self._told_away = True
        elif done is None:
            self._last = line or self._last
            print(line, flush=True)
        return done

    def _tell(self, tool: Tool, done: Round, at_ns: int) -> None:
        times = "" if done.begin_ns is None else f" begin={done.begin_ns} end={at_ns}"
        print(f"hpn step {self._number}{times} kind={tool.kind} bytes={done.size}", flush=True)
        self._number += 1


class _Started:
    """A running tool, and its unfinished last line."""

    def __init__(self, tool: Tool, command: Sequence[str]) -> None:
        self.tool = tool
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if self.process.stdout is None:
            raise RuntimeError("a process with a pipe for its output has none")
        self._fd = self.process.stdout.fileno()
        self._rest = b""

    def lines(self, until_ns: int | None, wake: int | None = None) -> Iterator[str | None]:
        """Yield lines on arrival, to the last; yield None and stop at ``until_ns`` or when ``wake`` is readable."""
        poll = select.poll()
        for fd in (self._fd,) if wake is None else (self._fd, wake):
            poll.register(fd, select.POLLIN | select.POLLHUP)
        while True:
            left_ms = None if until_ns is None else (until_ns - time.monotonic_ns() + _MS - 1) // _MS
            ready = [] if left_ms is not None and left_ms <= 0 else [fd for fd, _ in poll.poll(left_ms)]
            if not ready or wake in ready:
                yield None
                return
            data = os.read(self._fd, _CHUNK)
            if not data:
                return
            *whole, self._rest = (self._rest + data).split(b"\n")
            self._rest = self._rest[:_LONGEST]
            for line in whole:
                yield line.decode(errors="replace")


def main(arguments: Sequence[str]) -> int:
    """Print that this rank is ready, wait for the begin, run."""
    tool, role, *command = arguments
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    run = _Run(TOOLS[tool], role == "client", command)
    if not run.connect():
        return 1
    print("hpn ready", flush=True)
    return run.go(run.begin())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
