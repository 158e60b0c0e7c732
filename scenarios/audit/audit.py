"""Audit: the failures to try, their drills in the out folder, and the runs that are left to make.

Changes when an audit is planned, stored or resumed in another way. The folder has ``plan.json``, a drill file for each
failure below ``drills`` and its run below ``runs``. A run counts as made if it is complete and of the same drill file.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from hpn.scenarios.audit.drill import TOPOLOGY, PlannedFailure, flows_for, names_of, planned
from hpn.scenarios.audit.failures import Failure, single_failures
from hpn.scenarios.audit.pairs import pairs_of
from hpn.scenarios.audit.promises import Promise
from hpn.scenarios.batch.kept_runs import DRILLS, RUNS, Claim, KeptRuns
from hpn.scenarios.batch.pool.drills import Made, RequestedRun, run_all
from hpn.scenarios.batch.pool.task import Pool
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.writing import as_data
from hpn.testbed.files.document import Plain, shorten
from hpn.testbed.files.replacing import replace_text
from hpn.testbed.vm.engines import EngineSpec

PLAN = "plan.json"
_CLAIM = Claim(PLAN, "an audit", (DRILLS, RUNS, "base"))


@dataclass(frozen=True, slots=True)
class Audit:
    """Planned audit in its ``out`` folder. ``left_out``: failures that make no drill here, each with the reason."""

    fabric: Fabric
    failures: tuple[PlannedFailure, ...]
    promises: tuple[Promise, ...]
    left_out: tuple[tuple[Failure, str], ...]
    out: Path

    @property
    def kept(self) -> KeptRuns:
        """Drill files and runs of it."""
        return KeptRuns(self.out)

    def folder(self, failure: PlannedFailure) -> Path:
        """Return the place of a failure's run."""
        return self.kept.folder(failure.name)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Identity of the audit in a folder: what all of its runs share."""

    topology: Mapping[str, object]
    engine: str


_KEPT = TypeAdapter(_Kept)


def plan(
    spec: FabricSpec,
    kinds: Sequence[str],
    pairs: int,
    promises: tuple[Promise, ...],
    out: Path,
    elements: Sequence[str] = (),
) -> Audit:
    """Return the audit of a fabric: failures of these ``kinds``, and at most ``pairs`` pairs.

    ``elements``: only failures of elements with such names, shell patterns; all without any. InputError when the fabric
    cannot be built, no NIC has a partner to send to, or nothing has such a name.
    """
    fabric = build(spec)
    failures = [*single_failures(fabric, kinds), *pairs_of(fabric, flows_for(fabric), pairs)]
    if elements:
        failures = _named(fabric, failures, elements)
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


def _named(fabric: Fabric, failures: Sequence[Failure], elements: Sequence[str]) -> list[Failure]:
    """Return the failures of elements with such names; links have their ends' too. InputError for one that none has."""
    ends = {link.name: (link.lower.label, link.upper.label) for link in fabric.links}
    names = [{*failure.targets}.union(*(ends.get(target, ()) for target in failure.targets)) for failure in failures]
    for pattern in elements:
        if not any(fnmatch.filter(each, pattern) for each in names):
            raise InputError(f"no failure of these kinds is of {shorten(pattern)}; --list shows what there is")
    return [
        failure
        for failure, each in zip(failures, names, strict=True)
        if any(fnmatch.filter(each, pattern) for pattern in elements)
    ]


def left_of(audit: Audit) -> tuple[PlannedFailure, ...]:
    """Return the failures whose run is still to be made."""
    return tuple(each for each in audit.failures if not audit.kept.is_made(each))


def write(audit: Audit, left: Sequence[PlannedFailure], engine: str) -> None:
    """Write the plan, the topology and the drills that are ``left``; a run of another drill loses its verdict first.

    InputError for a folder with something else, or an audit of another fabric or engine.
    """
    out = audit.out
    try:
        (out / DRILLS).mkdir(parents=True, exist_ok=True)
        _CLAIM.take(out, _KEPT, _Kept(_data(audit), engine))
        replace_text(out / DRILLS / TOPOLOGY, yaml.safe_dump(_data(audit), sort_keys=False, allow_unicode=True))
        audit.kept.write(left)
    except OSError as error:
        raise InputError(f"cannot keep an audit in {out}: {error.strerror}; choose another --out") from error


def check_place(out: Path) -> None:
    """Raise InputError if the folder has other content than an audit."""
    _CLAIM.check_place(out)


def _data(audit: Audit) -> dict[str, Plain]:
    """Return the content of the topology file."""
    found = as_data(audit.fabric.spec)
    return found if isinstance(found, dict) else {"preset": found}


def wanted_of(audit: Audit, left: Sequence[PlannedFailure], spec: EngineSpec) -> dict[str, RequestedRun]:
    """Return the runs to be made by name, as requests to a pool."""
    return audit.kept.requests(left, spec)


def make(pool: Pool, wanted: Mapping[str, RequestedRun], on_start: Callable[[str, str], None]) -> Iterator[Made]:
    """Make the runs and yield each when it has ended; ``on_start`` as in ``run_all``."""
    yield from run_all(pool, wanted, on_start)
