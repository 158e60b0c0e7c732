"""``rping``: the RDMA connection manager's own test, reads and writes in turn, between pairs of ranks. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from hpn.testbed.files.units import size as size_from
from hpn.traffic.client.client import Site
from hpn.traffic.client.plan import ClientPlan, Starts
from hpn.traffic.client.ranks import ClientRank
from hpn.traffic.client.rdma import RdmaClient, both_ends, missing_for

_TOOL = "rping"


class Rping(RdmaClient):
    """A step is one ping: the server reads ``size`` (64 to 65,535 B) from the client and writes it back."""

    KEY = "rping"
    SUMMARY = "rping of librdmacm between pairs of ranks; a step is a ping"

    size: Annotated[int, size_from("64 B", "65535 B")] = 4096

    def missing(self, site: Site) -> str | None:
        """Return what is missing: the tool, or libibverbs with its driver for Soft-RoCE; else None."""
        return missing_for(self.KEY, (_TOOL, "rdmacm-utils"), ("stdbuf", "coreutils"))

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return a process for each rank; the clients report the steps. InputError for an odd number of ranks."""
        by_line = ("stdbuf", "-oL", _TOOL)  # its output is block-buffered without a terminal
        settings = ("-v", "-S", str(self.size))
        return ClientPlan(
            processes=both_ends(
                site,
                ranks,
                _TOOL,
                lambda here: (*by_line, "-s", "-a", here.ip, *settings),
                lambda here, there: (*by_line, "-c", "-a", there.ip, "-I", here.ip, *settings),
            ),
            starts=Starts.READY,
            reporting=tuple(rank.rank for rank in ranks),
        )
