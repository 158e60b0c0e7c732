"""``mpi``: MPICH over TCP, one mpiexec for all ranks: sums, ping-pong, windows of messages. PURE."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hpn.testbed.errors import InputError
from hpn.testbed.files.units import duration
from hpn.testbed.files.units import size as size_from
from hpn.testbed.kernel.process.programs import find
from hpn.traffic.client import programs
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.plan import ClientPlan, ClientProcess, Starts
from hpn.traffic.client.ranks import ClientRank

_MPIEXEC = "mpiexec.hydra"
_PROGRAM = "hpn.traffic.client.programs.mpi"
_ENTER = Path(programs.__file__).parent / "enter.sh"
_MOST = 256
"""Most ranks such that the sums of their whole numbers are exact in float32."""
_A_RANK_MB = 96
_COPIES = 6
"""Copies of the buffer in a rank."""
_WINDOW = 64
"""Messages of a window of ``bandwidth``."""


class Mpi(Client):
    """MPICH. ``rounds``: ping-pongs, or windows of 64 messages, of a step; they need an even number of ranks."""

    KEY = "mpi"
    SUMMARY = "MPICH (mpi4py): Allreduce of one size, latency or bandwidth of pairs as the OSU benchmarks have them"

    work: Literal["all-reduce", "latency", "bandwidth"] = "all-reduce"
    size: Annotated[int, size_from("4 B", "256 MB")] = 4 * 10**6
    rounds: int = Field(default=1, ge=1, le=100_000)
    pause: Annotated[int, duration("0 ms", "60 s")] = 0

    def missing(self, site: Site) -> str | None:
        """Return the problem if mpi4py or MPICH's mpiexec is missing, else None."""
        lacks = [name for name in ("mpi4py",) if importlib.util.find_spec(name) is None]
        lacks += [] if _mpiexec(site) else ["mpich"]
        if not lacks:
            return None
        return f"client mpi: {' and '.join(lacks)} not installed beside hpn; pip install mpi4py mpich"

    def plan(self, ranks: Sequence[ClientRank], site: Site) -> ClientPlan:
        """Return one mpiexec, on the host of rank 0. InputError for an odd number where pairs are needed, or too many
        ranks."""
        if not 2 <= len(ranks) <= _MOST:
            raise InputError(f"client mpi runs 2 to {_MOST} ranks, not {len(ranks)}", about=("ranks",))
        if self.work != "all-reduce" and len(ranks) % 2:
            raise InputError(f"{self.work} needs pairs: an even number of ranks, not {len(ranks)}", about=("ranks",))
        held = self.size * (_WINDOW if self.work == "bandwidth" else _COPIES) // 10**6
        process = ClientProcess(
            ranks=tuple(rank.rank for rank in ranks),
            host=ranks[0].host,
            argv=self._argv(ranks, site),
            env={"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"},
            memory_mb=(_A_RANK_MB + held) * len(ranks),
        )
        return ClientPlan((process,), Starts.READY, reporting=process.ranks)

    def _argv(self, ranks: Sequence[ClientRank], site: Site) -> tuple[str, ...]:
        """Return the command: a section for each rank, as interfaces differ; mpiexec itself is reached through rank
        0's."""
        told = ("--bytes", self.size, "--rounds", self.rounds, "--pause-ns", self.pause)
        program = (site.python, "-P", "-m", _PROGRAM, self.work, *map(str, told))
        argv = [
            *(_mpiexec(site) or _MPIEXEC, "-iface", ranks[0].interface),
            *("-launcher", "ssh", "-launcher-exec", str(_ENTER)),
            *("-hosts", ",".join(rank.host for rank in ranks)),
        ]
        for number, rank in enumerate(ranks):
            argv += [":"] if number else []
            argv += ["-n", "1", "-env", "FI_TCP_IFACE", rank.interface, *program]
        return tuple(argv)


def _mpiexec(site: Site) -> str | None:
    """Return the path of MPICH's mpiexec, next to hpn's Python or installed."""
    return find(_MPIEXEC, beside=site.python)
