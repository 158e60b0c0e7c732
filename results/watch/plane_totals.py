"""Summary of a lab by plane, and by rail and plane: healthy parts and traffic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hpn.results.watch.snapshot import Snapshot
from hpn.testbed.fabric.model import Link, LinkKind


@dataclass(frozen=True, slots=True)
class PartCount:
    """Number of healthy parts, and of all parts."""

    well: int
    all: int

    def __str__(self) -> str:
        return f"{self.well}/{self.all}"


@dataclass(frozen=True, slots=True)
class PlaneTotals:
    """Summary of a plane.

    Rates are those of access links; ``load``: the busier direction's share of their total rate.
    """

    plane: int
    switches: PartCount
    links: PartCount  # with carrier
    lacp: PartCount  # access links that distribute at both ends
    bgp: PartCount  # sessions, each counted once
    to_hosts_bps: float
    from_hosts_bps: float
    load: float
    drops_per_s: float  # at all ports of the plane, packets


@dataclass(frozen=True, slots=True)
class RailTotals:
    """Summary of a rail: NICs whose LAG has all its ports, and LACP and rates of each plane."""

    rail: int
    nics: PartCount
    cut_off: int
    lacp: tuple[PartCount, ...]
    to_hosts_bps: tuple[float, ...]
    from_hosts_bps: tuple[float, ...]


def planes(moment: Snapshot) -> list[PlaneTotals]:
    """Return the summary of each plane, in order."""
    return [_plane(moment, plane) for plane in range(moment.fabric.planes)]


def rails(moment: Snapshot) -> list[RailTotals]:
    """Return the summary of each rail, in order."""
    return [_rail(moment, rail) for rail in sorted({nic.rail for nic in moment.fabric.nics})]


def _plane(moment: Snapshot, plane: int) -> PlaneTotals:
    links = [link for link in moment.fabric.links if link.plane == plane]
    access = [link for link in links if link.kind is LinkKind.ACCESS]
    switches = [node.name for node in moment.fabric.switches if node.plane == plane]
    dead = {*moment.condition.dead, *moment.condition.broken}
    to_hosts, from_hosts = _to_hosts(moment, access), _from_hosts(moment, access)
    return PlaneTotals(
        plane=plane,
        switches=PartCount(sum(name not in dead for name in switches), len(switches)),
        links=PartCount(sum(not moment.is_dark(link) for link in links), len(links)),
        lacp=_well(moment, access),
        bgp=_well(moment, [link for link in links if link.is_routed]),
        to_hosts_bps=to_hosts,
        from_hosts_bps=from_hosts,
        load=max(to_hosts, from_hosts) / (sum(link.rate_bps for link in access) or 1),
        drops_per_s=sum(moment.rate(end).drops_per_s for link in links for end in (link.lower, link.upper)),
    )


def _rail(moment: Snapshot, rail: int) -> RailTotals:
    nics = [nic for nic in moment.fabric.nics if nic.rail == rail]
    by_plane = [[link for nic in nics for link in nic.links if link.plane == p] for p in range(moment.fabric.planes)]
    short = [moment.condition.active[nic.name] for nic in nics if nic.name in moment.condition.active]
    return RailTotals(
        rail=rail,
        nics=PartCount(len(nics) - len(short), len(nics)),
        cut_off=short.count(0),
        lacp=tuple(_well(moment, links) for links in by_plane),
        to_hosts_bps=tuple(_to_hosts(moment, links) for links in by_plane),
        from_hosts_bps=tuple(_from_hosts(moment, links) for links in by_plane),
    )


def _well(moment: Snapshot, links: Sequence[Link]) -> PartCount:
    return PartCount(sum(moment.is_well(link) for link in links), len(links))


def _to_hosts(moment: Snapshot, access: Iterable[Link]) -> float:
    return sum(moment.rate(link.upper).sent_bps for link in access)


def _from_hosts(moment: Snapshot, access: Iterable[Link]) -> float:
    return sum(moment.rate(link.lower).sent_bps for link in access)
