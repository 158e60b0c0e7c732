"""Answer of a method to a whole run, and its score against each fault. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpn.failover.analysis.location import LocatedFault, Location
from hpn.failover.analysis.metrics.series import StreamSeries
from hpn.failover.locating.known import KnownPaths, Standing
from hpn.failover.locating.observed import Observed, observed
from hpn.failover.locating.recorded import Recorded
from hpn.failover.locating.rounds import STEP_NS, Round, Score, is_right, rounds, score, truths
from hpn.failover.locating.sources import SOURCES


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """Answers of a method to a source over a run, and their score against each fault.

    ``false_alarms``: answers while no fault stood whose first suspect had held none up to then. ``doubts``: why the run
    cannot be trusted, and so none of these; the answer is then inconclusive.
    """

    method: str
    seen: Observed
    rounds: tuple[Round, ...]
    scores: tuple[tuple[Standing, Score], ...]
    false_alarms: int
    source: str = next(iter(SOURCES))
    doubts: tuple[str, ...] = ()


def located(known: KnownPaths, series: StreamSeries, method: str) -> Located:
    """Return what a method makes of a run's streams; nobody is accused where the paths are unknown."""
    return answered(observed(known, series), known.faults, method)


def located_by(run: Recorded, source: str, method: str) -> Located:
    """Return what a method makes of a source. InputError where the run has no records of that kind."""
    return replace(answered(SOURCES[source].load()(run), run.known.faults, method), source=source)


def answered(seen: Observed, faults: Sequence[Standing], method: str) -> Located:
    """Return what a method makes of these observations."""
    found = tuple(rounds(seen, method))
    return Located(
        method=method,
        seen=seen,
        rounds=found,
        scores=tuple((fault, _score(found, seen, fault, faults)) for fault in faults),
        false_alarms=sum(_is_false(each, seen, faults) for each in found),
    )


def location_of(found: Located) -> Location:
    """Return the figures of an answer."""
    return Location(
        method=found.method,
        step_ms=STEP_NS / 1e6,
        faults=tuple(_located_fault(found, fault, score) for fault, score in found.scores),
        false_alarms=found.false_alarms,
        unseen=len(found.seen.suspects.unseen),
    )


def _located_fault(found: Located, fault: Standing, score: Score) -> LocatedFault:
    told = [each for each in found.rounds if fault.at_ns < each.at_ns <= fault.until_ns and each.accused]
    first_ms, stable_ms = (None if ns is None else ns / 1e6 for ns in (score.first_ns, score.stable_ns))
    suspect = str(told[-1].accused[0].suspect) if told else ""
    return LocatedFault(fault.fault, first_ms, stable_ms, score.rounds, score.wrong, suspect, score.lost)


def at_once(fault: Standing, faults: Sequence[Standing]) -> int:
    """Return how many of these faults stand while one of them does, itself included."""
    return sum(each.at_ns < fault.until_ns and fault.at_ns < each.until_ns for each in faults)


def names(told: Round, seen: Observed, fault: Standing, count: int = 1) -> bool:
    """Return True if one of the first ``count`` suspects of an answer holds a fault."""
    return is_right(told, truths(seen, fault.parts), count)


def _score(found: Sequence[Round], seen: Observed, fault: Standing, faults: Sequence[Standing]) -> Score:
    truth = truths(seen, fault.parts)
    told = score(found, truth, fault.at_ns, fault.until_ns, at_once(fault, faults))
    begin, end = ((at_ns - seen.bins.start_ns) // seen.bins.width_ns for at_ns in (fault.at_ns, fault.until_ns))
    then = seen.between(begin, min(end + 1, seen.bins.count))
    hit = [then.suspects.across(suspect) for suspect in truth]
    return replace(told, lost=int(then.lost[np.any(hit, axis=0)].sum()) if hit else 0)


def _is_false(each: Round, seen: Observed, faults: Sequence[Standing]) -> bool:
    before = [fault for fault in faults if fault.at_ns < each.at_ns]
    if not each.accused or any(each.at_ns <= fault.until_ns for fault in before):
        return False
    return not any(each.accused[0].suspect in truths(seen, fault.parts) for fault in before)
