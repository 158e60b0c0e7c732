"""``torch``: PyTorch's gloo, a process a rank: sums of a buffer, a gather, or a small network in training. PURE."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Annotated, Literal

from hpn.testbed.errors import InputError
from hpn.testbed.files.units import duration, size
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.plan import ClientPlan, ClientProcess, Starts
from hpn.traffic.client.ranks import ClientRank

_PROGRAMS = {
    "all-reduce": "hpn.traffic.client.programs.torch_allreduce",
    "training": "hpn.traffic.client.programs.torch_ddp",
    "incast": "hpn.traffic.client.programs.torch_incast",
}
_MOST = 256
"""Most ranks such that the sums of their whole numbers are exact in float32."""
_IMPORTED_MB = 256
"""Memory of the torch 2.13 import, measured in a guest."""
_COPIES = 8
"""Copies of the buffer: input, expected result, sum, gloo's own, and the comparison."""

Size = Annotated[int, size("4 B", "1 GB")]


class Torch(Client):
    """PyTorch's gloo. ``timeout``: how long gloo waits for a rank before it gives up."""

    KEY = "torch"
    SUMMARY = "PyTorch's gloo: all_reduce or gather of one size, or training with DistributedDataParallel"

    work: Literal["all-reduce", "training", "incast"] = "all-reduce"
    size: Size = 4 * 10**6
    pause: Annotated[int, duration("0 ms", "60 s")] = 0
    timeout: Annotated[int, duration("100 ms", "30 min")] = 30 * 10**9

    def missing(self, site: Site) -> str | None:
        """Return the problem if torch is missing, else None."""
        if importlib.util.find_spec("torch") is not None:
            return None
        return (
            "client torch: PyTorch is not installed beside hpn; a build for CPUs is enough:"
            " pip install torch --index-url https://download.pytorch.org/whl/cpu"
        )

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return one process per rank. InputError for a single rank, or too many to be checked."""
        if not 2 <= len(ranks) <= _MOST:
            raise InputError(f"client torch runs 2 to {_MOST} ranks, not {len(ranks)}", about=("ranks",))
        told = ("--bytes", self.size, "--pause-ns", self.pause, "--timeout-ns", self.timeout)
        argv = (site.python, "-P", "-m", _PROGRAMS[self.work], *map(str, told))
        memory_mb = _IMPORTED_MB + _COPIES * self.size // 10**6
        return ClientPlan(
            processes=tuple(
                ClientProcess(
                    (rank.rank,),
                    rank.host,
                    argv,
                    {"GLOO_SOCKET_IFNAME": rank.interface, "OMP_NUM_THREADS": "1"},
                    memory_mb=memory_mb,
                )
                for rank in ranks
            ),
            starts=Starts.READY,
            reporting=tuple(rank.rank for rank in ranks),
        )
