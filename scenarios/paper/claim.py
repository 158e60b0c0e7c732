"""Claim of the HPN paper and its possible answers. Pure; the claims are in ``scenarios.paper.claims``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hpn.scenarios.paper.measures import ClaimEvidence, Finding


class ClaimAnswer(StrEnum):
    """Answer to a claim."""

    AGREES = "agrees"  # a run confirms it; a figure may differ, for the reason given
    COMPUTED = "agrees, computed"  # by calculation: no packet was sent
    DIFFERS = "differs"
    NOT_SHOWN = "not shown"  # it agrees, but so does a network without the feature that the paper credits
    NOT_TOLD = "not told"  # the limit lies in the interval of a figure, or there is no figure
    NO_EVIDENCE = "no evidence"  # a drill failed its own expectations, so it did not measure what it should
    NOT_REPRODUCED = "not reproduced"  # no drill or calculation covers it yet
    NOT_RUN = "not run"  # this machine could not run it, or the run was too noisy


@dataclass(frozen=True, slots=True)
class Without:
    """Network without the claimed feature, and the runs on it that replace the claim's own.

    ``instead``: replacements by drill of the claim. ``pod``: the preset counted instead of ``pod``.
    """

    what: str
    instead: Mapping[str, str] = field(default_factory=dict)
    pod: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the paper. Without ``judge`` it is not covered here, and ``why`` says what is missing.

    ``shortfall`` explains a known difference; a claim that differs without one is news.
    """

    key: str
    claim: str
    paper: str
    why: str  # reason that our figure differs from the paper's
    drills: tuple[str, ...] = ()
    judge: Callable[[ClaimEvidence], Finding] | None = None
    by: str = ""  # source of the answer, if not a drill
    paths: bool = False  # path figures are a second opinion
    without: tuple[Without, ...] = ()
    shortfall: str = ""

    @property
    def runs(self) -> tuple[str, ...]:
        """Required drills, each once: those of the claim, then those on networks without its feature."""
        others = (name for each in self.without for name in each.instead.values())
        return tuple(dict.fromkeys((*self.drills, *others)))


DRAWS = (1, 2, 3)
"""Seeds of a comparison. One draw is not enough: without hash collisions nothing is lost, with them half the rate."""


def drawn(drill: str, seeds: Sequence[int] = DRAWS) -> tuple[str, ...]:
    """Return the runs of a drill with these topology seeds, which set hashes, source ports and orders of hosts."""
    return tuple(f"{drill}@{seed}" for seed in seeds)


def drill_of(run: str) -> tuple[str, int | None]:
    """Return the drill of a run by its name, and the seed if it has one."""
    drill, _, seed = run.partition("@")
    return drill, int(seed) if seed else None
