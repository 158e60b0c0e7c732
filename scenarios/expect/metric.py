"""Definition of a metric. A new one is an object in a module of its family, listed in ``METRICS``. Pure.

Drill files, their checks, the verdict, the terminal and the reference use only this definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from hpn.scenarios.expect.evidence import Evidence
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.selection import Selection


class Unit(StrEnum):
    """The unit of a limit."""

    MS = "ms"
    COUNT = ""
    SHARE = "%"  # of the value before the first fault, where the metric needs a fault; else as its summary says
    RATIO = "x"
    RATE = "bit/s"
    YES = "yes"


class Takes(Enum):
    """Scope that an expectation may name."""

    FLOWS = auto()  # edge, fault, flows and scope
    EDGES = auto()  # edge and fault
    FAULT = auto()
    NOTHING = auto()  # it is about the whole run


class Shape(Enum):
    """Value behind a metric's name in a drill file."""

    LIMITS = auto()
    YES_NO = auto()
    PARTS = auto()  # of the fabric
    EVENTS = auto()


class Slowed(Enum):
    """Effect on a limit of a kernel that gets part of the traffic (``Expectation.slowed``)."""

    NOT = auto()
    STRETCHED = auto()  # time: upper limits are stretched on a very slow kernel
    PER_PACKET = auto()  # count of packets
    PER_QUEUE_PAIR = auto()


class Larger(Enum):
    """Meaning of a larger figure, whatever limit a drill sets: comparisons go by it."""

    WORSE = auto()
    BETTER = auto()
    AS_LIMITED = auto()  # neither by itself: worse if the limit is an upper one

    def is_worse(self, *, is_upper: bool) -> bool:
        """Return True if a larger figure is worse under a limit of that side."""
        return is_upper if self is Larger.AS_LIMITED else self is Larger.WORSE


class Pauses(Enum):
    """Treatment of flows that pause by plan between their transfers."""

    RIGHT = auto()  # valid: it counts packets or transfers, or is about the lab
    SPANNED = auto()  # valid if two transfers fit between an edge and the next
    BLIND = auto()  # invalid: the network's behaviour in a pause is unknown


class Traffic(Enum):
    """Traffic that must run in a drill for a metric to have a meaning."""

    STREAMS = auto()
    JOB = auto()  # hpn's own job: the metric is about queue pairs
    RANKS = auto()  # a job or a client: the metric is about iterations
    FLOWS = auto()  # streams, or hpn's own job: the metric is about packets whose paths are known
    EITHER = auto()


class Lack(Enum):
    """Evidence that a run may lack, so that a figure of it says nothing."""

    EMPTY = auto()  # nothing ran
    IDLE = auto()  # no packet was sent
    CUT_OFF = auto()  # the last activity had not ended
    BEFORE = auto()  # no activity before the edge
    AFTER = auto()  # no activity after the edge


NOWHERE: Mapping[Lack, str] = {}
NO_BEFORE: Mapping[Lack, str] = {Lack.BEFORE: "nothing before the edge goes into it"}
WHOLE_RECORD: Mapping[Lack, str] = {
    **NO_BEFORE,
    Lack.CUT_OFF: "it is of what the record holds",
    Lack.AFTER: "it is of the whole record",
}

MODELLED = ""
NOT_MODELLED = "the model does not compute it"
PACKETS_ONLY = "it is about single packets, and the model has rates"
PROTOCOLS_ONLY = "it is about what protocols do and when, and the model has only what became of flows"
QUEUES_ONLY = "it is about queues, and the model has rates"
"""Reasons why ``hpn model`` gives no figure of a metric; ``MODELLED``: it does."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements on a drill for a metric to be judged at all."""

    traffic: Traffic = Traffic.STREAMS
    fault: bool = False
    takeover: bool = False  # of a host by a spare, where streams run
    samples: bool = False  # of ports
    two_ports: bool = False  # at some NIC
    buffers: bool = False  # 'switch:' in the topology
    period: bool = False  # an upper limit must be at least a packet's period
    pauses: Pauses = Pauses.RIGHT
    transfers: bool = False  # a pattern that sends transfers
    paths: bool = False  # of streams over time: what a run knows of them is stored with its records
    drains: bool = False  # 'locate: {act: drain}'
    sending: bool = False  # an upper limit must be at least the time to send a transfer
    time: str = ""  # needs the validation time between a failure and its repair; completes 'repaired before ...'


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """Something that can be expected of a run."""

    key: str  # key in a drill file
    unit: Unit
    takes: Takes
    slowed: Slowed
    needs: Needs
    summary: str  # for docs/drills.md; '' if the name is enough
    measure: Callable[[Selection, Evidence], Figure]
    shape: Shape = Shape.LIMITS
    sentence: Callable[[Selection], str] | None = None  # None: name, flows, scope, edge, limit
    over_record: bool = False  # without edge and fault it counts the whole record, not the sum of the edges
    tells: Mapping[Lack, str] = field(default_factory=lambda: NOWHERE)
    """Reasons why the figure is valid although a run lacks something.

    Otherwise the figure has no value, or is a lower bound; a test checks this.
    """
    larger: Larger = field(kw_only=True)
    unmodelled: str = NOT_MODELLED  # why ``hpn model`` gives no figure of it

    @property
    def words(self) -> str:
        """Name in words: 'worst outage'."""
        return self.key.replace("_", " ")

    @property
    def by_flow(self) -> bool:
        """True if an expectation may select ``flows``."""
        return self.takes is Takes.FLOWS
