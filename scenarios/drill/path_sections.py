"""Reads what a drill's ``job:`` says of queue pairs that change their path as they run: ``rehash:``.

Changes when there is another way to do so.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from testbed.fabric.spec import FabricSpec, Strict
from testbed.files.check import Mistakes
from testbed.files.document import Plain
from testbed.files.units import duration, percent
from traffic.paths import CHOICES
from traffic.rdma.rehash import RehashPolicy

_POLICY = RehashPolicy()


class RehashSection(Strict):
    """``rehash:``, when a queue pair draws another source port."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    rounds: int = Field(default=_POLICY.rounds, ge=1, le=1000)
    idle_rounds: int = Field(default=_POLICY.idle_rounds, ge=0, le=1000)
    share: Annotated[float, percent("1 %", "100 %")] = _POLICY.share
    suspend: Annotated[int, duration("0 ms", "10 min")] = _POLICY.suspend_ns


def rehash_of(mistakes: Mistakes, data: Plain, spec: FabricSpec | None, source_ports: str) -> RehashPolicy | None:
    """What is written behind ``rehash:``; None when there is nothing, or something is wrong with it."""
    where = ("job", "rehash")
    found = None if data is None else mistakes.check(RehashSection, data, where)
    if found is None:
        return None
    if found.idle_rounds > found.rounds:
        text = f"{found.idle_rounds} marked rounds are more than rounds: {found.rounds}, which move it anyway"
        mistakes.add((*where, "idle_rounds"), f"job.rehash.idle_rounds: {text}; write fewer, or 0 for never")
    if spec is not None and spec.ecn is None:
        text = "no switch marks packets, so no round is ever marked; write ecn in the topology"
        mistakes.add(where, f"job.rehash: {text}")
    if source_ports in CHOICES and CHOICES[source_ports].follows_ecmp:
        others = ", ".join(choice.name for choice in CHOICES.values() if not choice.follows_ecmp)
        text = f"source_ports: {source_ports} chooses paths again itself; take one of {others}"
        mistakes.add(where, f"job.rehash: {text}")
    return RehashPolicy(found.rounds, found.idle_rounds, found.share, found.suspend)
