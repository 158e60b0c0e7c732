"""``perftest``: the RDMA community's own measure of bandwidth and latency between pairs of ranks. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from hpn.traffic.client.client import Site
from hpn.traffic.client.plan import ClientPlan, Starts
from hpn.traffic.client.ranks import ClientRank
from hpn.traffic.client.rdma import GID, RdmaClient, both_ends, device_of, missing_for


class Perftest(RdmaClient):
    """A step is one run: ``rounds`` messages of ``size``, from the meeting to its row of figures.

    Its tools read the processor's cycle counter and gauge it at the end of each run, which takes 0.2 s and is in the
    step. In virtual time that counter means nothing: their own figures are then 0 or infinite, and two runs print
    different text. Writes are not offered: those tools poll memory, and the clock would never go on.
    """

    KEY = "perftest"
    SUMMARY = (
        "perftest (ib_send_bw, ib_read_bw, ib_send_lat, ib_read_lat) between pairs of ranks; a step is a run of it"
    )

    test: Literal["send_bw", "read_bw", "send_lat", "read_lat"] = "send_bw"
    rounds: int = Field(default=1000, ge=5, le=1_000_000, description="of a step")

    def missing(self, site: Site) -> str | None:
        """Return what is missing: the tool, or libibverbs with its driver for Soft-RoCE; else None."""
        return missing_for(self.KEY, (self._tool, "perftest"), ("stdbuf", "coreutils"))

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return a process for each rank. InputError for an odd number of ranks."""

        def server(here: ClientRank) -> tuple[str, ...]:
            settings = ("-e", "-F", "-x", GID, "-s", str(self.size), "-m", str(self.path_mtu), "-n", str(self.rounds))
            return ("stdbuf", "-oL", self._tool, "-d", device_of(here), *settings)

        return ClientPlan(
            processes=both_ends(site, ranks, self.KEY, server, lambda here, there: (*server(here), there.ip)),
            starts=Starts.READY,
            reporting=tuple(rank.rank for rank in ranks),
            repeatable=False,
        )

    @property
    def _tool(self) -> str:
        return f"ib_{self.test}"
