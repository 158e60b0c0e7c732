"""Reader of ``rehash:`` and ``spray:`` below a drill's ``job:``, for queue pairs that use several paths.

Changes when there is another way to use several paths.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field

from hpn.testbed.fabric.buffers import balances, rdma_marker
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.values import Strict
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import Plain
from hpn.testbed.files.units import duration, percent
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.jobengine.rehash import RehashPolicy
from hpn.traffic.transport.work import Recovery

_POLICY = RehashPolicy()

MOST_PORTS = 64
"""Maximum per queue pair: NICs have at most 60 uplinks above their ToR."""


class RehashSection(Strict):
    """``rehash:``, when a queue pair draws another source port."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    rounds: int = Field(default=_POLICY.rounds, ge=1, le=1000)
    idle_rounds: int = Field(default=_POLICY.idle_rounds, ge=0, le=1000)
    share: Annotated[float, percent("1 %", "100 %")] = _POLICY.share
    suspend_ns: Annotated[int, duration("0 ms", "10 min")] = Field(default=_POLICY.suspend_ns, alias="suspend")


class SpraySection(Strict):
    """``spray:``, when each packet of a queue pair takes another source port, or another path that switches choose."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True)

    ports: int = Field(ge=1, le=MOST_PORTS, examples=["8"])
    reorder: int | None = Field(default=None, ge=1, le=65_536)


class Spraying(NamedTuple):
    """Source ports of a queue pair, and packets that may overtake one before it counts as missing."""

    ports: int
    reorder_packets: int


def rehash_of(mistakes: Mistakes, data: Plain, spec: FabricSpec | None, source_ports: str) -> RehashPolicy | None:
    """Return the policy of ``rehash:``; None if it is absent or invalid."""
    where = ("job", "rehash")
    found = None if data is None else mistakes.check(RehashSection, data, where)
    if found is None:
        return None
    if found.idle_rounds > found.rounds:
        text = f"{found.idle_rounds} marked rounds are more than rounds: {found.rounds}, which move it anyway"
        mistakes.add((*where, "idle_rounds"), f"job.rehash.idle_rounds: {text}; write fewer, or 0 for never")
    if spec is not None and rdma_marker(spec) is None:
        text = "no switch marks packets, so no round is ever marked; write ecn in the topology"
        mistakes.add(where, f"job.rehash: {text}")
    if source_ports in CHOICES and CHOICES[source_ports].follows_ecmp:
        others = ", ".join(choice.name for choice in CHOICES.values() if not choice.follows_ecmp)
        text = f"source_ports: {source_ports} chooses paths again itself; take one of {others}"
        mistakes.add(where, f"job.rehash: {text}")
    return RehashPolicy(**found.model_dump())


def spray_of(
    mistakes: Mistakes, data: Plain, spec: FabricSpec | None, recovery: str, window: int, *, rehashes: bool
) -> Spraying | None:
    """Return the settings of ``spray:`` for such queue pairs; None if they are absent or invalid.

    With one port it is the switches that spray.
    A packet may be overtaken by one packet on each other path without any loss. A loss is detected only by more packets
    than may overtake it. The window holds one fewer than its size.
    """
    where = ("job", "spray")
    found = None if data is None else mistakes.check(SpraySection, data, where)
    if found is None:
        return None
    if found.ports == 1 and spec is not None and not balances(spec):
        text = "is 1; write 2 or more, or let switches choose for each packet: switch.balancing in the topology"
        mistakes.add((*where, "ports"), f"job.spray.ports {text}")
    if recovery != Recovery.SELECTIVE_REPEAT:
        text = f"with recovery: {recovery} all that overtakes a packet is sent again; write recovery: selective-repeat"
        mistakes.add(where, f"job.spray: {text}")
    if rehashes:
        mistakes.add(where, "job.spray: a queue pair on many paths has none to leave; leave out spray or rehash")
    least, most = found.ports, window - 2
    if least > most:
        text = f"a window of {window} packets is too small for {found.ports} ports; write window: {least + 2} or more"
        mistakes.add(where, f"job.spray: {text}")
    elif found.reorder is not None and not least <= found.reorder <= most:
        text = f"{found.reorder} packets {_WRONG_REORDER[found.reorder > most]}; write {least} to {most}"
        mistakes.add((*where, "reorder"), f"job.spray.reorder: {text}")
    return Spraying(found.ports, max(least, window // 2) if found.reorder is None else found.reorder)


_WRONG_REORDER = (
    "are fewer than ports, and one on each path may overtake another with nothing lost",
    "never follow a lost one, as the window has no room for them",
)
