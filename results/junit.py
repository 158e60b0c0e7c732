"""JUnit XML of drills, for CI: one test suite per run, one test case per expectation.

Changes when the mapping to JUnit changes. A broken expectation is a failure. Inconclusive is ``skipped``, not
``error``: the drill said nothing about the network, and CI systems show skipped tests apart without blaming the
change; the exit code 4 is there for those who want to gate on it. When the run as a whole cannot be trusted, every
case is skipped, whatever its figures say (DESIGN rule 8).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from results.run.manifest import Manifest
from results.text.terminal import describe
from results.verdict import Check, Outcome, Verdict
from testbed.errors import InputError

if TYPE_CHECKING:
    from results.repeats.together import Repeated

_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that no XML 1.0 document may hold, not even escaped."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One run with its verdict."""

    manifest: Manifest
    verdict: Verdict


def check_place(path: Path) -> None:
    """InputError when no report could be written to ``path``: to be known before the drills run, not after."""
    if not os.access(path if path.exists() else path.parent, os.W_OK) or path.is_dir():
        raise InputError(f"cannot write a report to {path}; choose another --junit, in a folder that exists")


def junit_xml(runs: Iterable[Judged], repeated: Iterable[Repeated] = ()) -> str:
    """The whole report as text; ``repeated`` adds a suite for each drill judged over its repeats."""
    report = JUnitXml("hpn")
    for run in runs:
        report.add_testsuite(_suite(run))
    for found in repeated:
        report.add_testsuite(repeats_suite(found))
    return as_xml(report)


def as_xml(report: JUnitXml) -> str:
    """A report as text that every XML reader takes, whatever a console said."""
    text = report.tostring()  # type: ignore[no-untyped-call]  # junitparser leaves it without types
    return _NOT_XML.sub("?", text.decode() if isinstance(text, bytes) else str(text))


def _suite(run: Judged) -> TestSuite:
    manifest, verdict = run.manifest, run.verdict
    suite = TestSuite(manifest.drill + (f" #{manifest.repeat}" if manifest.repeat else ""))
    suite.timestamp = manifest.started_at
    for name, value in _properties(manifest, verdict).items():
        suite.add_property(name, value)
    for check in verdict.checks or (Check("drill", Outcome.INCONCLUSIVE),):
        suite.add_testcase(_case(manifest.drill, check, verdict.reasons))
    suite.update_statistics()  # type: ignore[no-untyped-call]  # as above
    suite.time = manifest.duration_s  # of the drill; its cases are judged afterwards and take no time
    return suite


def repeats_suite(found: Repeated) -> TestSuite:
    """One case per expectation over all runs, and one for their agreement; a flip is told but no failure by itself."""
    suite, verdict = TestSuite(found.name), found.verdict
    suite.add_property("verdict", found.outcome.value)
    suite.add_property("answers", ", ".join(found.answers))
    suite.add_property("left out", str(found.left_out))
    suite.add_property("proof", found.proof or "none")
    for check in verdict.checks or (Check("drill", Outcome.INCONCLUSIVE),):
        suite.add_testcase(_case(found.drill, check, verdict.reasons))
    agree = TestCase("runs agree", classname=found.drill, time=0.0)
    if found.unstable:
        agree.result = [Skipped(f"unstable: {', '.join(found.answers)}")]
    suite.add_testcase(agree)
    suite.update_statistics()  # type: ignore[no-untyped-call]  # as above
    return suite


def _case(drill: str, check: Check, reasons: tuple[str, ...]) -> TestCase:
    case = TestCase(check.text, classname=drill, time=0.0)
    said = describe(check)
    if reasons:
        case.result = [Skipped("inconclusive: " + "; ".join(reasons))]
    elif check.outcome is Outcome.INCONCLUSIVE:
        case.result = [Skipped(f"inconclusive: {said}")]
    elif check.outcome is Outcome.FAIL:
        case.result = [Failure(said, "expectation")]
    case.system_out = said
    return case


def _properties(manifest: Manifest, verdict: Verdict) -> Mapping[str, str]:
    plain = ("fabric", "architecture", "engine", "datapath", "kernel", "profile")
    found = {name: str(getattr(manifest, name)) for name in plain}
    if manifest.accelerator:
        found["accelerator"] = manifest.accelerator
    if manifest.attempt > 1:
        found["attempt"] = str(manifest.attempt)
    if manifest.phase > 1:
        found["phase"] = f"{manifest.phase}, faults {manifest.phase_ms:.3f} ms later"
    found["command"] = " ".join(manifest.command)
    for group in ("versions", "seeds", "doctor"):
        found |= {f"{group}.{key}": str(value) for key, value in getattr(manifest, group).items()}
    return found | {"verdict": verdict.outcome.value}
