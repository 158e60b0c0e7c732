"""Reproduction (``hpn reproduce``): every claim of the paper that a testbed can check, compared with new runs.

The claims are in ``scenarios.paper.claims``; here drills are run, paths computed, and the answers written. A claim that
also holds in a network without its feature is not shown, and a drill that fails is no evidence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.results.judge.verdict import Outcome
from hpn.results.run.folder import RunFolder
from hpn.scenarios.batch.pool.drills import Made, RequestedRun, run_all
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.paper.answers import ClaimRow, WithoutRow, document, markdown
from hpn.scenarios.paper.claim import Claim, ClaimAnswer, Without, drill_of
from hpn.scenarios.paper.claims import CLAIMS
from hpn.scenarios.paper.measures import ClaimEvidence, Finding
from hpn.scenarios.paper.path_figures import PathFigures, measure
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.replacing import replace_text
from hpn.testbed.vm.engines import ENGINES, HOST, EngineSpec, named

FOLDER = Path(__file__).parent / "drills"
"""Drills used only for claims; the library's are used where it has one."""

JSON, MARKDOWN = "reproduction.json", "reproduction.md"


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


def choose(keys: Sequence[str]) -> tuple[Claim, ...]:
    """Return the claims of these keys, or all without keys. InputError for an unknown one."""
    known = {claim.key: claim for claim in CLAIMS}
    for key in keys:
        if key not in known:
            raise InputError(f"no claim {key!r}; {did_you_mean(key, list(known), 'claims are')}")
    return tuple(known[key] for key in keys) or CLAIMS


def default_engine() -> str:
    """Return virtual time if its kernel is installed, else the host."""
    return next((spec.name for spec in ENGINES.values() if spec.virtual_time and _can(spec)), HOST.name)


def _can(spec: EngineSpec) -> bool:
    try:
        spec.engine().check()
    except MachineError:
        return False
    return True


def drill_file(name: str) -> Path:
    """Return the file of a drill that a claim names."""
    own = FOLDER / f"{name}.yaml"
    return own if own.is_file() else catalogue.find(name)


def wanted_of(claims: Sequence[Claim], engine: str, out: Path, command: tuple[str, ...]) -> dict[str, RequestedRun]:
    """Return the runs that the claims need, each into OUT/DRILL or OUT/DRILL@SEED."""
    spec, names = named(engine), dict.fromkeys(name for claim in claims for name in claim.runs)
    return {name: RequestedRun(_order(name, out / name, command), spec) for name in names}


def reproduce(
    claims: Sequence[Claim],
    wanted: Mapping[str, RequestedRun],
    engine: str,
    out: Path,
    on_line: Callable[[str], None],
    pool: Pool,
    ended: Callable[[str], None] = lambda _name: None,
) -> tuple[ClaimRow, ...]:
    """Make the ``wanted`` runs by a pool and judge the claims by them; ``ended`` is called with the name of each.

    A drill that cannot be run leaves its claims unanswered. JSON and Markdown are written to ``out``.
    """
    ran = {}
    for made in run_all(pool, wanted, lambda name, where: on_line(f"{name}: on {engine}{where and f' at {where}'}")):
        ran[made.name] = _ran(made, on_line)
        ended(made.name)
    paths: Mapping[str, PathFigures] = {}
    if any(claim.paths for claim in claims):
        on_line("paths: two labs on the host")
        try:
            paths = measure()
        except MachineError as error:
            on_line(f"paths: {error}")
    rows = tuple(judge(claims, ran, paths))
    out.mkdir(parents=True, exist_ok=True)
    replace_text(out / JSON, json.dumps(document(rows, engine), indent=2) + "\n")
    replace_text(out / MARKDOWN, markdown(rows, engine))
    return rows


def _order(name: str, out: Path, command: tuple[str, ...]) -> Order:
    base, seed = drill_of(name)
    drill = load_drill(drill_file(base))
    return Order(drill if seed is None else drill.seeded(seed), out, command)


def _ran(made: Made, on_line: Callable[[str], None]) -> Ran:
    """Return the result of a run. InputError for a place with other files."""
    run = made.run
    if isinstance(run, MachineError | NoisyError):
        return Ran(None, str(run).splitlines()[0])
    if isinstance(run, HpnError):
        raise run
    verdict, hosts = run.verdict(), run.manifest().host_profile
    on_line(f"{made.name}: {verdict.outcome}")
    if verdict.outcome is Outcome.FAIL:
        broken = (check.text for check in verdict.checks if check.outcome is Outcome.FAIL)
        return Ran(run, f"failed: {', '.join(broken)}", failed=True, hosts=hosts)
    noisy = verdict.outcome is Outcome.INCONCLUSIVE
    return Ran(run, f"inconclusive: {(verdict.doubts or ('a limit was too near',))[0]}" if noisy else "", hosts=hosts)


def judge(claims: Iterable[Claim], ran: Mapping[str, Ran], paths: Mapping[str, PathFigures]) -> Iterator[ClaimRow]:
    """Yield a row for each claim. Missing evidence leaves a claim without an answer."""
    runs = {name: each.run for name, each in ran.items() if each.run is not None and not each.problem}
    evidence = ClaimEvidence(
        {name: run.metrics() for name, run in runs.items()},
        {name: run.events() for name, run in runs.items()},
        paths,
        inventory(load_fabric("pod")),
    )
    for claim in claims:
        yield _row(claim, evidence, ran)


def _row(claim: Claim, evidence: ClaimEvidence, ran: Mapping[str, Ran]) -> ClaimRow:
    by = (_by(claim.drills) or claim.by or "nothing yet") + _hosts(claim.drills, ran)
    why = f"{claim.shortfall}; {claim.why}" if claim.shortfall else claim.why
    if claim.judge is None:
        return ClaimRow(claim.key, claim.claim, claim.paper, "-", ClaimAnswer.NOT_REPRODUCED, by, why)
    ours, answer = _answer(claim, claim.judge, evidence, ran, claim.drills)
    without = tuple(_without(claim, claim.judge, each, evidence, ran) for each in claim.without)
    doubts = [doubt for each in without if (doubt := _doubt(each)) is not None]
    if answer in AGREEING and doubts:
        answer = min(doubts, key=_STRICTNESS.index)
    known = answer is ClaimAnswer.DIFFERS and bool(claim.shortfall)
    return ClaimRow(claim.key, claim.claim, claim.paper, ours, answer, by, why, without, known)


AGREEING = (ClaimAnswer.AGREES, ClaimAnswer.COMPUTED)
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
    names = tuple(without.instead.get(name, name) for name in claim.drills)
    by = _by(without.instead.values()) or f"hpn plan {without.pod}"
    others = {name: other for name, other in without.instead.items() if other in evidence.drills}
    swapped = replace(
        evidence,
        drills={**evidence.drills, **{name: evidence.drills[other] for name, other in others.items()}},
        events={**evidence.events, **{name: evidence.events[other] for name, other in others.items()}},
        paths={},
        pod=inventory(load_fabric(without.pod)) if without.pod else evidence.pod,
        preset=without.pod or evidence.preset,
    )
    return WithoutRow(without.what, *_answer(claim, judge, swapped, ran, names), by)


def _by(runs: Iterable[str]) -> str:
    """Return the drills of runs, each once, with the number of its draws if there are several."""
    draws = Counter(drill_of(run)[0] for run in dict.fromkeys(runs))
    return ", ".join(drill if count == 1 else f"{drill} ({count} draws)" for drill, count in draws.items())


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
) -> tuple[str, ClaimAnswer]:
    """Return our result and the answer if every one of the runs ``names`` can be used; else the problem with one."""
    problems = [(f"{name}: {ran[name].problem}", ran[name].answer) for name in names if ran[name].problem]
    if problems:
        return min(problems, key=lambda each: _STRICTNESS.index(each[1]))
    finding = judge(evidence)
    if finding.agrees is None:
        return finding.ours, ClaimAnswer.NOT_TOLD
    agrees = ClaimAnswer.AGREES if claim.drills else ClaimAnswer.COMPUTED
    return finding.ours, agrees if finding.agrees else ClaimAnswer.DIFFERS
