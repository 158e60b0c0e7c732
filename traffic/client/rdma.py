"""Common part of clients that use verbs: keys, requirements of the machine, pairing of ranks. PURE."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hpn.testbed.errors import InputError
from hpn.testbed.files.units import size as size_from
from hpn.testbed.kernel.process.programs import find
from hpn.testbed.package import ROOT
from hpn.traffic.client.client import Client, Site
from hpn.traffic.client.plan import ClientProcess
from hpn.traffic.client.programs.libibverbs import LIBRARY
from hpn.traffic.client.ranks import ClientRank

GID = "1"
"""Index of the GID that is an interface's IPv4 address; that of its link-local IPv6 address is before it."""

_DRIVERS = Path("/etc/libibverbs.d")


class RdmaClient(Client):
    """A client that needs an RDMA device on each NIC, and keys that all of them have."""

    NEEDS_RDMA = True

    size: Annotated[int, size_from("1 B", "64 MiB")] = Field(default=64 << 10, description="of a message")
    path_mtu: Literal[1024, 2048, 4096] = 4096


def missing_for(client: str, *tools: tuple[str, str]) -> str | None:
    """Return what the machine lacks, in one line: libibverbs with its rxe driver, or tools of packages; else None."""
    for tool, package in tools:
        if find(tool) is None:
            return f"client {client}: there is no {tool}: apt install {package}"
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return f"client {client}: there is no libibverbs: apt install libibverbs1 ibverbs-providers"
    if not (_DRIVERS / "rxe.driver").exists():
        return f"client {client}: libibverbs has no driver for Soft-RoCE: apt install ibverbs-providers"
    return None


def rails(ranks: Sequence[ClientRank]) -> list[list[ClientRank]]:
    """Return the ranks of each rail, which communicate: rail-optimised fabrics have no path between rails."""
    found: dict[str, list[ClientRank]] = {}
    for rank in ranks:
        found.setdefault(rank.interface, []).append(rank)
    return list(found.values())


def pairs(ranks: Sequence[ClientRank]) -> list[tuple[ClientRank, ClientRank]]:
    """Return pairs of neighbours on a rail: the first is the server, the second the client. InputError for an odd
    number."""
    found = []
    for of_rail in rails(ranks):
        if len(of_rail) % 2:
            raise InputError(
                f"{len(of_rail)} ranks on {of_rail[0].interface} do not make pairs: write an even number of ranks",
                about=("ranks",),
            )
        found += list(zip(of_rail[::2], of_rail[1::2], strict=True))
    return found


def device_of(rank: ClientRank) -> str:
    """Return the name of the RDMA device of a rank's NIC, the same as ``Nic.rdma``."""
    return f"rxe-{rank.nic}"


def own_program(site: Site, name: str, rank: ClientRank, *words: object) -> ClientProcess:
    """Return the process of one of our programs for one rank."""
    argv = (site.python, "-P", "-B", "-m", f"hpn.traffic.client.programs.{name}", *map(str, words))
    return ClientProcess((rank.rank,), rank.host, argv, {"PYTHONPATH": str(ROOT)})


def both_ends(
    site: Site,
    ranks: Sequence[ClientRank],
    tool: str,
    server: Callable[[ClientRank], tuple[str, ...]],
    client: Callable[[ClientRank, ClientRank], tuple[str, ...]],
) -> tuple[ClientProcess, ...]:
    """Return the processes of a tool with a server and a client, one for each rank, in the order of ranks."""
    made: dict[int, ClientProcess] = {}
    for first, second in pairs(ranks):
        made[first.rank] = own_program(site, "foreign", first, tool, "server", *server(first))
        made[second.rank] = own_program(site, "foreign", second, tool, "client", *client(second, first))
    return tuple(made[rank.rank] for rank in ranks)
