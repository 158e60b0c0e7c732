"""Result of one sequence as plain data: it is stored in a journal and sent between processes and machines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hpn.scenarios.campaign.plan import FaultSequence, Plan


class Invariant(StrEnum):
    """Invariant after every sequence."""

    STATE = "state restored"
    CONVERGENCE = "lab converges"
    HOST_ROUTE = "ports have host routes"
    LOOP = "no forwarding loop"
    BLACK_HOLE = "no black hole"
    SILENCE = "flows go on"
    QUEUE_PAIR = "queue pairs live"
    CONTROL = "others lose nothing"
    MOVES = "queue pairs leave for a reason and return"
    CABLING = "cables as planned"
    LEAK = "no leak"
    CRASH = "no crash"
    OUTAGE = "outages within the drill's limits"


class Outcome(StrEnum):
    """Outcome of a sequence."""

    CLEAN = "clean"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Violation:
    """Violated invariant, with the evidence in one line."""

    invariant: Invariant
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one sequence.

    ``before`` has the indexes of earlier sequences on the same lab; times are epoch seconds. ``tries`` counts its runs
    until it was conclusive or abandoned.
    """

    sequence: FaultSequence
    violations: tuple[Violation, ...]
    doubts: tuple[str, ...] = ()  # why a measurement is not trusted
    before: tuple[int, ...] = ()
    started_at: float = 0.0
    ended_at: float = 0.0
    tries: int = 1

    @property
    def outcome(self) -> Outcome:
        """Outcome; a violation counts whatever the doubts, as anything that a doubt excuses is no violation."""
        if self.violations:
            return Outcome.VIOLATION
        return Outcome.INCONCLUSIVE if self.doubts else Outcome.CLEAN

    @property
    def broken(self) -> frozenset[Invariant]:
        """Invariants that did not hold."""
        return frozenset(violation.invariant for violation in self.violations)


@dataclass(frozen=True, slots=True)
class SequenceJob:
    """Sequences to be run in turn on one lab, until one violates an invariant."""

    plan: Plan
    sequences: tuple[FaultSequence, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a job; sequences after the last result were not run.

    ``stood``: its lab had converged. ``error`` and ``exit_code``: hpn's own error that ended it early (the machine
    cannot run it), or '' and 0. ``crash``: the last output of a process that failed.
    """

    results: tuple[Result, ...] = ()
    error: str = ""
    exit_code: int = 0
    crash: str = ""
    leaks: tuple[str, ...] = ()
    stood: bool = False
