"""Shrink a failing sequence to the smallest that still fails. PURE: ``fails`` runs it, ``valid`` reads it.

First faults are removed one by one, as long as possible (delta debugging, which for four faults amounts to this). Then
the rest gets simpler: fewer repeats, shorter, earlier, the first of the possible targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from hpn.failover.faults import FAULTS, MS, Unit, parameters
from hpn.scenarios.campaign.plan import HEALTHY_NS, FaultSequence, FaultStep, Valid, Value

Fails = Callable[[FaultSequence], bool]
Targets = Mapping[str, tuple[str, ...]]
"""Valid targets by kind of fault; the first counts as the simplest."""

MOST_TRIES = 24
_SHORT_NS = 100 * MS


def shrink(
    sequence: FaultSequence, fails: Fails, valid: Valid, targets: Targets, most: int = MOST_TRIES
) -> FaultSequence:
    """Return the smallest failing sequence found in at most ``most`` calls of ``fails``; ``sequence`` itself fails."""
    tries = most
    smallest = sequence
    found: FaultSequence | None = smallest
    while found is not None:
        smallest, found = found, None
        for candidate in candidates(smallest, targets):
            if not valid(candidate):
                continue
            if tries == 0:
                return smallest
            tries -= 1
            if fails(candidate):
                found = candidate
                break
    return smallest


def candidates(sequence: FaultSequence, targets: Targets) -> Iterator[FaultSequence]:
    """Yield everything one step smaller, the greatest steps first."""
    steps = sequence.steps
    if len(steps) > 1:
        for at in range(len(steps)):
            yield replace(sequence, steps=steps[:at] + steps[at + 1 :])
    for at, step in enumerate(steps):
        for simpler in _simpler(step, targets.get(step.kind, ())):
            yield replace(sequence, steps=(*steps[:at], simpler, *steps[at + 1 :]))
    early_ns = min(step.at_ns for step in steps) - HEALTHY_NS
    if early_ns > 0:
        yield replace(sequence, steps=tuple(replace(step, at_ns=step.at_ns - early_ns) for step in steps))


def _simpler(step: FaultStep, targets: tuple[str, ...]) -> Iterator[FaultStep]:
    for at, (key, value) in enumerate(step.arguments):
        for less in _less(step.kind, key, value):
            yield replace(step, arguments=(*step.arguments[:at], (key, less), *step.arguments[at + 1 :]))
    if step.for_ns is not None and step.for_ns >= 2 * _SHORT_NS:
        yield replace(step, for_ns=_half(step.for_ns))
    if targets and step.target != targets[0]:
        yield replace(step, target=targets[0])


def _less(kind: str, key: str, value: Value) -> Iterator[Value]:
    parameter = next(found for found in parameters(FAULTS[kind]).values() if found.key == key)
    if parameter.choices is not None:
        first = next(iter(parameter.choices)).value
        if value != first:
            yield first
    elif parameter.unit is Unit.COUNT and int(value) > (least := max(int(parameter.low), 1)):
        yield least
    elif parameter.unit is Unit.DURATION and int(value) >= 2 * max(_SHORT_NS, int(parameter.low)):
        yield _half(int(value))


def _half(ns: int) -> int:
    """Return half of a time, in tens of ms, as round figures read better."""
    return ns // 2 // (10 * MS) * 10 * MS
