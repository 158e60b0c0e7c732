"""Client ``iperf3``: a rank receives a stream from the rank before it and sends one to the rank after it.

    iperf3 TOOL HERE THERE PORT STREAMS INTERVAL OPTIONS-OF-THE-SENDER...

The server's output is passed on, except for its intervals, which become steps. The sender's output goes to standard
error.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from hpn.traffic.client.programs import rank
from hpn.traffic.client.programs.rendezvous import Meeting

_INTERVAL = re.compile(
    r"\[ *(?P<who>\d+|SUM)\] +(?P<begin>[\d.]+)-(?P<end>[\d.]+) +sec +(?P<moved>[\d.]+) [KMGT]?Bytes"
    r" +[\d.]+ [KMGT]?bits/sec(?: +[\d.]+ ms +(?P<lost>-?\d+)/(?P<sent>\d+) \([\d.e+-]+%\))?(?P<rest>.*)"
)
_LISTENS = "Server listening"
_PATIENCE_S = 600.0
"""Time limit for the other ranks: the drill's deadline ends this process long before."""


class Intervals:
    """Parser of a server's lines. ``streams``: with several of them only their sum counts. ``begin_ns``: of the run."""

    def __init__(self, streams: int, interval_s: float, begin_ns: int) -> None:
        self._who = re.compile("SUM" if streams > 1 else r"\d+")
        self._interval_s = interval_s
        self._begin_ns = begin_ns
        self._number = -1

    def read(self, line: str, at_ns: int) -> Iterable[str]:
        """Return the lines to print for a line that arrived at that time.

        An interval in which data arrived is the step of its number; an empty one is none. The total at the end has a
        word after it.
        """
        told = _INTERVAL.fullmatch(line.rstrip())
        if told is None or told["rest"].strip():
            return (line,)
        if not self._who.fullmatch(told["who"]):
            return ()
        return tuple(self._told(told, at_ns))

    def _told(self, told: re.Match[str], at_ns: int) -> Iterator[str]:
        begin_s, end_s = float(told["begin"]), float(told["end"])
        self._number = max(self._number + 1, round(begin_s / self._interval_s))  # late intervals are uneven
        if float(told["moved"]):
            begin_ns = max(at_ns - round((end_s - begin_s) * 1e9), self._begin_ns)
            yield f"hpn step {self._number} begin={begin_ns} end={at_ns}"
        if told["lost"] is not None and int(told["lost"]) > 0:
            yield f"lost {told['lost']} of {told['sent']} packets"


class _Rank:
    """The two processes of a rank, and their unfinished lines."""

    def __init__(self, server: Sequence[str], sender: Sequence[str], streams: int, interval_s: float) -> None:
        self._server, self._sender = server, sender
        self._streams, self._interval_s = streams, interval_s

    def go(self, me: rank.Rank) -> int:
        """Listen, meet the others, send until the run ends; return 1 when iperf3 ends before."""
        server = _started(self._server)
        lines = _lines(server)
        for line in lines:
            if line.startswith(_LISTENS):
                break
            rank.say(line)
        else:
            return _gave_up(self._server, server)
        _meet(me)
        span = rank.begun()
        sender = subprocess.Popen(self._sender, stdin=subprocess.DEVNULL, stdout=2, stderr=2)
        with selectors.DefaultSelector() as both:
            both.register(os.pidfd_open(sender.pid), selectors.EVENT_READ, sender)
            both.register(_pipe(server), selectors.EVENT_READ, server)
            return self._relay(both, span)

    def _relay(self, both: selectors.BaseSelector, span: rank.Span) -> int:
        """Pass on the server's output until the run is over; return 1 when one of the two ends before."""
        reader, rest = Intervals(self._streams, self._interval_s, span.begin_ns), b""
        while True:
            for key, _ in both.select():
                ours = key.fileobj is not key.data.stdout
                data = b"" if ours else os.read(key.fd, 65536)
                if not data:
                    return 0 if span.over else _gave_up(self._sender if ours else self._server, key.data)
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    for said in reader.read(line.decode(errors="replace"), time.monotonic_ns()):
                        rank.say(said)


def _meet(me: rank.Rank) -> None:
    """Wait until every rank listens: a sender without a listener gives up at once."""
    meeting = Meeting(me.rendezvous, _PATIENCE_S)
    meeting.tell(f"listens{me.rank}", "")
    for other in range(me.world):
        meeting.hear(f"listens{other}")


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _pipe(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise RuntimeError("a process with a pipe for its output has none")
    return process.stdout


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield lines without reading a byte further: the rest is read elsewhere."""
    fd, line = _pipe(process).fileno(), b""
    while byte := os.read(fd, 1):
        if byte == b"\n":
            yield line.decode(errors="replace")
            line = b""
        else:
            line += byte


def _gave_up(command: Sequence[str], process: subprocess.Popen[bytes]) -> int:
    rank.say(f"hpn error {Path(command[0]).name} {command[1]} ended with code {process.wait()}")
    return 1


def main(arguments: Sequence[str]) -> int:
    """Run this rank's server and sender."""
    tool, here, there, port, streams, interval, *options = arguments
    common = ("-p", port, "-i", interval, "--forceflush")
    server = (tool, "-s", "-1", "-B", here, *common)
    sender = (tool, "-c", there, "-B", here, "-t", "0", *common, *options)
    return _Rank(server, sender, int(streams), float(interval)).go(rank.Rank.from_environment())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
