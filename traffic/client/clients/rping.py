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
        """The tool, or libibverbs and its driver for Soft-RoCE."""
        return missing_for(self.KEY, (_TOOL, "rdmacm-utils"), ("stdbuf", "coreutils"))

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """A process for each rank; those that ask tell the steps. InputError where ranks do not make pairs."""
        by_line = ("stdbuf", "-oL", _TOOL)  # it prints into blocks where nobody sits at a terminal
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
