"""Keys below a topology's ``switch:``: the buffer of every switch, its classes of traffic, PFC, ECN and trimming.

Bytes and times are those of the lab; rates are the emulated ones. Defaults are SONiC's, where it has one: its DSCP map
(dscp_to_tc_map), priorities 3 and 4 lossless, and its PFC watchdog.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hpn.testbed.fabric.balancing import BALANCERS
from hpn.testbed.fabric.values import Strict
from hpn.testbed.files.units import parse_size
from hpn.testbed.files.words import OneOf

_MOST = 10**9


def _bytes(value: object) -> int:
    """Parse '2 MB' or a plain number into bytes. ValueError otherwise."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    found = value if plain and isinstance(value, int) else parse_size(value)
    if not 0 <= found <= _MOST:
        raise ValueError("a size here must be at least 0 B and at most 1 GB")
    return found


_Written = Annotated[int, Field(ge=0, le=_MOST)] | Annotated[str, Field(examples=["2 MB"])]
Dscp = Annotated[int, Field(ge=0, le=63)]
Bytes = Annotated[int, BeforeValidator(_bytes, json_schema_input_type=_Written)]


class MarkSpec(Strict):
    """ECN at the egress queue of a class: nothing below kmin, everything from kmax on, in between up to pmax."""

    kmin: Bytes
    kmax: Bytes
    pmax: float = Field(gt=0, le=1, description="share marked just below kmax")


class ClassSpec(Strict):
    """Class of traffic: its DSCPs, its place in the scheduler, its share of the buffer."""

    priority: int = Field(ge=0, le=7, description="PFC's priority; strict ones are served first, the highest before")
    dscp: list[Dscp] = Field(default_factory=list, description="DSCPs that belong to it")
    lossless: bool = Field(default=False, description="PFC stops the sender before the buffer is full")
    weight: int | None = Field(default=None, ge=1, le=100, description="of deficit round robin; left out: strict")
    limit: Bytes | None = Field(default=None, description="static threshold; lossless: of each port that packets enter")
    alpha: float | None = Field(
        default=None, ge=1 / 128, le=8, description="dynamic threshold: this times the free buffer; 1 without a limit"
    )
    xon_offset: Bytes | None = Field(default=None, description="XON so far below the threshold; default two frames")
    headroom: Bytes | None = Field(
        default=None, description="of each port, for what arrives after XOFF; default by formula"
    )
    ecn: MarkSpec | None = None
    trim: bool = Field(default=False, description="cut packets that would be dropped to their headers; see trimming")


class WatchdogSpec(Strict):
    """PFC watchdog: a lossless queue that is stopped for ``detect_ms`` with packets in it is taken for a storm.

    It ends when no PFC frame has come for ``restore_ms``.
    """

    detect_ms: int = Field(default=200, ge=1, le=60_000)
    restore_ms: int = Field(default=200, ge=1, le=60_000)
    action: Literal["drop", "forward"] = Field(default="drop", description="what becomes of the queue meanwhile")


class TrimmingSpec(Strict):
    """Trimmed packets: their strict class, DSCP and size."""

    priority: int = Field(default=5, ge=0, le=6)
    dscp: Dscp = 11
    bytes: int = Field(default=64, ge=64, le=1024, description="of the IP packet that are left")


class BalancingSpec(Strict):
    """Balancing: the switch chooses among next hops of equal cost, in place of a hash of the flow."""

    policy: Annotated[str, OneOf(BALANCERS)]
    gap_ms: float | None = Field(
        default=None,
        gt=0,
        le=4_000_000,
        description="flowlets, resilient: idle so long, a flow may move; default its own",
    )


OTHER_WEIGHT = 14
"""Weight of a class that the file does not name: SONiC's scheduler.0; its lossless classes have scheduler.1."""
_SONIC = (
    ClassSpec(priority=3, dscp=[3], lossless=True, weight=15, alpha=0.125),
    ClassSpec(priority=4, dscp=[4], lossless=True, weight=15, alpha=0.125),
)


class SwitchSpec(Strict):
    """The buffer of every switch."""

    buffer: Bytes = Field(default=2_000_000, description="of a switch, shared by all of its ports, headroom included")
    classes: list[ClassSpec] = Field(default_factory=list, description="left out: priorities 3 and 4 are lossless")
    rdma_dscp: Dscp = Field(default=3, description="NICs mark RDMA packets that have no DSCP so")
    cnp_dscp: Dscp = Field(default=48, description="NICs mark congestion notifications so")
    checkpoint_dscp: Dscp = Field(default=8, description="of a job's checkpoints; 8 is CS1, low priority (RFC 4594)")
    cable_m: float = Field(default=5.0, ge=0, le=100_000, description="length of each cable, 5 ns a metre")
    response_ns: int = Field(default=0, ge=0, le=10**6, description="a MAC's time to obey a PFC frame, on a real link")
    watchdog: WatchdogSpec | None = Field(default=None, description="left out: none; {}: SONiC's times")
    trimming: TrimmingSpec = TrimmingSpec()
    balancing: BalancingSpec | None = Field(default=None, description="left out: ECMP")

    @property
    def in_force(self) -> tuple[ClassSpec, ...]:
        """The classes, or SONiC's if none are given."""
        return tuple(self.classes) or _SONIC
