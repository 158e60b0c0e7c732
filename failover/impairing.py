"""Which port of a running lab each impairment of a link is done at, and what is done there.

Loss and corruption are done where frames arrive, delay and rate where they leave. A new one is one function here,
listed in ``_DO``; ``failover.actions`` undoes all of them by their key, the fault itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from failover.faults import ArpLoss, BitCorruption, Fault, LacpLoss, LinkDelay, OneWayLoss, RateDrop, SilentDrop
from failover.faults.impair import Direction, Directions
from testbed.fabric.model import Link, Port
from testbed.lab.impair import Corrupt, Delay, Drop, Impairments, Slow, Traffic
from traffic.framing import BTH_BYTES

_CORRUPTED_BYTE = BTH_BYTES + 100
"""In the UDP payload: behind every header, in every path MTU and no acknowledgement; the ICRC covers it."""


def impair(fault: Fault, link: Link, impairments: Impairments) -> None:
    """Do ``fault``, which acts on ``link``, until its key, the fault itself, is lifted. KeyError for other faults."""
    _DO[type(fault)](fault, link, impairments)


def _arrives_at(link: Link, direction: Direction | Directions) -> tuple[Port, ...]:
    match direction:
        case Direction.UP | Directions.UP:
            return (link.upper,)
        case Direction.DOWN | Directions.DOWN:
            return (link.lower,)
    return (link.lower, link.upper)


def _one_way_loss(fault: OneWayLoss, link: Link, impairments: Impairments) -> None:
    for port in _arrives_at(link, fault.direction):
        impairments.on_arrival(fault, port, Drop())


def _silent_drop(fault: SilentDrop, link: Link, impairments: Impairments) -> None:
    for port in _arrives_at(link, Directions.BOTH):
        impairments.on_arrival(fault, port, Drop(Traffic(fault.traffic.value), fault.share))


def _lacp_loss(fault: LacpLoss, link: Link, impairments: Impairments) -> None:
    for port in _arrives_at(link, fault.direction):
        impairments.on_arrival(fault, port, Drop(Traffic.LACP))


def _arp_loss(fault: ArpLoss, link: Link, impairments: Impairments) -> None:
    for port in _arrives_at(link, fault.direction):
        impairments.on_arrival(fault, port, Drop(Traffic.ARP))


def _bit_corruption(fault: BitCorruption, link: Link, impairments: Impairments) -> None:
    for port in _arrives_at(link, Directions.BOTH):
        impairments.on_arrival(fault, port, Corrupt(fault.share, _CORRUPTED_BYTE))


def _link_delay(fault: LinkDelay, link: Link, impairments: Impairments) -> None:
    for port in (link.lower, link.upper):
        impairments.on_departure(fault, link, port, Delay(fault.delay_ns, fault.jitter_ns))


def _rate_drop(fault: RateDrop, link: Link, impairments: Impairments) -> None:
    for port in (link.lower, link.upper):
        impairments.on_departure(fault, link, port, Slow(fault.rate))


_DO: Mapping[type[Fault], Callable[[Any, Link, Impairments], None]] = {
    OneWayLoss: _one_way_loss,
    SilentDrop: _silent_drop,
    LacpLoss: _lacp_loss,
    ArpLoss: _arp_loss,
    BitCorruption: _bit_corruption,
    LinkDelay: _link_delay,
    RateDrop: _rate_drop,
}
IMPAIRMENTS = tuple(_DO)
"""The faults that are done here."""
