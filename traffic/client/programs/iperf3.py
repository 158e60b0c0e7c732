"""Client ``iperf3``: a rank takes a stream from the rank before it and sends one to the rank after it.

    iperf3 TOOL HERE THERE PORT tcp|udp STREAMS INTERVAL OPTIONS-OF-THE-SENDER...

What the server prints is passed on, but for its intervals: of those steps are made. The sender's words go to standard
error.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from traffic.client.programs import rank
from traffic.client.programs.meeting import Meeting

_INTERVAL = re.compile(
    r"\[ *(?P<who>\d+|SUM)\] +[\d.]+-[\d.]+ +sec +(?P<moved>[\d.]+) (?P<unit>[KMGT]?)Bytes +[\d.]+ [KMGT]?bits/sec"
    r"(?: +[\d.]+ ms +(?P<lost>-?\d+)/(?P<sent>\d+) \([\d.e+-]+%\))?(?P<rest>.*)"
)
_FACTOR = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LISTENS = "Server listening"
_PATIENCE_S = 600.0
"""For the other ranks: the drill's deadline ends us long before."""


class Intervals:
    """Reads a server's lines. ``streams``: with several of them only their sum counts."""

    def __init__(self, kind: str, streams: int) -> None:
        self._kind = kind
        self._who = re.compile("SUM" if streams > 1 else r"\d+")
        self._number = 0

    def read(self, line: str) -> Iterable[str]:
        """What to say for a line.

        An interval in which something arrived is a step; an empty one is not, so that the next step is longer by it.
        The whole time, which comes at the end, has a word behind it.
        """
        told = _INTERVAL.fullmatch(line.rstrip())
        if told is None or told["rest"].strip():
            return (line,)
        if not self._who.fullmatch(told["who"]):
            return ()
        return tuple(self._told(told))

    def _told(self, told: re.Match[str]) -> Iterator[str]:
        moved = round(float(told["moved"]) * _FACTOR[told["unit"]])
        if moved:
            yield f"hpn step {self._number} kind={self._kind} bytes={moved}"
            self._number += 1
        if told["lost"] is not None and int(told["lost"]) > 0:
            yield f"lost {told['lost']} of {told['sent']} packets"


class _Rank:
    """The two processes, and the lines that they have not ended."""

    def __init__(self, server: Sequence[str], sender: Sequence[str], reader: Intervals) -> None:
        self._server, self._sender, self._reader = server, sender, reader

    def go(self, me: rank.Rank) -> int:
        """Listen, meet the others, send until the run ends; 1 when iperf3 ends before."""
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
        rest = b""
        while True:
            for key, _ in both.select():
                if not isinstance(key.fileobj, int):
                    data = os.read(key.fd, 65536)
                    if not data:
                        return _gave_up(self._server, key.data)
                    *whole, rest = (rest + data).split(b"\n")
                    self._hear(whole)
                elif span.over:
                    both.unregister(key.fileobj)
                else:
                    return _gave_up(self._sender, key.data)

    def _hear(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            for said in self._reader.read(line.decode(errors="replace")):
                rank.say(said)


def _meet(me: rank.Rank) -> None:
    """Wait until every rank listens: a sender that finds nobody gives up at once."""
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
    """Line by line, and no byte more: what follows is read in another way."""
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
    tool, here, there, port, kind, streams, interval, *options = arguments
    common = ("-p", port, "-i", interval, "--forceflush")
    server = (tool, "-s", "-1", "-B", here, *common)
    sender = (tool, "-c", there, "-B", here, "-t", "0", *common, *options)
    return _Rank(server, sender, Intervals(kind, int(streams))).go(rank.Rank.from_environment())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
