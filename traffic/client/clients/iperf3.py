"""``iperf3``: a stream from every rank to the next one, TCP or UDP. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.values import Rate
from hpn.testbed.files.units import duration
from hpn.testbed.kernel.process.programs import find
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.plan import ClientPlan, ClientProcess, Starts
from hpn.traffic.client.ranks import ClientRank

_TOOL = "iperf3"
_PROGRAM = "hpn.traffic.client.programs.iperf3"
_PORT = 5201
_MEMORY_MB = 32


class Iperf3(Client):
    """Each rank sends to the next and the last to the first; a step is an interval in which something arrived.

    ``rate`` is that of each stream, in bit/s of payload; without it TCP takes what it gets, and UDP sends 1 Mbit/s.
    """

    KEY = "iperf3"
    SUMMARY = "iperf3 from each rank to the next, TCP or UDP; a step is an interval in which something arrived"

    protocol: Literal["tcp", "udp"] = "tcp"
    rate: Rate | None = None
    streams: int = Field(default=1, ge=1, le=128)
    interval: Annotated[int, duration("100 ms", "60 s")] = 100 * 10**6

    def missing(self, site: Site) -> str | None:
        """Return the problem if the tool is not installed, else None."""
        if find(_TOOL) is None:
            return "client iperf3: iperf3 is not installed; apt install iperf3"
        return None

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return one process per rank, which runs a server and a sender. InputError for a single rank."""
        if len(ranks) < 2:
            raise InputError("client iperf3 needs 2 ranks or more, as each sends to the next", about=("ranks",))
        return ClientPlan(
            processes=tuple(self._process(rank, ranks[(rank.rank + 1) % len(ranks)], site) for rank in ranks),
            starts=Starts.READY,
            reporting=tuple(rank.rank for rank in ranks),
        )

    def _process(self, here: ClientRank, there: ClientRank, site: Site) -> ClientProcess:
        way = (find(_TOOL) or _TOOL, here.ip, there.ip, _PORT, self.streams, self.interval / 1e9)
        rate = () if self.rate is None else ("-b", self.rate)
        options = (*(("-u",) if self.protocol == "udp" else ()), *rate, "-P", self.streams)
        argv = (site.python, "-P", "-m", _PROGRAM, *map(str, (*way, *options)))
        return ClientProcess((here.rank,), here.host, argv, memory_mb=_MEMORY_MB)
