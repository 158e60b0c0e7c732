"""What a claim of the HPN paper is, and how it can fare. Pure; the claims are ``scenarios.paper.claims``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hpn.scenarios.paper.judges import Evidence, Finding


class Answer(StrEnum):
    """How a claim fared."""

    AGREES = "agrees"  # a run says the same; a figure may differ, for the reason given
    COMPUTED = "agrees, computed"  # arithmetic does: no packet was sent
    DIFFERS = "differs"
    NOT_SHOWN = "not shown"  # it agrees, but so does a network without what the paper gives the credit to
    NOT_TOLD = "not told"  # the interval of a figure has its limit within, or there is no figure
    NO_EVIDENCE = "no evidence"  # a drill failed its own expectations: it did not measure what it was made for
    NOT_REPRODUCED = "not reproduced"  # nothing here speaks to it yet
    NOT_RUN = "not run"  # this machine could not, or the run was too noisy


@dataclass(frozen=True, slots=True)
class Without:
    """A network without what a claim is about, and the runs on it that take the place of the claim's own.

    ``instead``: of the claim's drills, those that are replaced. ``pod``: the preset that is counted instead of ``pod``.
    """

    what: str
    instead: Mapping[str, str] = field(default_factory=dict)
    pod: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. Without ``judge`` nothing here speaks to it, and ``why`` says what is missing.

    ``shortfall`` says why it is known to differ here; a claim that differs without one is news.
    """

    key: str
    claim: str
    paper: str
    why: str  # ours differs from the paper's
    drills: tuple[str, ...] = ()
    judge: Callable[[Evidence], Finding] | None = None
    by: str = ""  # what speaks to it, when it is no drill
    paths: bool = False  # path figures are a second opinion
    without: tuple[Without, ...] = ()
    shortfall: str = ""

    @property
    def runs(self) -> tuple[str, ...]:
        """Every drill that is needed, each once: those of the claim, then those on networks without its feature."""
        others = (name for each in self.without for name in each.instead.values())
        return tuple(dict.fromkeys((*self.drills, *others)))


DRAWS = (1, 2, 3)
"""Seeds of a comparison's draws. One draw says little: hashes that do not meet cost nothing, others half the rate."""


def drawn(drill: str, seeds: Sequence[int] = DRAWS) -> tuple[str, ...]:
    """The runs of a drill with these seeds of its topology: what hashes, source ports and orders of hosts follow."""
    return tuple(f"{drill}@{seed}" for seed in seeds)


def drill_of(run: str) -> tuple[str, int | None]:
    """The drill of a run by its name, and the seed where that has one."""
    drill, _, seed = run.partition("@")
    return drill, int(seed) if seed else None
