"""Failures of a month, drawn by seed from the assumed rates. Pure; imports numpy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.traffic.fluid.solve import Floats

MONTH_H = 30 * 24.0


class Kind(StrEnum):
    """Part that fails until it is repaired."""

    LINK = "link"
    TOR = "tor"
    STACK = "stack"  # both ToRs of a stacked set


Failed = tuple[Kind, int]
"""A failed part: its kind, and its number in the job's network."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of one part, by its number in the job's network."""

    at_h: float
    until_h: float
    kind: Kind
    number: int


@dataclass(frozen=True, eq=False)
class Flaps:
    """Flaps, links that lose carrier for a moment: time, duration, and position (0 to 1) in an iteration."""

    at_h: Floats
    dark_s: Floats
    phase: Floats


@dataclass(frozen=True, eq=False)
class Drawn:
    """Failures of one month in order of time, and a random number per crash for the work that it loses."""

    failures: tuple[Failure, ...]
    flaps: Flaps
    rollbacks: Floats  # share of a checkpoint interval, 0 to 1, crash by crash


class Parts(Protocol):
    """Parts of a job's network that may fail."""

    @property
    def links(self) -> int:
        """NIC-ToR links of the job."""

    @property
    def tors(self) -> int:
        """ToRs."""

    @property
    def stacked(self) -> bool:
        """True if ToRs are stacks of two, which may fail together."""

    def link(self, of_job: int) -> int:
        """Return the number of the job's n-th NIC-ToR link."""


def draw(parts: Parts, given: Assumptions, seed: int, month: int) -> Drawn:
    """Draw the failures of the job's links, and of the ToRs.

    Links and ToRs fail as a Poisson process. The rates are the same for each architecture that has the part: a NIC with
    one port has half the links.
    """
    rng = np.random.default_rng([seed, month])
    failures = []
    for many, rate, repair_h, kind in (
        (parts.links, given.links_a_month, given.link_repair_h, Kind.LINK),
        (parts.tors, given.tors_a_month, given.tor_repair_h, Kind.TOR),
    ):
        count = int(rng.poisson(many * rate))
        at, lot = rng.uniform(0, MONTH_H, count), rng.uniform(size=count)
        for start, number, drawn in zip(at, rng.integers(0, many, count).tolist(), lot, strict=True):
            both = kind is Kind.TOR and parts.stacked and drawn < given.stacks_lost
            which = parts.link(number) if kind is Kind.LINK else number
            failures.append(Failure(float(start), float(start + repair_h), Kind.STACK if both else kind, which))
    failures.sort(key=lambda failure: failure.at_h)
    return Drawn(tuple(failures), _flaps(rng, parts.links, given), rng.uniform(size=1000))


def expected_flaps(links: int, given: Assumptions) -> float:
    """Return the expected flaps of these NIC-ToR links in a month.

    All NICs of the fleet are assumed to have two ports and similar links.
    """
    return given.flaps_a_day * MONTH_H / 24 * links / (given.fleet_gpus * 2)


def _flaps(rng: np.random.Generator, links: int, given: Assumptions) -> Flaps:
    count = int(rng.poisson(expected_flaps(links, given)))
    at = np.sort(rng.uniform(0, MONTH_H, count))
    return Flaps(at, rng.exponential(given.flap_s, count), rng.uniform(size=count))
