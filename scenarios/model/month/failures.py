"""Failures of a month, drawn by seed from the assumed rates. Pure; imports numpy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hpn.scenarios.model.month.assumptions import Assumptions
from hpn.traffic.fluid.pods import Numbers, Pods
from hpn.traffic.fluid.solve import Floats

MONTH_H = 30 * 24.0


class Kind(StrEnum):
    """Part that fails until it is repaired."""

    LINK = "link"
    TOR = "tor"
    STACK = "stack"  # both ToRs of a stacked set


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of one part.

    ``number``: ``nic * tors + port`` of a link, ``set * tors + k`` of a ToR.
    """

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


def draw(pods: Pods, gpus: int, given: Assumptions, seed: int, month: int) -> Drawn:
    """Draw the failures of the links of the first ``gpus`` GPUs, and of the ToRs.

    Links and ToRs fail as a Poisson process. The rates are the same for each architecture that has the part: a NIC with
    one port has half the links.
    """
    rng = np.random.default_rng([seed, month])
    links, tors = gpus * pods.tors, pods.sets * pods.tors
    failures = []
    for parts, rate, repair_h, kind in (
        (links, given.links_a_month, given.link_repair_h, Kind.LINK),
        (tors, given.tors_a_month, given.tor_repair_h, Kind.TOR),
    ):
        count = int(rng.poisson(parts * rate))
        at, lot = rng.uniform(0, MONTH_H, count), rng.uniform(size=count)
        numbers = rng.integers(0, parts, count)
        if kind is Kind.LINK:
            numbers = _numbered(pods, gpus, numbers)
        for start, number, drawn in zip(at, numbers, lot, strict=True):
            both = kind is Kind.TOR and pods.stacked and drawn < given.stacks_lost
            failures.append(Failure(float(start), float(start + repair_h), Kind.STACK if both else kind, int(number)))
    failures.sort(key=lambda failure: failure.at_h)
    return Drawn(tuple(failures), _flaps(rng, pods, gpus, given), rng.uniform(size=1000))


def expected_flaps(pods: Pods, gpus: int, given: Assumptions) -> float:
    """Return the expected flaps in a month on these GPUs' links.

    All NICs of the fleet are assumed to have two ports and similar links.
    """
    return given.flaps_a_day * MONTH_H / 24 * (gpus * pods.tors) / (given.fleet_gpus * 2)


def _flaps(rng: np.random.Generator, pods: Pods, gpus: int, given: Assumptions) -> Flaps:
    count = int(rng.poisson(expected_flaps(pods, gpus, given)))
    at = np.sort(rng.uniform(0, MONTH_H, count))
    return Flaps(at, rng.exponential(given.flap_s, count), rng.uniform(size=count))


def _numbered(pods: Pods, gpus: int, numbers: Numbers) -> Numbers:
    """Return the global numbers of links, from their numbers among the job's links.

    The job has the first hosts of each rail.
    """
    hosts = gpus // pods.rails
    nic = numbers // pods.tors
    return (nic // hosts * pods.nics_of_a_rail + nic % hosts) * pods.tors + numbers % pods.tors
