"""Audit: the failures to try, their drills in the out folder, and the runs that are left to make.

Changes when an audit is planned, stored or resumed in another way. The folder has ``plan.json``, a drill file for each
failure below ``drills`` and its run below ``runs``. A run counts as made if it is complete and of the same drill file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from hpn.results.run.folder import RunFolder
from hpn.scenarios.audit.drill import TOPOLOGY, PlannedFailure, flows_for, names_of, planned
from hpn.scenarios.audit.failures import Failure, single_failures
from hpn.scenarios.audit.pairs import pairs_of
from hpn.scenarios.audit.promises import Promise
from hpn.scenarios.batch.pool.drills import Made, RequestedRun, run_all
from hpn.scenarios.batch.pool.task import Pool
from hpn.scenarios.run.run_order import Order
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.writing import as_data
from hpn.testbed.files.bounded import read_bounded
from hpn.testbed.files.document import Plain
from hpn.testbed.files.replacing import replace, replace_text
from hpn.testbed.vm.engines import EngineSpec

PLAN, DRILLS, RUNS = "plan.json", "drills", "runs"
_MOST_OF_PLAN = 4_000_000
_OWN = {PLAN, DRILLS, RUNS, "base"}


@dataclass(frozen=True, slots=True)
class Audit:
    """Planned audit in its ``out`` folder. ``left_out``: failures that make no drill here, each with the reason."""

    fabric: Fabric
    failures: tuple[PlannedFailure, ...]
    promises: tuple[Promise, ...]
    left_out: tuple[tuple[Failure, str], ...]
    out: Path

    def folder(self, failure: PlannedFailure) -> Path:
        """Return the place of a failure's run."""
        return self.out / RUNS / failure.name

    def drill_file(self, failure: PlannedFailure) -> Path:
        """Return the place of a failure's drill."""
        return self.out / DRILLS / f"{failure.name}.yaml"


@dataclass(frozen=True, slots=True)
class _Kept:
    """Identity of the audit in a folder: what all of its runs share."""

    topology: Mapping[str, object]
    engine: str


_KEPT = TypeAdapter(_Kept)


def plan(spec: FabricSpec, kinds: Sequence[str], pairs: int, promises: tuple[Promise, ...], out: Path) -> Audit:
    """Return the audit of a fabric: failures of these ``kinds``, and at most ``pairs`` pairs.

    InputError when the fabric cannot be built, or no NIC has a partner to send to.
    """
    fabric = build(spec)
    failures = [*single_failures(fabric, kinds), *pairs_of(fabric, flows_for(fabric), pairs)]
    made: list[PlannedFailure] = []
    left_out: list[tuple[Failure, str]] = []
    for failure, name in zip(failures, names_of(failures), strict=True):
        try:
            made.append(planned(fabric, failure, name, promises, out / DRILLS))
        except InputError as error:
            left_out.append((failure, "; ".join(error.problems)))
    if not made:
        why = left_out[0][1] if left_out else "it has no element of these kinds"
        raise InputError(f"nothing of {spec.name} can be tried: {why}")
    return Audit(fabric, tuple(made), promises, tuple(left_out), out)


def left_of(audit: Audit) -> tuple[PlannedFailure, ...]:
    """Return the failures whose run is still to be made."""
    return tuple(each for each in audit.failures if not _is_made(audit, each))


def _is_made(audit: Audit, failure: PlannedFailure) -> bool:
    run = RunFolder(audit.folder(failure))
    if not run.has_verdict or not os.path.isfile(run.path / "manifest.json"):
        return False
    try:
        return audit.drill_file(failure).read_text(encoding="utf-8") == failure.text
    except (OSError, UnicodeDecodeError):
        return False


def write(audit: Audit, left: Sequence[PlannedFailure], engine: str) -> None:
    """Write the plan, the topology and the drills that are ``left``; a run of another drill loses its verdict first.

    InputError for a folder with something else, or an audit of another fabric or engine.
    """
    out = audit.out
    try:
        (out / DRILLS).mkdir(parents=True, exist_ok=True)
        _claim(out, _Kept(_data(audit), engine))
        replace_text(out / DRILLS / TOPOLOGY, yaml.safe_dump(_data(audit), sort_keys=False, allow_unicode=True))
        for failure in left:
            (audit.folder(failure) / "verdict.json").unlink(missing_ok=True)
            replace_text(audit.drill_file(failure), failure.text)
    except OSError as error:
        raise InputError(f"cannot keep an audit in {out}: {error.strerror}; choose another --out") from error


def check_place(out: Path) -> None:
    """Raise InputError if the folder has other content than an audit."""
    if os.path.isdir(out) and not os.path.isfile(out / PLAN) and {*os.listdir(out)} - _OWN:
        raise InputError(f"{out} is not empty and holds no audit; choose another --out")


def _data(audit: Audit) -> dict[str, Plain]:
    """Return the content of the topology file."""
    found = as_data(audit.fabric.spec)
    return found if isinstance(found, dict) else {"preset": found}


def _claim(out: Path, wanted: _Kept) -> None:
    path = out / PLAN
    if not os.path.isfile(path):
        replace(path, _KEPT.dump_json(wanted, indent=1))
        return
    try:
        kept = _KEPT.validate_json(read_bounded(path, _MOST_OF_PLAN, "audit's plan"))
    except (ValidationError, OSError) as error:
        raise InputError(f"{path} is damaged or of another version; choose another --out") from error
    differs = [field.name for field in fields(_Kept) if getattr(kept, field.name) != getattr(wanted, field.name)]
    if differs:
        raise InputError(f"{out} holds an audit of another {' and '.join(differs)}; choose another --out")


def wanted_of(audit: Audit, left: Sequence[PlannedFailure], spec: EngineSpec) -> dict[str, RequestedRun]:
    """Return the runs to be made by name, as requests to a pool."""
    return {
        failure.name: RequestedRun(Order(failure.drill, audit.folder(failure), _command(audit, failure, spec)), spec)
        for failure in left
    }


def _command(audit: Audit, failure: PlannedFailure, spec: EngineSpec) -> tuple[str, ...]:
    """Return the command line that repeats one run."""
    return ("drill", "run", f"{DRILLS}/{failure.name}.yaml", "--engine", spec.name)


def make(pool: Pool, wanted: Mapping[str, RequestedRun], on_start: Callable[[str, str], None]) -> Iterator[Made]:
    """Make the runs and yield each when it has ended; ``on_start`` as in ``run_all``."""
    yield from run_all(pool, wanted, on_start)
