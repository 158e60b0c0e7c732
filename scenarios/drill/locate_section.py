"""``locate:`` of a drill file: faults are located while traffic runs, and what is located may be taken out. Pure.

Changes when a drill can ask for something else of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hpn.failover.locating.methods import METHODS
from hpn.failover.locating.siblings import siblings
from hpn.scenarios.drill.job import JobSpec
from hpn.testbed.fabric.buffers import balances
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.values import Strict
from hpn.testbed.files.units import duration, format_duration
from hpn.testbed.files.words import OneOf

_METHOD = next(iter(METHODS))
_HOLD_NS = 500_000_000


class Act(StrEnum):
    """Reaction to an answer that stands."""

    NOTHING = "nothing"
    DRAIN = "drain"
    REBIND = "rebind"


@dataclass(frozen=True, slots=True)
class Locating:
    """Settings: the method, and what is done once an answer has stood for ``hold_ns``."""

    method: str = _METHOD
    act: Act = Act.NOTHING
    hold_ns: int = _HOLD_NS

    @property
    def text(self) -> str:
        """Description as text."""
        then = "" if self.act is Act.NOTHING else f"; {_DOES[self.act]} is accused for {format_duration(self.hold_ns)}"
        return f"faults while traffic runs, by {self.method}{then}"


_DOES = {Act.DRAIN: "drains what", Act.REBIND: "moves queue pairs off a port that"}


class LocateSection(Strict):
    """``locate:``; faults are located while traffic runs, not at all without it."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    method: Annotated[str, OneOf(METHODS)] = _METHOD
    act: Literal[tuple(map(str, Act))] = Field(  # type: ignore[valid-type]  # made of an enum
        default=str(Act.NOTHING),
        description="if it costs less, drain: take the located link out; rebind: move queue pairs off its port",
    )
    hold_ns: Annotated[int, duration("0 ms", "60 s")] = Field(
        default=_HOLD_NS, alias="hold", description="how long the same part must be accused before it is acted on"
    )


def problems(locating: Locating, fabric: Fabric, job: JobSpec | None, *, streams: bool) -> Iterator[tuple[str, str]]:
    """Yield a wrong key, '' for the section, and what is wrong, with its solution."""
    if not streams and job is None:
        yield "", " counts packets of streams or of a job, and a client has neither; remove it, or write pattern"
    elif job is not None and not job.has_paths:
        yield "", " needs the path of each queue pair, and their packets take many: remove it, spray or multipath"
    elif job is not None and locating.act is not Act.NOTHING:
        yield (
            "act",
            " acts while streams run, and a job's packets are looked at afterwards; remove it, or write workload",
        )
    elif balances(fabric.spec):
        yield "", " needs the path of each stream, and switches balance packets: remove it, or switch.balancing"
    if locating.act is Act.REBIND and not fabric.spec.nic.binds:
        yield (
            "act",
            " rebind needs bound queue pairs: write nic: {port_selection: queue-affinity}, or act: drain",
        )
    elif locating.act is not Act.NOTHING and all(len(siblings(fabric, link)) == 1 for link in fabric.links):
        yield "act", f" {locating.act} finds nothing to take out: each link is the only way of its node; write nothing"
