"""Part of the fabric that an expectation is about: planes, rails, NICs, hosts; and the flows in it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Scope:
    """Parts of a fabric; within one field any of them. An empty field sets no limit.

    ``planes`` are those that a flow's data runs through as the edge comes (``FlowEdgeResult.plane``); the others are
    about the NICs at its ends, whose names say host and rail: 'p0.s1.h3.r2'.
    """

    planes: tuple[int, ...] = ()
    rails: tuple[int, ...] = ()
    nics: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    peer: str = ""  # 'local': both ends of a flow in one segment; 'remote': in different ones; '': either
    segments: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False)
    """Pod and segment of each host; only where ``peer`` is given."""

    def __bool__(self) -> bool:
        return self != EVERYWHERE

    @property
    def of_nics(self) -> bool:
        """True if it selects NICs."""
        return bool(self.rails or self.nics or self.hosts)

    def has_nic(self, nic: str) -> bool:
        """Return True if a NIC matches all fields about NICs."""
        host, rail = place_of(nic)
        return (
            (not self.rails or rail in self.rails)
            and (not self.nics or nic in self.nics)
            and (not self.hosts or host in self.hosts)
        )

    def has_flow(self, src_nic: str, dst_nic: str, plane: int | None) -> bool:
        """Return True if a flow matches: one of its ends, and its plane."""
        inside = not self.of_nics or self.has_nic(src_nic) or self.has_nic(dst_nic)
        fits = not self.peer or self.peer == self._peer_of(src_nic, dst_nic)
        return inside and fits and (not self.planes or plane in self.planes)

    def _peer_of(self, src_nic: str, dst_nic: str) -> str:
        one, other = (self.segments.get(place_of(nic)[0]) for nic in (src_nic, dst_nic))
        return "local" if one == other else "remote"

    def touches(self, src_nic: str, dst_nic: str, plane: int | None) -> bool:
        """Return True if a flow touches any of the parts."""
        ends = [(nic, *place_of(nic)) for nic in (src_nic, dst_nic)]
        parts = any(nic in self.nics or host in self.hosts or rail in self.rails for nic, host, rail in ends)
        return parts or plane in self.planes

    @property
    def parts(self) -> tuple[Scope, ...]:
        """Single parts in the order of ``words``, without peers."""
        planes = [Scope(planes=(plane,)) for plane in self.planes]
        rails = [Scope(rails=(rail,)) for rail in self.rails]
        return (*planes, *rails, *(Scope(nics=(nic,)) for nic in self.nics), *(Scope(hosts=(h,)) for h in self.hosts))

    @property
    def words(self) -> tuple[str, ...]:
        """Names of its parts: 'plane 0', 'rail 1', 'NIC p0.s0.h0.r0', 'host p0.s0.h0', 'local peers'."""
        return tuple(self._words())

    def _words(self) -> Iterator[str]:
        for name, parts in (("plane", self.planes), ("rail", self.rails), ("NIC", self.nics), ("host", self.hosts)):
            yield from (f"{name} {part}" for part in parts)
        if self.peer:
            yield f"{self.peer} peers"


EVERYWHERE = Scope()


def place_of(nic: str) -> tuple[str, int | None]:
    """Return the host and rail of a NIC from its name; the rail is None for a name that no fabric gives."""
    host, _, rail = nic.rpartition(".r")
    return host, int(rail) if rail.isdecimal() else None
