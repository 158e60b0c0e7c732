"""Placement of a client's ranks: one per host, or one per NIC. PURE.

Changes when the rules of placement change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Nic

PER_HOST: Final = "host"
PER_NIC: Final = "nic"


@dataclass(frozen=True, slots=True)
class ClientRank:
    """A rank, and the NIC that it is to use: its name ('p0.s0.h0.r0'), IP and LAG interface ('bond0')."""

    rank: int
    host: str
    nic: str
    ip: str
    interface: str


def ranks_of(fabric: Fabric, wanted: int | None, per: str = PER_HOST, rail: int = 0) -> tuple[ClientRank, ...]:
    """Return the ranks in the order of hosts, and of rails in a host; ``wanted`` None: as many as fit.

    Spare hosts have none. ``rail`` is that of the NIC if a host has one rank. InputError when there is no such rail, or
    too few NICs.
    """
    active = [host.name for host in fabric.hosts if not host.spare]
    nics = [nic for host in active for nic in fabric.nics_of(host) if per == PER_NIC or nic.rail == rail]
    if not nics:
        rails = len({nic.rail for nic in fabric.nics})
        raise InputError(f"there is no rail {rail}; the fabric has {rails}, counted from 0", about=("rail",))
    room = len(nics)
    if wanted is not None and wanted > room:
        places = "NICs" if per == PER_NIC else "hosts"
        raise InputError(f"{wanted} ranks need {wanted} {places} and the fabric has {room}", about=("ranks",))
    return tuple(_rank(number, nic) for number, nic in enumerate(nics[:wanted]))


def _rank(number: int, nic: Nic) -> ClientRank:
    return ClientRank(number, nic.host, nic.name, nic.ip, nic.lag)
