"""``rxe-pingpong``: libibverbs' own ibv_rc_pingpong between pairs of ranks, run after run. PURE."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from hpn.traffic.client.client import Site
from hpn.traffic.client.plan import ClientPlan, Starts
from hpn.traffic.client.ranks import ClientRank
from hpn.traffic.client.rdma import GID, RdmaClient, both_ends, device_of, missing_for

_TOOL = "ibv_rc_pingpong"


class RxePingpong(RdmaClient):
    """A step is one run of the tool: ``rounds`` times ``size`` there and back, over a queue pair of its own.

    The tool tells its peer of it by TCP on the same network, and chooses timeout 14 and retry count 7 itself.
    """

    KEY = "rxe-pingpong"
    SUMMARY = "ibv_rc_pingpong of libibverbs between pairs of ranks; a step is a run of it"

    rounds: int = Field(default=10, ge=1, le=1_000_000, description="of a step")

    def missing(self, site: Site) -> str | None:
        """Return what is missing: the tool, or libibverbs with its driver for Soft-RoCE; else None."""
        return missing_for(self.KEY, (_TOOL, "ibverbs-utils"))

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return a process for each rank. InputError for an odd number of ranks."""

        def server(here: ClientRank) -> tuple[str, ...]:
            settings = ("-e", "-g", GID, "-s", str(self.size), "-m", str(self.path_mtu), "-n", str(self.rounds))
            return (_TOOL, "-d", device_of(here), *settings)

        return ClientPlan(
            processes=both_ends(site, ranks, "pingpong", server, lambda here, there: (*server(here), there.ip)),
            starts=Starts.READY,
            reporting=tuple(rank.rank for rank in ranks),
        )
