"""Where in the protocols' timers a run's faults fall, and its seeds: drawn from the number of its repeat. Pure.

Changes when a repeat should vary something else. In virtual time a run made again is the same to the last digit, one
sample however often it is made; on the host, timers started with the lab meet the first fault at much the same phase
every time. So each repeat shifts its faults by a time of its own and has hashes of its own. The first repeat is the
drill as its file has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

from hpn.scenarios.drill.model import Drill, Timeline
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.routing.daemons import DAEMONS

MS = 10**6
LACP_PERIOD_MS = {"fast": 1_000, "slow": 30_000}
"""Between two LACPDUs (IEEE 802.1AX-2020, 6.4.4)."""
_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Phase:
    """``number``: of the repeat, from 1. Its faults come ``shift_ns`` after the times in the drill's file, the healthy
    phase being that much longer. ``seed`` is the fabric's: it decides how switches and LAGs hash, and in which order
    source ports are searched."""

    number: int
    shift_ns: int
    seed: int


def span_ns(spec: FabricSpec) -> int:
    """What shifts are drawn from: the longest period of a timer that runs while nothing happens.

    Those are LACPDUs, BGP keepalives, BIRD's look at its interfaces and path control's refresh. Shorter ones, such as
    the 100 ms of Linux bonding's machines and the 100 ms of a stack's keepalives, are met at every phase many times.
    """
    scan_ms = DAEMONS[spec.bgp.daemon].scan_ms
    periods = (LACP_PERIOD_MS[spec.lacp.rate], spec.bgp.keepalive_s * 1000, scan_ms, spec.path_control.refresh_ms)
    return max(periods) * MS


def phase_of(spec: FabricSpec, number: int) -> Phase:
    """The phase of repeat ``number`` on a fabric: drawn at random from ``span_ns``, the same every time."""
    if number == 1:
        return Phase(1, 0, spec.seed)
    shift = int.from_bytes(_digest(f"shift/{number}"), "big") * span_ns(spec) >> 64
    seed = int.from_bytes(_digest(f"seed/{spec.seed}/{number}"), "big") % _SEEDS
    return Phase(number, shift, seed)


def in_phase(drill: Drill, number: int) -> Drill:
    """The drill as repeat ``number`` runs it.

    Who sends to whom, and when a storm's flaps come, stays as the topology's own seed has it: that is the drill's.
    """
    if number == 1:
        return drill
    phase = phase_of(drill.topology, number)
    return replace(
        drill,
        topology=drill.topology.model_copy(update={"seed": phase.seed}),
        workload=replace(drill.workload, seed=drill.topology.seed),
        job=None if drill.job is None else replace(drill.job, seed=drill.topology.seed),
        timeline=_shifted(drill.timeline, phase.shift_ns),
    )


def _shifted(timeline: Timeline, by_ns: int) -> Timeline:
    faults = tuple(replace(planned, at_ns=planned.at_ns + by_ns) for planned in timeline.faults)
    return replace(timeline, healthy_ns=timeline.healthy_ns + by_ns, faults=faults)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
