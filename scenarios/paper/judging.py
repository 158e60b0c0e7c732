"""Answer to a claim from its runs and those on networks without its feature. Pure but for reading run folders.

A claim that also holds in a network without its feature is not shown, and a drill that fails is no evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from hpn.results.run.folder import RunFolder
from hpn.scenarios.paper.answers import ClaimRow, WithoutRow
from hpn.scenarios.paper.claim import DRAWS, Claim, ClaimAnswer, Without
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.path_figures import PathFigures
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a drill: its run folder, or why it cannot be used.

    ``failed``: True if it failed its own expectations. ``hosts``: their profile.
    """

    run: RunFolder | None
    problem: str = ""
    failed: bool = False
    hosts: str = ""

    @property
    def answer(self) -> ClaimAnswer:
        """Answer to a claim that needs this run, if there is a problem with it."""
        return ClaimAnswer.NO_EVIDENCE if self.failed else ClaimAnswer.NOT_RUN


def judge(claim: Claim, ran: Mapping[str, Ran], paths: Mapping[str, PathFigures], draws: int = DRAWS) -> ClaimRow:
    """Return the row of a claim. Missing evidence leaves it without an answer."""
    by = (_by(claim, claim.drills, draws) or claim.by or "nothing yet") + _hosts(claim.own_runs(draws), ran)
    if claim.judge is None:
        return ClaimRow(claim.key, claim.claim, claim.paper, "-", ClaimAnswer.NOT_REPRODUCED, by, claim.why)
    evidence = _evidence(claim, ran, paths, draws)
    finding, answer = _answer(claim, claim.judge, evidence, ran, claim.own_runs(draws))
    without = tuple(_without(claim, claim.judge, each, evidence, ran) for each in claim.without)
    doubts = [doubt for each in without if (doubt := _doubt(each)) is not None]
    if answer in AGREEING and doubts:
        answer = min(doubts, key=_STRICTNESS.index)
    differs = answer is ClaimAnswer.DIFFERS and bool(claim.shortfall)
    reasons = (claim.shortfall if differs else "", claim.counted, claim.why)
    why = "; ".join(reason for reason in reasons if reason)
    row = ClaimRow(claim.key, claim.claim, claim.paper, finding.ours, answer, by, why, without, known=differs)
    return replace(row, points=finding.points, details=finding.details)


def _evidence(claim: Claim, ran: Mapping[str, Ran], paths: Mapping[str, PathFigures], draws: int) -> ClaimEvidence:
    names = (name for name in claim.runs(draws) if name in ran)
    runs = {name: ran[name].run for name in names if not ran[name].problem}
    there = {name: run for name, run in runs.items() if run is not None}
    return ClaimEvidence(
        {name: run.metrics() for name, run in there.items()},
        {name: run.events() for name, run in there.items()},
        paths,
        inventory(load_fabric("pod")),
        draws=draws,
    )


AGREEING = (ClaimAnswer.AGREES, ClaimAnswer.COMPUTED, ClaimAnswer.COUNTED)
_STRICTNESS = (ClaimAnswer.NO_EVIDENCE, ClaimAnswer.NOT_SHOWN, ClaimAnswer.NOT_TOLD, ClaimAnswer.NOT_RUN)
"""Order of answers: the first one stands if there are several problems."""


def _doubt(without: WithoutRow) -> ClaimAnswer | None:
    """Return the doubt from a network without the feature, or None if it differs there, as it must."""
    if without.answer in AGREEING:
        return ClaimAnswer.NOT_SHOWN
    return None if without.answer is ClaimAnswer.DIFFERS else without.answer


def _without(
    claim: Claim,
    judge: Callable[[ClaimEvidence], Finding],
    without: Without,
    evidence: ClaimEvidence,
    ran: Mapping[str, Ran],
) -> WithoutRow:
    """Apply the claim's own judge to evidence whose runs, or pod, are those of a network without the feature."""
    instead = claim.instead(without, evidence.draws)
    names = tuple(instead.get(name, name) for name in claim.own_runs(evidence.draws))
    by = _by(claim, without.instead.values(), evidence.draws) or (
        f"hpn plan {without.pod}" if without.pod else claim.by
    )
    others = {name: other for name, other in instead.items() if other in evidence.drills}
    swapped = replace(
        evidence,
        drills={**evidence.drills, **{name: evidence.drills[other] for name, other in others.items()}},
        events={**evidence.events, **{name: evidence.events[other] for name, other in others.items()}},
        paths={},
        pod=inventory(load_fabric(without.pod)) if without.pod else evidence.pod,
        preset=without.pod or evidence.preset,
    )
    finding, answer = _answer(claim, without.judge or judge, swapped, ran, names)
    return WithoutRow(without.what, finding.ours, answer, by)


def _by(claim: Claim, drills: Iterable[str], draws: int) -> str:
    """Return the drills, each once, with the number of its draws or variants if there are several."""
    made_of = {variant.name: variant.drill for variant in claim.variants}
    names = dict.fromkeys(drills)
    variants = Counter(made_of[name] for name in names if name in made_of)
    words = {drill: f"{drill} ({count} variants)" for drill, count in variants.items()}
    words |= {name: f"{name} ({draws} draws)" for name in names if name in claim.drawn}
    return ", ".join(dict.fromkeys(words.get(made_of.get(name, name), name) for name in names))


def _hosts(names: Iterable[str], ran: Mapping[str, Ran]) -> str:
    """Return ' on lab hosts', by the profiles of the runs; '' if none is known."""
    profiles = sorted({ran[name].hosts for name in names if name in ran} - {""})
    return f" on {' and '.join(profiles)} hosts" if profiles else ""


def _answer(
    claim: Claim,
    judge: Callable[[ClaimEvidence], Finding],
    evidence: ClaimEvidence,
    ran: Mapping[str, Ran],
    names: Iterable[str],
) -> tuple[Finding, ClaimAnswer]:
    """Return our result and the answer if every one of the runs ``names`` can be used; else the problem with one."""
    problems = [
        (Finding(f"{name}: {ran[name].problem}", None), ran[name].answer) for name in names if ran[name].problem
    ]
    if problems:
        return min(problems, key=lambda each: _STRICTNESS.index(each[1]))
    finding = judge(evidence)
    if finding.agrees is None:
        return finding, ClaimAnswer.NOT_TOLD
    return finding, _agreeing(claim) if finding.agrees else ClaimAnswer.DIFFERS


def _agreeing(claim: Claim) -> ClaimAnswer:
    if claim.counted:
        return ClaimAnswer.COUNTED
    return ClaimAnswer.AGREES if claim.drills else ClaimAnswer.COMPUTED
