"""An edge: one moment of failure or repair, and the relation of a flow to it.

Changes when analysis needs more data of an edge. ``failover.analysis.model`` has the conventions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EdgeKind(StrEnum):
    """Failure or repair; reported separately (RFC 6414: failover and reversion)."""

    FAILURE = "failure"
    REPAIR = "repair"


class Relation(StrEnum):
    """Relation of a flow to a fault."""

    SENDER = "sender"  # its source NIC is hit: direction up, the LAG decides
    RECEIVER = "receiver"  # its destination NIC is hit: direction down, routes and path control decide
    BOTH = "both"  # both its NICs are hit
    TRANSIT = "transit"  # something on a path it may take is hit, neither NIC is
    NONE = "none"  # if no earlier fault touches it either, control group: it must lose nothing
    ABSENT = "absent"  # closed by then, or a replacement flow that has not begun

    @property
    def is_touched(self) -> bool:
        """True if the fault concerns the flow."""
        return self not in {Relation.NONE, Relation.ABSENT}


@dataclass(frozen=True, slots=True)
class HitLink:
    """One link a fault acts on. ``lower`` and ``upper`` are port labels 'node:interface'.

    ``nic``, ``host``, ``lag`` and ``ip`` describe the NIC of an access link and are None above the ToRs.
    """

    name: str
    lower: str
    upper: str
    nic: str | None = None
    host: str | None = None
    lag: str | None = None
    ip: str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """One moment at which a fault, or several together, is injected or restored (RFC 6412: convergence event instant).

    The instant lies between the two clock readings around the call (their difference is the injection skew).
    The window reaches from ``inject_before_ns`` to ``window_end_ns``: the next edge, or the end of the workload.
    """

    fault: str  # fault id of the drill file
    kind: EdgeKind
    index: int  # 0, 1, ... over the edges of one kind of a flapping fault
    inject_before_ns: int
    inject_after_ns: int
    window_end_ns: int
    links: tuple[HitLink, ...] = ()
    nodes: tuple[str, ...] = ()  # nodes that are hit as a whole (crash)
    transit_flows: tuple[int, ...] = ()  # flow ids whose path may cross what is hit, NICs apart
    control_exempt: bool = False  # flows that are not related may lose packets (a fault of everything)
    planes: tuple[tuple[int, int], ...] = ()  # flow id and the plane that carried its data as the edge came
    together_with: tuple[str, ...] = ()  # ids of the other faults of this instant: nothing can tell them apart
    absent: tuple[int, ...] = ()  # ids of flows that are not there in this window
    crossed: tuple[int, ...] | None = None  # ids of flows whose data crossed what is hit as it came; None: not known
    taken_over: tuple[str, ...] = ()  # ids of faults whose dead host a spare takes over from at this edge
    acks_crossed: tuple[int, ...] | None = None  # as ``crossed``, of their acknowledgements, which take another path

    @property
    def faults(self) -> tuple[str, ...]:
        """The ids of all faults of this instant."""
        return (self.fault, *self.together_with)

    @property
    def label(self) -> str:
        """Label: 'link1 failure 0', 'link1+link2 failure 0'."""
        return f"{'+'.join(self.faults)} {self.kind} {self.index}"

    @property
    def words(self) -> str:
        """Text: 'failure of link1 and link2', 'failure 2 of flap'; numbers are those of ``label``."""
        number = f" {self.index}" if self.index else ""
        return f"{self.kind}{number} of {' and '.join(self.faults)}"

    @property
    def skew_ms(self) -> float:
        """Duration of the call: for a failure, the uncertainty of its instant."""
        return (self.inject_after_ns - self.inject_before_ns) / 1e6

    @property
    def only_acks_crossed(self) -> tuple[int, ...]:
        """Ids of flows whose acknowledgements crossed what is hit, and whose data did not; empty if not known."""
        crossed = self.crossed
        return () if crossed is None else tuple(each for each in self.acks_crossed or () if each not in crossed)

    @property
    def nics(self) -> frozenset[str]:
        """Names of the NICs that are affected."""
        return frozenset(link.nic for link in self.links if link.nic is not None)
