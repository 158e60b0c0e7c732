"""Phase of a run's faults relative to the protocols' timers, and its seeds, drawn from its repeat number. Pure.

Changes when repeats should vary something else.

In virtual time a repeated run is identical and gives only one sample. On the host, timers start with the lab and meet
the first fault at nearly the same phase every time. So each repeat shifts its faults and has its own hash seeds. The
first repeat is the drill as its file says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

from hpn.scenarios.drill.model import Drill, Timeline
from hpn.testbed.fabric.spec import LACP_PERIOD_MS, FabricSpec
from hpn.testbed.fabric.wired.host_configs import asked_rates
from hpn.testbed.routing.daemons import DAEMONS

MS = 10**6
_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Phase:
    """Phase of one repeat.

    ``number``: of the repeat, from 1. ``shift_ns``: delay of its faults against the drill's file; the healthy phase is
    longer by as much. ``seed``: seed of the fabric, for the hashes of switches and LAGs and the search order of source
    ports.
    """

    number: int
    shift_ns: int
    seed: int


def span_ns(spec: FabricSpec) -> int:
    """Return the range of shifts in ns: the longest period of a timer that runs in a healthy lab.

    Those are LACPDUs, BGP keepalives, BIRD's interface scan and path control's refresh. Shorter timers need no shift,
    as a run meets them at every phase many times. Examples are the 100 ms of Linux bonding's state machines and the 100
    ms of a stack's keepalives.
    """
    scan_ms = DAEMONS[spec.bgp.daemon].scan_ms
    lacp_ms = max(LACP_PERIOD_MS[rate] for rate in asked_rates(spec))
    periods = (lacp_ms, spec.bgp.keepalive_s * 1000, scan_ms, spec.path_control.refresh_ms)
    return max(periods) * MS


def phase_of(spec: FabricSpec, number: int) -> Phase:
    """Return the phase of repeat ``number`` on a fabric, pseudo-random within ``span_ns`` and reproducible."""
    if number == 1:
        return Phase(1, 0, spec.seed)
    shift = int.from_bytes(_digest(f"shift/{number}"), "big") * span_ns(spec) >> 64
    seed = int.from_bytes(_digest(f"seed/{spec.seed}/{number}"), "big") % _SEEDS
    return Phase(number, shift, seed)


def in_phase(drill: Drill, number: int) -> Drill:
    """Return the drill as repeat ``number`` runs it.

    Senders, receivers and the times of a storm's flaps belong to the drill, so they keep the topology's own seed.
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
