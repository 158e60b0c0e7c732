"""JUnit of drills, for CI: a test suite per run, a test case per expectation, and one for the measurement itself.

Changes when the mapping to JUnit changes. A broken expectation is a failure. Inconclusive is ``skipped``, not
``error``: the drill says nothing about the network, and CI systems list skipped tests separately without blaming the
change. Users who want to gate on it have exit code 4. If the complete run cannot be trusted, every case is skipped,
whatever its figures say (DESIGN rule 8). Repeats have class names of their own, as CI systems merge cases of equal
class and name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.results.export.junit_xml import Case, Status, Suite, report
from hpn.results.judge.verdict import Check, Outcome, Verdict
from hpn.results.run.folder import RunFolder
from hpn.results.run.manifest import Manifest
from hpn.results.text.checks import describe
from hpn.testbed.errors import InputError

if TYPE_CHECKING:
    from hpn.results.judge.repeats.repeated import Repeated

TRUSTED = "the measurement can be trusted"
_ATTACHED = ("report.html", "verdict.json", "metrics.json", "events.jsonl")
_STATUS = {Outcome.PASS: Status.PASS, Outcome.FAIL: Status.FAILURE, Outcome.INCONCLUSIVE: Status.SKIPPED}


@dataclass(frozen=True, slots=True)
class Judged:
    """One run with its verdict. ``files``: attachments of a report, with paths that CI systems can open."""

    manifest: Manifest
    verdict: Verdict
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unmade:
    """A run that could not be made, and the reason; ``noisy`` if it was inconclusive, which is no error.

    ``repeat`` is 0 if there is only one.
    """

    drill: str
    repeat: int
    said: str
    noisy: bool
    wall_s: float = 0.0
    files: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """Outcome: 'error' or 'inconclusive'."""
        return Outcome.INCONCLUSIVE.value if self.noisy else "error"


def judged(run: RunFolder, *more: Path) -> Judged:
    """Return a run from its folder, with its files; ``more`` come before them."""
    paths = (*more, *(run.path / name for name in _ATTACHED))
    return Judged(run.manifest(), run.verdict(), tuple(str(path) for path in paths if os.path.isfile(path)))


def check_place(path: Path, option: str = "--junit") -> None:
    """Raise InputError if no report can be written to ``path``, so that users learn it before the drills run."""
    if not os.access(path if path.exists() else path.parent, os.W_OK) or path.is_dir():
        raise InputError(f"cannot write a report to {path}; choose another {option}, in a folder that exists")


def junit_xml(runs: Iterable[Judged], repeated: Iterable[Repeated] = (), unmade: Iterable[Unmade] = ()) -> str:
    """Return the complete report as text; ``repeated`` adds a suite for each drill judged over its repeats."""
    suites = [run_suite(run, *_named(run.manifest.drill, run.manifest.repeat)) for run in runs]
    suites += [unmade_suite(run, *_named(run.drill, run.repeat)) for run in unmade]
    return report("hpn", [*suites, *(repeats_suite(found, f"{found.drill}.all-runs") for found in repeated)])


def _named(drill: str, repeat: int) -> tuple[str, str]:
    """Return the title of a run's suite, and the class of its cases."""
    return (f"{drill} #{repeat}", f"{drill}.run-{repeat}") if repeat else (drill, drill)


def unmade_suite(run: Unmade, title: str, classname: str, more: Mapping[str, str] | None = None) -> Suite:
    """Return the suite of a run that was not made: an error, or skipped if it is inconclusive."""
    status, said = (Status.SKIPPED, _inconclusive((run.said,))) if run.noisy else (Status.ERROR, run.said)
    case = Case("the drill runs", classname, status, said, "machine", time_s=run.wall_s, attachments=run.files)
    return Suite(title, [case], more or {}, time_s=run.wall_s)


def run_suite(run: Judged, title: str, classname: str, more: Mapping[str, str] | None = None) -> Suite:
    """Return the suite of one run; ``more`` are further properties."""
    manifest, verdict = run.manifest, run.verdict
    trusted = Case(
        TRUSTED,
        classname,
        Status.SKIPPED if verdict.doubts else Status.PASS,
        _inconclusive(verdict.doubts),
        attachments=run.files,
    )
    return Suite(
        title,
        [trusted, *_cases(verdict, classname, run.files)],
        {**_properties(manifest, verdict), **(more or {})},
        manifest.date,
        manifest.duration_s,  # of the drill; its cases are judged afterwards and take no time
    )


def repeats_suite(found: Repeated, classname: str) -> Suite:
    """Return one case per expectation over all runs, and one for their agreement; a flip is skipped, not failed."""
    properties = {
        "verdict": found.outcome.value,
        "answers": ", ".join(found.answers),
        "left out": str(found.left_out),
        "proof": found.proof or "none",
    }
    verdict = found.verdict
    cases = _cases(verdict, classname) or [Case("drill", classname, Status.SKIPPED, _inconclusive(verdict.reasons))]
    unstable = f"unstable: {', '.join(found.answers)}" if found.unstable else ""
    agree = Case("runs agree", classname, Status.SKIPPED if unstable else Status.PASS, unstable)
    return Suite(found.name, [*cases, agree], properties)


def _cases(verdict: Verdict, classname: str, files: Sequence[str] = ()) -> list[Case]:
    return [_case(check, verdict, classname, files) for check in verdict.checks]


def _case(check: Check, verdict: Verdict, classname: str, files: Sequence[str]) -> Case:
    said, status = describe(check), _STATUS[check.outcome]
    if verdict.reasons:
        return Case(check.text, classname, Status.SKIPPED, _inconclusive(verdict.reasons), out=said)
    if status is Status.FAILURE:
        whole = "\n".join((*verdict.causes, said))
        return Case(check.text, classname, status, whole, "expectation", whole, attachments=files)
    return Case(check.text, classname, status, _inconclusive((said,)), out=said)


def _inconclusive(reasons: Sequence[str]) -> str:
    return "inconclusive: " + "; ".join(reasons)


def _properties(manifest: Manifest, verdict: Verdict) -> dict[str, str]:
    plain = ("fabric", "architecture", "engine", "datapath", "kernel", "profile")
    found = {name: str(getattr(manifest, name)) for name in plain}
    if manifest.host_profile:
        found["host_profile"] = manifest.host_profile
    if manifest.accelerator:
        found["accelerator"] = manifest.accelerator
    if manifest.attempt > 1:
        found["attempt"] = str(manifest.attempt)
    if manifest.phase > 1:
        found["phase"] = f"{manifest.phase}, faults {manifest.phase_ms:.3f} ms later"
    found["command"] = " ".join(manifest.command)
    for group in ("versions", "seeds", "doctor"):
        found |= {f"{group}.{key}": str(value) for key, value in getattr(manifest, group).items()}
    if verdict.cost:
        found["cost"] = verdict.cost
    return found | {"verdict": verdict.outcome.value}
