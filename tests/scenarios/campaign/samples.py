"""Plans, sequences and results for the tests of campaigns."""

from __future__ import annotations

from hpn.failover.faults import FAULTS, MS
from hpn.scenarios.campaign.plan import FaultSequence, FaultStep, Plan
from hpn.scenarios.campaign.result import Invariant, Result, Violation
from hpn.testbed.fabric.presets import PRESETS

TINY = PRESETS["tiny"].spec
PLAN = Plan(1, TINY, tuple(FAULTS))
CUT = FaultStep("link-down", "p0.s0.h0.r0.0", 600 * MS, 700 * MS)
CRASH = FaultStep("tor-crash", "p0.s1.t0.1", 800 * MS, 900 * MS)
FLAP = FaultStep("link-flap", "p0.s0.h1.r1.1", 700 * MS, None, (("period", 200 * MS), ("duty", 0.5), ("count", 3)))


def sequence(*steps: FaultStep, index: int = 0) -> FaultSequence:
    return FaultSequence(index, steps or (CUT,))


def result(
    *steps: FaultStep, index: int = 0, broken: tuple[Invariant, ...] = (), doubts: tuple[str, ...] = ()
) -> Result:
    violations = tuple(Violation(invariant, "evidence") for invariant in broken)
    return Result(sequence(*steps, index=index), violations, doubts, (), 10.0 * index, 10.0 * index + 5)
