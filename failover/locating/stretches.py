"""Answers over a run as stretches in which the same part is accused first, and whether it is at fault. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hpn.failover.analysis.location import Stretch
from hpn.failover.locating.answer import Located
from hpn.failover.locating.known import Standing
from hpn.failover.locating.observed import Observed
from hpn.failover.locating.parts import Suspect
from hpn.failover.locating.rounds import truths


def stretches(found: Located) -> Iterator[Stretch]:
    """Yield the stretches in which somebody is accused, in order."""
    faults = [fault for fault, _ in found.scores]
    for suspect, group in groupby(found.rounds, key=lambda each: each.accused[0].suspect if each.accused else None):
        if suspect is None:
            continue
        told = list(group)
        best = max((each.accused[0] for each in told), key=lambda each: each.confidence)
        yield Stretch(
            begin_ns=told[0].at_ns,
            end_ns=told[-1].at_ns,
            suspect=str(suspect),
            loss=best.loss,
            confidence=best.confidence,
            fault=_fault(found.seen, suspect, faults, told[-1].at_ns),
        )


def _fault(seen: Observed, suspect: Suspect, faults: Sequence[Standing], until_ns: int) -> str:
    """Return the last fault that began before a time and is in the suspect; '' if there is none."""
    begun = [fault for fault in faults if fault.at_ns < until_ns and suspect in truths(seen, fault.parts)]
    return max(begun, key=lambda fault: fault.at_ns).fault if begun else ""
