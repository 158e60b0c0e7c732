"""Claim of the HPN paper and its possible answers. Pure; the claims are in ``scenarios.paper.claims``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hpn.scenarios.paper.measures import ClaimEvidence, Finding, draw_of
from hpn.scenarios.paper.variants import Variant


class ClaimAnswer(StrEnum):
    """Answer to a claim."""

    AGREES = "agrees"  # a run confirms it; a figure may differ, for the reason given
    COMPUTED = "agrees, computed"  # by calculation: no packet was sent
    COUNTED = "counted"  # it agrees, and is true by construction of the two networks: a run can only count it
    DIFFERS = "differs"
    NOT_SHOWN = "not shown"  # it agrees, but so does a network without the feature that the paper credits
    NOT_TOLD = "not told"  # the limit lies in the interval of a figure, or there is no figure
    NO_EVIDENCE = "no evidence"  # a drill failed its own expectations, so it did not measure what it should
    NOT_REPRODUCED = "not reproduced"  # no drill or calculation covers it yet
    NOT_RUN = "not run"  # this machine could not run it, or the run was too noisy


@dataclass(frozen=True, slots=True)
class Without:
    """Network without the claimed feature, and the drills on it that replace the claim's own.

    ``instead``: replacements by drill of the claim. ``pod``: the preset counted instead of ``pod``. ``judge``: the
    claim's judge, computing for that network.
    """

    what: str
    instead: Mapping[str, str] = field(default_factory=dict)
    pod: str = ""
    judge: Callable[[ClaimEvidence], Finding] | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the paper. Without ``judge`` it is not covered here, and ``why`` says what is missing.

    ``drawn``: drills that are run with several draws; others run once, as no hash decides there. ``counted``: why
    it is true by construction. ``shortfall`` explains a known difference; a claim that differs without one is news.
    ``variants``: drills that are made of others.
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
    drawn: tuple[str, ...] = ()
    counted: str = ""
    variants: tuple[Variant, ...] = ()

    def runs(self, draws: int) -> tuple[str, ...]:
        """Return the runs needed, each once: its own, then those on networks without its feature."""
        others = (other for each in self.without for other in self.instead(each, draws).values())
        return tuple(dict.fromkeys((*self.own_runs(draws), *others)))

    def own_runs(self, draws: int) -> tuple[str, ...]:
        """Return the runs of the claim's own drills."""
        return tuple(self._run(drill, draw) for drill in self.drills for draw in self._numbers(drill, draws))

    def instead(self, without: Without, draws: int) -> dict[str, str]:
        """Return the runs that replace the claim's own on a network without its feature.

        A drill of the claim that replaces another one is taken a draw further: the same network with other luck.
        """
        return {
            self._run(name, draw): self._run(other, draw % draws + 1 if other in self.drills else draw)
            for name, other in without.instead.items()
            for draw in self._numbers(name, draws)
        }

    def _numbers(self, drill: str, draws: int) -> range:
        return range(1, draws + 1 if drill in self.drawn else 2)

    def _run(self, drill: str, draw: int) -> str:
        return draw_of(drill, draw) if drill in self.drawn else drill


def lacks(claim: Claim) -> Iterator[str]:
    """Yield what an entry must say and does not: a claim that is judged needs networks without its feature."""
    for name in ("key", "claim", "paper", "why"):
        if not getattr(claim, name):
            yield name
    if claim.judge is None:
        return
    if not claim.drills and not claim.by:
        yield "drills, or what it is computed by"
    if not claim.without:
        yield "networks without its feature"
    for each in claim.without:
        if [bool(each.pod), bool(each.instead), each.judge is not None].count(True) != 1:
            yield f"runs, or else a pod or a judge, without {each.what}"
        if not set(each.instead) <= set(claim.drills) or any(name == other for name, other in each.instead.items()):
            yield f"other drills in place of its own without {each.what}"
        if any(other in claim.drawn and name not in claim.drawn for name, other in each.instead.items()):
            yield f"one run in place of one without {each.what}"


DRAWS = 12
"""Draws of a comparison by default: of 3, an interval is 2.3 times as wide."""


def drill_of(run: str) -> tuple[str, int | None]:
    """Return the drill of a run by its name, and the draw if it is one."""
    drill, _, draw = run.partition("@")
    return drill, int(draw) if draw else None
