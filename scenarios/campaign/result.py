"""What came of one sequence, as plain data: it is kept in a journal and sent between processes and machines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hpn.scenarios.campaign.plan import FaultSequence, Plan


class Invariant(StrEnum):
    """What must hold after every sequence."""

    STATE = "state restored"
    CONVERGENCE = "lab converges"
    HOST_ROUTE = "ports have host routes"
    LOOP = "no forwarding loop"
    BLACK_HOLE = "no black hole"
    SILENCE = "flows go on"
    QUEUE_PAIR = "queue pairs live"
    CONTROL = "others lose nothing"
    MOVES = "queue pairs leave for a reason and return"
    LEAK = "no leak"
    CRASH = "no crash"


class Outcome(StrEnum):
    """What came of a sequence."""

    CLEAN = "clean"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold, with the evidence in one line."""

    invariant: Invariant
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """One sequence, run. ``before`` has the indexes of those that the same lab had seen; times are epoch seconds.

    ``tries`` counts how often it was run until it was conclusive, or given up.
    """

    sequence: FaultSequence
    violations: tuple[Violation, ...]
    doubts: tuple[str, ...] = ()  # why a measurement was not to be trusted
    before: tuple[int, ...] = ()
    started_at: float = 0.0
    ended_at: float = 0.0
    tries: int = 1

    @property
    def outcome(self) -> Outcome:
        """A violation is one whatever else was in doubt: what a doubt can excuse was never made a violation."""
        if self.violations:
            return Outcome.VIOLATION
        return Outcome.INCONCLUSIVE if self.doubts else Outcome.CLEAN

    @property
    def broken(self) -> frozenset[Invariant]:
        """The invariants that did not hold."""
        return frozenset(violation.invariant for violation in self.violations)


@dataclass(frozen=True, slots=True)
class Job:
    """Sequences to be run one after the other in one lab, for as long as it stays whole."""

    plan: Plan
    sequences: tuple[FaultSequence, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a job. Sequences after the last result were not run. ``stood``: its lab had converged.

    ``error`` and ``exit_code``: what ended it before its time, one of the product's own errors (the machine cannot do
    it), or '' and 0. ``crash``: the last words of a process that died.
    """

    results: tuple[Result, ...] = ()
    error: str = ""
    exit_code: int = 0
    crash: str = ""
    leaks: tuple[str, ...] = ()
    stood: bool = False
