"""Figures of locating a drill's faults: when the losses of streams told where each is. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocatedFault:
    """A fault, and when the losses of streams told where it is; times in ms from its injection, None: never.

    ``suspect``: last one accused before the repair, '' if nobody. ``wrong``: those of ``answers`` that accused others.
    ``lost``: packets lost meanwhile on known paths across it; None in run folders that do not say. Without any nobody
    can tell where it is.
    """

    fault: str
    first_ms: float | None
    stable_ms: float | None
    answers: int
    wrong: int
    suspect: str
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class Drained:
    """A link that was taken out of use because it was located, ``after_ms`` from ``fault``.

    ``fault`` is '' and ``after_ms`` None if no fault stood in it. ``lost``: packets lost from then until the repair, or
    the end; ``if_left``: what they would be at the rate of loss before; None if no fault stood in it.
    """

    link: str
    fault: str
    after_ms: float | None
    lost: int
    if_left: int | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Answers from ``begin_ns`` to ``end_ns`` (CLOCK_MONOTONIC) that accuse the same part first; figures of the surest.

    ``fault``: which is in that part; '' if none is, or none has been so far.
    """

    begin_ns: int
    end_ns: int
    suspect: str
    loss: float
    confidence: float
    fault: str


@dataclass(frozen=True, slots=True)
class Location:
    """Location of a drill's faults by ``method``; ``step_ms``: time between two answers.

    ``false_alarms``: answers, while nothing is wrong, that name a part which never failed. ``unseen``: links that no
    stream crossed.
    """

    method: str
    step_ms: float
    faults: tuple[LocatedFault, ...]
    false_alarms: int
    unseen: int
    drains: tuple[Drained, ...] = ()
    stretches: tuple[Stretch, ...] = ()
