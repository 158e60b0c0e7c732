"""Reproduction (``hpn reproduce``): every claim of the paper that a testbed can check, compared with runs.

The claims are in ``scenarios.paper.claims``. Here drills are run unless their runs are on file
(``scenarios.paper.kept``), paths are computed and the answers written. ``scenarios.paper.judging`` answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from hpn.results.judge.verdict import Outcome
from hpn.scenarios.batch.pool.drills import Made, RequestedRun, run_all
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.paper.answers import ClaimRow, document, markdown
from hpn.scenarios.paper.claim import DRAWS, Claim, drill_of
from hpn.scenarios.paper.claims import CLAIMS
from hpn.scenarios.paper.judging import Ran, judge
from hpn.scenarios.paper.kept import Kept
from hpn.scenarios.paper.path_figures import PathFigures, measure
from hpn.scenarios.paper.variants import Variant
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.replacing import replace_text
from hpn.testbed.vm.engines import ENGINES, HOST, EngineSpec, named

FOLDER = Path(__file__).parent / "drills"
"""Drills used only for claims; the library's are used where it has one."""

JSON, MARKDOWN, DRILLS = "reproduction.json", "reproduction.md", "drills"


def choose(keys: Sequence[str]) -> tuple[Claim, ...]:
    """Return the claims of these keys, or all without keys. InputError for an unknown one."""
    for key in keys:
        if key not in CLAIMS:
            raise InputError(f"no claim {key!r}; {did_you_mean(key, list(CLAIMS), 'claims are')}")
    return tuple(CLAIMS[key] for key in keys or CLAIMS)


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


def wanted_of(
    claims: Sequence[Claim], engine: str, out: Path, command: tuple[str, ...], draws: int = DRAWS
) -> dict[str, RequestedRun]:
    """Return the runs that the claims need, each into OUT/DRILL or OUT/DRILL@DRAW.

    Drills that are variants of others are written to OUT/drills.
    """
    spec, names = named(engine), dict.fromkeys(name for claim in claims for name in claim.runs(draws))
    files = {variant.name: _written(variant, out) for claim in claims for variant in claim.variants}
    drills = {drill: load_drill(files.get(drill) or drill_file(drill)) for drill, _ in map(drill_of, names)}
    return {name: RequestedRun(_order(drills, name, out, command), spec) for name in names}


def _written(variant: Variant, out: Path) -> Path:
    file = out / DRILLS / f"{variant.name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, variant.text(drill_file(variant.drill).read_text()))
    return file


def _order(drills: Mapping[str, Drill], name: str, out: Path, command: tuple[str, ...]) -> Order:
    drill, draw = drill_of(name)
    found = drills[drill]
    return Order(found if draw is None else found.seeded(draw), out / name, command)


def reproduce(
    claims: Sequence[Claim],
    wanted: Mapping[str, RequestedRun],
    engine: str,
    out: Path,
    on_line: Callable[[str], None],
    pool: Pool,
    draws: int = DRAWS,
    ended: Callable[[str], None] = lambda _name: None,
) -> tuple[ClaimRow, ...]:
    """Make the ``wanted`` runs that are not on file by a pool and judge the claims by them.

    ``ended`` is called with the name of each run. A claim is judged, and reported, once its last run has ended. A drill
    that cannot be run leaves its claims unanswered. JSON and Markdown are written to ``out``.
    """
    judged = Judged(claims, draws, _paths(claims, on_line), on_line)
    kept = Kept(out, wanted)
    for made in chain(kept.made(), _made_now(wanted, kept, engine, on_line, pool)):
        judged.take(made.name, _ran(made, on_line))
        ended(made.name)
    rows = judged.rows
    out.mkdir(parents=True, exist_ok=True)
    replace_text(out / JSON, json.dumps(document(rows, engine, draws), indent=2) + "\n")
    replace_text(out / MARKDOWN, markdown(rows, engine))
    return rows


def _made_now(
    wanted: Mapping[str, RequestedRun], kept: Kept, engine: str, on_line: Callable[[str], None], pool: Pool
) -> Iterator[Made]:
    left = {name: each for name, each in wanted.items() if name not in kept.runs}
    for made in run_all(pool, left, lambda name, where: on_line(f"{name}: on {engine}{where and f' at {where}'}")):
        kept.add(made)
        yield made


def _paths(claims: Sequence[Claim], on_line: Callable[[str], None]) -> Mapping[str, PathFigures]:
    if not any(claim.paths for claim in claims):
        return {}
    on_line("paths: two labs on the host")
    try:
        return measure()
    except MachineError as error:
        on_line(f"paths: {error}")
        return {}


class Judged:
    """Claims whose runs come one by one; each is judged when its last one is there."""

    def __init__(
        self, claims: Sequence[Claim], draws: int, paths: Mapping[str, PathFigures], on_line: Callable[[str], None]
    ) -> None:
        """Judge the claims that need no run."""
        self._draws, self._paths, self._on_line = draws, paths, on_line
        self._ran: dict[str, Ran] = {}
        self._missing = {claim.key: set(claim.runs(draws)) for claim in claims}
        self._claims = claims
        self._found: dict[str, ClaimRow] = {}
        self._judge_complete()

    @property
    def rows(self) -> tuple[ClaimRow, ...]:
        """Rows of the judged claims, in order."""
        return tuple(self._found[claim.key] for claim in self._claims if claim.key in self._found)

    def take(self, name: str, ran: Ran) -> None:
        """Add a run, and judge the claims that are complete with it."""
        self._ran[name] = ran
        for missing in self._missing.values():
            missing.discard(name)
        self._judge_complete()

    def _judge_complete(self) -> None:
        for claim in self._claims:
            if self._missing[claim.key] or claim.key in self._found:
                continue
            row = judge(claim, self._ran, self._paths, self._draws)
            self._found[claim.key] = row
            self._on_line(f"claim {len(self._found)} of {len(self._claims)}: {claim.key} {row.answer}: {row.ours}")


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
